//! The same over HTTP: recorder, server or clients go at any moment, and nothing that had been passed on is lost.
//!
//! ```text
//! three clients, one for each transport ⇄ rehearse record --url ⇄ a server
//!     heard: answers and events                                       asked: requests
//! ```
//!
//! Server and clients are here, and go as the kernel makes them go: all their sockets close at once. The recorder is a
//! process and is killed.

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

/// How often somebody is killed, unless `REHEARSAL_KILLS` says otherwise.
const KILLS: u64 = 120;

/// What somebody has received.
#[derive(Clone, Default)]
struct Received {
    whole: Arc<Mutex<Vec<Vec<u8>>>>,
    /// As far as it came.
    half: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Received {
    /// Reads so many bytes, of which `before` and `after` are no part of what was said.
    fn read(&self, input: &mut impl Read, length: usize, before: &[u8], after: &[u8]) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = input.take(length as u64).read_to_end(&mut bytes);
        let said = bytes.strip_prefix(before).unwrap_or_default();
        if bytes.len() == length {
            let said = said.strip_suffix(after).unwrap_or(said).to_vec();
            self.whole.lock().unwrap().push(said.clone());
            return Ok(said);
        }
        // The end of it may be what comes after it.
        let sure = said.len().saturating_sub(after.len());
        self.half.lock().unwrap().push(said[..sure].to_vec());
        read.and_then(|_| Err(io::ErrorKind::UnexpectedEof.into()))
    }
}

/// The sockets of one of them, to close all of them at once.
#[derive(Clone, Default)]
struct Sockets {
    open: Arc<Mutex<Vec<TcpStream>>>,
    gone: Arc<AtomicBool>,
}

impl Sockets {
    fn keep(&self, socket: &TcpStream) -> io::Result<()> {
        let mut open = self.open.lock().unwrap();
        match self.gone.load(Ordering::SeqCst) {
            true => Err(io::ErrorKind::NotConnected.into()),
            false => socket.try_clone().map(|socket| open.push(socket)),
        }
    }

    fn close(&self) {
        let open = self.open.lock().unwrap();
        self.gone.store(true, Ordering::SeqCst);
        // An error means that the other side was faster.
        open.iter().for_each(|socket| drop(socket.shutdown(Shutdown::Both)));
    }

    fn are_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }
}

/// A head and what it says about its body.
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

/// Answers whoever asks, in whatever way the dice say.
struct Server {
    address: SocketAddr,
    sockets: Sockets,
    asked: Received,
    threads: Vec<JoinHandle<()>>,
}

const EVENTS: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// What the connections of a server share.
#[derive(Clone)]
struct Served {
    sockets: Sockets,
    asked: Received,
    streams: Arc<Mutex<HashMap<String, Sender<String>>>>,
}

