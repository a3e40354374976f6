//! Recorder, HTTP server or HTTP clients killed at any moment: no forwarded message is lost.
//!
//! ```text
//! three clients, one for each transport ⇄ rehearse record --url ⇄ a server
//!     received: responses and events                                received: requests
//! ```
//!
//! Server and clients run in this process; all their sockets close at once, as the kernel does it for a killed process. The
//! recorder is a process and is killed.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rehearsal::core::exchange::Side;
use rehearsal::core::trace::{EntryBody, Part, TraceReader};
use rehearsal::record::recover;

use crate::crash::{Dice, seeded};
use crate::fixture::Fixture;
use crate::record_http::Recorder;

/// The default of `REHEARSAL_KILLS`: how many runs are killed.
const KILLS: u64 = 120;

/// The messages that one side has received.
#[derive(Clone, Default)]
struct Received {
    whole: Arc<Mutex<Vec<Vec<u8>>>>,
    /// The received beginnings of messages.
    partial: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Received {
    /// Reads `length` bytes and stores them without the framing `before` and `after`.
    fn read(&self, input: &mut impl Read, length: usize, before: &[u8], after: &[u8]) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = input.take(length as u64).read_to_end(&mut bytes);
        let message = bytes.strip_prefix(before).unwrap_or_default();
        if bytes.len() == length {
            let message = message.strip_suffix(after).unwrap_or(message).to_vec();
            self.whole.lock().unwrap().push(message.clone());
            return Ok(message);
        }
        // The last bytes may belong to `after`.
        let certain = message.len().saturating_sub(after.len());
        self.partial.lock().unwrap().push(message[..certain].to_vec());
        read.and_then(|_| Err(io::ErrorKind::UnexpectedEof.into()))
    }
}

/// The sockets of one side, which are closed together.
#[derive(Clone, Default)]
struct Sockets {
    open: Arc<Mutex<Vec<TcpStream>>>,
    closed: Arc<AtomicBool>,
}

impl Sockets {
    fn keep(&self, socket: &TcpStream) -> io::Result<()> {
        let mut open = self.open.lock().unwrap();
        match self.closed.load(Ordering::SeqCst) {
            true => Err(io::ErrorKind::NotConnected.into()),
            false => socket.try_clone().map(|socket| open.push(socket)),
        }
    }

    fn close(&self) {
        let open = self.open.lock().unwrap();
        self.closed.store(true, Ordering::SeqCst);
        // An error means that the other side has already closed the socket.
        open.iter().for_each(|socket| drop(socket.shutdown(Shutdown::Both)));
    }

    fn are_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

/// The parts of an HTTP head that describe the body.
struct Head {
    first: String,
    length: usize,
    is_stream: bool,
}

fn head(input: &mut impl BufRead) -> io::Result<Head> {
    let mut head = Head { first: String::new(), length: 0, is_stream: false };
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end().to_ascii_lowercase();
        match line.split_once(": ") {
            Some(("content-length", length)) => head.length = length.parse().unwrap(),
            Some(("content-type", kind)) => head.is_stream = kind == "text/event-stream",
            Some(_) => {}
            None if line.is_empty() => return Ok(head),
            None => head.first = line,
        }
    }
}

/// The size of the next chunk of a stream, which is one event.
fn chunk_size(input: &mut impl BufRead) -> io::Result<usize> {
    let mut size = String::new();
    input.read_line(&mut size)?;
    usize::from_str_radix(size.trim_end(), 16).map_err(|_| io::ErrorKind::UnexpectedEof.into())
}

fn chunk(event: &str) -> Vec<u8> {
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}

/// An HTTP server that answers every request, at random with JSON or with a stream of events.
struct Server {
    address: SocketAddr,
    sockets: Sockets,
    received: Received,
    threads: Vec<JoinHandle<()>>,
}

const EVENTS: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// The state that the connections of a server share.
#[derive(Clone)]
struct Served {
    sockets: Sockets,
    received: Received,
    streams: Arc<Mutex<HashMap<String, Sender<String>>>>,
}