impl Server {
    fn start(mut dice: Dice) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let served = Served { sockets: Sockets::default(), asked: Received::default(), streams: Arc::default() };
        let (sockets, asked) = (served.sockets.clone(), served.asked.clone());
        let accepting = std::thread::spawn(move || {
            let mut threads = Vec::new();
            for socket in listener.incoming() {
                let Ok(socket) = socket else { break };
                if served.sockets.keep(&socket).is_err() {
                    break;
                }
                let (served, dice) = (served.clone(), Dice(dice.throw(u64::MAX).max(1)));
                // It ends with an error: the other side is gone.
                threads.push(std::thread::spawn(move || drop(served.answer(socket, dice))));
            }
            drop(listener);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        Server { address, sockets, asked, threads: vec![accepting] }
    }

    /// Waits until every connection has ended.
    fn over(self) -> Received {
        self.sockets.close();
        // So that it no longer waits for the next one.
        drop(TcpStream::connect(self.address));
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        self.asked
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
            let request = self.asked.read(&mut input, length, b"", b"")?;
            let answer =
                String::from_utf8(request).unwrap().replace(r#""method":"tools/call","params""#, r#""result""#);
            if let Some(stream) = target.strip_prefix("/messages/") {
                out.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")?;
                let streams = self.streams.lock().unwrap();
                // Its reader may be gone.
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
                    let tell = format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"n":{number}}}}}"#);
                    out.write_all(&chunk(&format!("data: {tell}\n\n")))?;
                }
                out.write_all(&chunk(&format!("data: {answer}\n\n")))?;
                out.write_all(b"0\r\n\r\n")?;
            }
        }
    }

    /// The stream of HTTP+SSE.
    fn stream(&self, out: &mut TcpStream, target: &str) -> io::Result<()> {
        let (sender, answers) = mpsc::channel();
        let name = target.trim_start_matches("/sse/").to_owned();
        self.streams.lock().unwrap().insert(name.clone(), sender);
        out.write_all(EVENTS)?;
        out.write_all(&chunk(&format!("event: endpoint\ndata: /messages/{name}\n\n")))?;
        while !self.sockets.are_gone() {
            match answers.recv_timeout(Duration::from_millis(20)) {
                Ok(answer) => out.write_all(&chunk(&format!("data: {answer}\n\n")))?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(())
    }
}

/// How a client talks.
#[derive(Clone, Copy)]
enum Way {
    Session,
    Stateless,
    TwoEndpoints,
}

/// One client, until it can talk no more.
struct Client {
    host: String,
    way: Way,
    sockets: Sockets,
    heard: Received,
    dice: Dice,
    name: String,
}

/// What a client has counted, so that no two requests are the same.
static REQUESTS: AtomicUsize = AtomicUsize::new(0);

impl Client {
    fn connect(&self) -> io::Result<(BufReader<TcpStream>, TcpStream)> {
        let socket = TcpStream::connect(&self.host)?;
        self.sockets.keep(&socket)?;
        socket.set_nodelay(true)?;
        Ok((BufReader::new(socket.try_clone()?), socket))
    }

    /// Hears an event; `false` after the last of a stream.
    fn hear(&self, events: &mut impl BufRead) -> io::Result<bool> {
        let size = chunk_size(events)?;
        match size {
            0 => events.read_exact(&mut [0; 2]).map(|()| false),
            _ => self.heard.read(events, size + 2, b"data: ", b"\n\n\r\n").map(|_| true),
        }
    }

    fn talk(mut self) -> io::Result<()> {
        let (mut input, mut out) = self.connect()?;
        let mut stream = None;
        let headers = match self.way {
            Way::Session => format!("POST /mcp HTTP/1.1\r\nMcp-Session-Id: {}\r\n", self.name),
            Way::Stateless => "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\n".to_owned(),
            Way::TwoEndpoints => {
                let (mut events, mut asking) = self.connect()?;
                let Client { host, name, .. } = &self;
                asking.write_all(
                    format!("GET /sse/{name} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n").as_bytes(),
                )?;
                head(&mut events)?;
                let mut endpoint = vec![0; chunk_size(&mut events)? + 2];
                events.read_exact(&mut endpoint)?;
                let endpoint = String::from_utf8(endpoint).unwrap();
                stream = Some((events, asking));
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
                // That is what the recorder says.
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            if is_stream {
                while self.hear(&mut input)? {}
            } else if length > 0 {
                self.heard.read(&mut input, length, b"", b"")?;
            }
            if let Some((events, _)) = &mut stream {
                self.hear(events)?;
            }
        }
    }
}

/// Everything that each side said, in any session.
fn said(trace: &Path) -> HashSet<(Side, Vec<u8>)> {
    let Ok(file) = File::open(trace) else { return HashSet::new() };
    let mut said = HashSet::new();
    for part in TraceReader::new(BufReader::new(file)) {
        match part.unwrap() {
            Part::Call(call) => {
                let answer = call.response.map(|response| (call.asker.other(), response.message.raw().to_vec()));
                said.insert((call.asker, call.request.message.raw().to_vec()));
                said.extend(answer);
            }
            Part::Entry(entry) => {
                if let EntryBody::Message { from, message, .. } = entry.what {
                    said.insert((from, message.raw().to_vec()));
                }
            }
            Part::Start(_) | Part::Finish { .. } => {}
        }
    }
    said
}

#[test]
#[ignore = "takes half a minute; `.ci/run recording` runs it"]
fn nothing_that_was_passed_on_over_http_is_lost_whoever_is_killed() {
    let (seed, kills) = seeded(KILLS);
    let fixture = Fixture::new();
    let trace = fixture.path().join("trace.jsonl");
    let (mut dice, mut found, mut halves) = (Dice(seed), 0, 0);
    for run in 0..kills {
        let mut new_dice = || Dice(dice.throw(u64::MAX).max(1));
        let server = Server::start(new_dice());
        let mine = format!("--no-redact -q -o trace.jsonl --metadata run={run}");
        let recorder = Recorder::before(&fixture, &format!("http://{}/mcp", server.address), &mine);
        let (sockets, heard) = (Sockets::default(), Received::default());
        let clients = [Way::Session, Way::Stateless, Way::TwoEndpoints, Way::Session].into_iter().zip(0..);
        let clients: Vec<_> = clients
            .map(|(way, number)| {
                let host = recorder.origin.strip_prefix("http://").unwrap().to_owned();
                let (sockets, heard) = (sockets.clone(), heard.clone());
                let client = Client { host, way, sockets, heard, dice: new_dice(), name: format!("s{number}") };
                std::thread::spawn(move || client.talk().unwrap_err())
            })
            .collect();
        let (began, patience) = (Instant::now(), Duration::from_micros(dice.throw(80_000)));
        while began.elapsed() < patience {
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
        sockets_end(&clients, &sockets, victim);
        clients.into_iter().for_each(|client| drop(client.join().unwrap()));
        if matches!(victim, 2 | 3) {
            recorder.signal(Signal::SIGTERM);
        }
        let (status, words) = recorder.ended();
        let told = format!("run {run} of seed {seed}: victim {victim}, status {status:?}: {words}");
        let asked = server.over();
        recover(&trace).unwrap();
        let said = said(&trace);
        for (side, received) in [(Side::Client, asked), (Side::Server, heard)] {
            for one in std::mem::take(&mut *received.whole.lock().unwrap()) {
                found += 1;
                let text = String::from_utf8_lossy(&one[..one.len().min(80)]).into_owned();
                assert!(said.contains(&(side, one)), "{told}: the {side:?} said {text} and it is lost");
            }
            for half in received.half.lock().unwrap().iter().filter(|half| !half.is_empty()) {
                halves += 1;
                let kept = said.iter().any(|(from, said)| *from == side && said.starts_with(half));
                assert!(kept, "{told}: {} bytes of what the {side:?} said are lost", half.len());
            }
        }
        let _ = std::fs::remove_file(&trace);
    }
    println!("{kills} kills, {found} messages and {halves} halves of some received and found");
    assert!(found > 0);
    let left: Vec<_> = std::fs::read_dir(fixture.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, [""; 0], "nothing is left");
}

/// Clients of a server that is gone are refused one by one, and one that listens to a stream must be told.
fn sockets_end(clients: &[JoinHandle<io::Error>], sockets: &Sockets, victim: u64) {
    let began = Instant::now();
    while victim == 2 && clients.iter().any(|client| !client.is_finished()) {
        assert!(began.elapsed() < Duration::from_secs(20), "a client still waits for a server that is gone");
        std::thread::yield_now();
    }
    sockets.close();
}