impl Server {
    fn start(mut dice: Dice) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let served = Served { sockets: Sockets::default(), received: Received::default(), streams: Arc::default() };
        let (sockets, received) = (served.sockets.clone(), served.received.clone());
        let accepting = std::thread::spawn(move || {
            let mut threads = Vec::new();
            for socket in listener.incoming() {
                let Ok(socket) = socket else { break };
                if served.sockets.keep(&socket).is_err() {
                    break;
                }
                let (served, dice) = (served.clone(), Dice(dice.throw(u64::MAX).max(1)));
                // Every connection ends with an error, because the other side closes it.
                threads.push(std::thread::spawn(move || drop(served.answer(socket, dice))));
            }
            drop(listener);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        Server { address, sockets, received, threads: vec![accepting] }
    }

    /// Waits until every connection has ended; returns the received messages.
    fn wait(self) -> Received {
        self.sockets.close();
        // Wakes up the listener, which then stops.
        drop(TcpStream::connect(self.address));
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        self.received
    }
}

impl Served {
    fn answer(&self, socket: TcpStream, mut dice: Dice) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let (mut input, mut out) = (BufReader::new(socket.try_clone()?), socket);
        loop {
            let Head { first, length, .. } = head(&mut input)?;
            let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
            if first.starts_with("get ") {
                return self.stream(&mut out, &target);
            }
            let request = self.received.read(&mut input, length, b"", b"")?;
            let answer =
                String::from_utf8(request).unwrap().replace(r#""method":"tools/call","params""#, r#""result""#);
            if let Some(stream) = target.strip_prefix("/messages/") {
                out.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")?;
                let streams = self.streams.lock().unwrap();
                // The reader of the stream may have disconnected.
                let _ = streams.get(stream).map(|stream| stream.send(answer));
            } else if dice.throw(2) == 0 {
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                    answer.len()
                );
                out.write_all(&[head.as_bytes(), answer.as_bytes()].concat())?;
            } else {
                out.write_all(EVENTS)?;
                for number in 0..dice.throw(4) {
                    let notification =
                        format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"n":{number}}}}}"#);
                    out.write_all(&chunk(&format!("data: {notification}\n\n")))?;
                }
                out.write_all(&chunk(&format!("data: {answer}\n\n")))?;
                out.write_all(b"0\r\n\r\n")?;
            }
        }
    }

    /// Serves the event stream of HTTP+SSE.
    fn stream(&self, out: &mut TcpStream, target: &str) -> io::Result<()> {
        let (sender, answers) = mpsc::channel();
        let name = target.trim_start_matches("/sse/").to_owned();
        self.streams.lock().unwrap().insert(name.clone(), sender);
        out.write_all(EVENTS)?;
        out.write_all(&chunk(&format!("event: endpoint\ndata: /messages/{name}\n\n")))?;
        while !self.sockets.are_closed() {
            match answers.recv_timeout(Duration::from_millis(20)) {
                Ok(answer) => out.write_all(&chunk(&format!("data: {answer}\n\n")))?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(())
    }
}

/// The transport of a client.
#[derive(Clone, Copy)]
enum Transport {
    Session,
    Stateless,
    TwoEndpoints,
}

/// A client that sends requests until its connection is closed.
struct Client {
    host: String,
    transport: Transport,
    sockets: Sockets,
    received: Received,
    dice: Dice,
    name: String,
}

/// The number of requests of all clients, so that each request has its own id.
static REQUESTS: AtomicUsize = AtomicUsize::new(0);

impl Client {
    fn connect(&self) -> io::Result<(BufReader<TcpStream>, TcpStream)> {
        let socket = TcpStream::connect(&self.host)?;
        self.sockets.keep(&socket)?;
        socket.set_nodelay(true)?;
        Ok((BufReader::new(socket.try_clone()?), socket))
    }

    /// Receives an event; `false` at the end of the stream.
    fn receive(&self, events: &mut impl BufRead) -> io::Result<bool> {
        let size = chunk_size(events)?;
        match size {
            0 => events.read_exact(&mut [0; 2]).map(|()| false),
            _ => self.received.read(events, size + 2, b"data: ", b"\n\n\r\n").map(|_| true),
        }
    }

    fn run(mut self) -> io::Result<()> {
        let (mut input, mut out) = self.connect()?;
        let mut stream = None;
        let headers = match self.transport {
            Transport::Session => format!("POST /mcp HTTP/1.1\r\nMcp-Session-Id: {}\r\n", self.name),
            Transport::Stateless => "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\n".to_owned(),
            Transport::TwoEndpoints => {
                let (mut events, mut requests) = self.connect()?;
                let Client { host, name, .. } = &self;
                requests.write_all(
                    format!("GET /sse/{name} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n").as_bytes(),
                )?;
                head(&mut events)?;
                let mut endpoint = vec![0; chunk_size(&mut events)? + 2];
                events.read_exact(&mut endpoint)?;
                let endpoint = String::from_utf8(endpoint).unwrap();
                stream = Some((events, requests));
                format!("POST {} HTTP/1.1\r\n", endpoint.trim_end().rsplit(' ').next().unwrap())
            }
        };
        loop {
            let filler = "abc ".repeat(match self.dice.throw(20) {
                0 => usize::try_from(40_000 + self.dice.throw(30_000)).unwrap(),
                1..=4 => usize::try_from(self.dice.throw(2500)).unwrap(),
                _ => 0,
            });
            let id = REQUESTS.fetch_add(1, Ordering::Relaxed);
            let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"x":"{filler}"}}}}"#);
            let head_of = format!("{headers}Host: {}\r\nContent-Length: {}\r\n\r\n", self.host, request.len());
            out.write_all(&[head_of.as_bytes(), request.as_bytes()].concat())?;
            let Head { first, length, is_stream } = head(&mut input)?;
            if first.contains(" 502 ") {
                // The recorder's response if its server does not answer.
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            if is_stream {
                while self.receive(&mut input)? {}
            } else if length > 0 {
                self.received.read(&mut input, length, b"", b"")?;
            }
            if let Some((events, _)) = &mut stream {
                self.receive(events)?;
            }
        }
    }
}

/// All recorded messages with their senders, of every session.
fn recorded_messages(trace: &Path) -> HashSet<(Side, Vec<u8>)> {
    let Ok(file) = File::open(trace) else { return HashSet::new() };
    let mut recorded = HashSet::new();
    for part in TraceReader::new(BufReader::new(file)) {
        match part.unwrap() {
            Part::Call(call) => {
                let answer = call.response.map(|response| (call.asker.other(), response.message.raw().to_vec()));
                recorded.insert((call.asker, call.request.message.raw().to_vec()));
                recorded.extend(answer);
            }
            Part::Entry(entry) => {
                if let EntryBody::Message { from, message, .. } = entry.what {
                    recorded.insert((from, message.raw().to_vec()));
                }
            }
            Part::Start(_) | Part::Finish { .. } => {}
        }
    }
    recorded
}

#[test]
#[ignore = "takes half a minute; `.ci/run recording` runs it"]
fn no_forwarded_http_message_is_lost_after_a_kill() {
    let (seed, kills) = seeded(KILLS);
    let fixture = Fixture::new();
    let trace = fixture.path().join("trace.jsonl");
    let (mut dice, mut found, mut partials) = (Dice(seed), 0, 0);
    for run in 0..kills {
        let mut new_dice = || Dice(dice.throw(u64::MAX).max(1));
        let server = Server::start(new_dice());
        let mine = format!("--no-redact -q -o trace.jsonl --metadata run={run}");
        let recorder = Recorder::before(&fixture, &format!("http://{}/mcp", server.address), &mine);
        let (sockets, received) = (Sockets::default(), Received::default());
        let clients = [Transport::Session, Transport::Stateless, Transport::TwoEndpoints, Transport::Session]
            .into_iter()
            .zip(0..);
        let clients: Vec<_> = clients
            .map(|(transport, number)| {
                let host = recorder.origin.strip_prefix("http://").unwrap().to_owned();
                let (sockets, received) = (sockets.clone(), received.clone());
                let client =
                    Client { host, transport, sockets, received, dice: new_dice(), name: format!("s{number}") };
                std::thread::spawn(move || client.run().unwrap_err())
            })
            .collect();
        let (began, delay) = (Instant::now(), Duration::from_micros(dice.throw(80_000)));
        while began.elapsed() < delay {
            std::thread::yield_now();
        }
        let victim = dice.throw(5);
        match victim {
            0 | 1 => recorder.signal(Signal::SIGKILL),
            2 => server.sockets.close(),
            3 => sockets.close(),
            _ => {
                recorder.signal(Signal::SIGKILL);
                server.sockets.close();
                sockets.close();
            }
        }
        close_sockets(&clients, &sockets, victim);
        clients.into_iter().for_each(|client| drop(client.join().unwrap()));
        if matches!(victim, 2 | 3) {
            recorder.signal(Signal::SIGTERM);
        }
        let (status, stderr) = recorder.ended();
        let context = format!("run {run} of seed {seed}: victim {victim}, status {status:?}: {stderr}");
        let server_received = server.wait();
        recover(&trace).unwrap();
        let recorded = recorded_messages(&trace);
        for (side, received) in [(Side::Client, server_received), (Side::Server, received)] {
            for message in std::mem::take(&mut *received.whole.lock().unwrap()) {
                found += 1;
                let text = String::from_utf8_lossy(&message[..message.len().min(80)]).into_owned();
                assert!(recorded.contains(&(side, message)), "{context}: {text} from the {side:?} is lost");
            }
            for partial in received.partial.lock().unwrap().iter().filter(|partial| !partial.is_empty()) {
                partials += 1;
                let is_kept = recorded.iter().any(|(from, message)| *from == side && message.starts_with(partial));
                assert!(is_kept, "{context}: {} bytes from the {side:?} are lost", partial.len());
            }
        }
        let _ = std::fs::remove_file(&trace);
    }
    println!("{kills} kills, {found} messages and {partials} partial messages received and found");
    assert!(found > 0);
    let left: Vec<_> = std::fs::read_dir(fixture.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, [""; 0], "nothing is left");
}

/// Closes the clients' sockets. If the server was closed, checks first that every client gets an error within 20 s.
fn close_sockets(clients: &[JoinHandle<io::Error>], sockets: &Sockets, victim: u64) {
    let began = Instant::now();
    while victim == 2 && clients.iter().any(|client| !client.is_finished()) {
        assert!(began.elapsed() < Duration::from_secs(20), "a client still waits for the closed server");
        std::thread::yield_now();
    }
    sockets.close();
}
