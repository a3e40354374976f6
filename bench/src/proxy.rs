//! What a recorder in the middle adds to a call over HTTP, beside what a pump of bytes adds there.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rehearsal::record::{HttpRecording, Recorder};
use rehearsal::wire::http::proxy::HttpProxyOptions;
use tokio::runtime::Builder;

use crate::http::{self, Server, end_with_stdin};
use crate::table::{Contest, Table};

/// What makes this program a pump: it copies bytes to the address that follows, and back.
pub(crate) const PUMP: &str = "pump-tcp";
/// What makes this program a recorder of the server at the address that follows, into the trace after that.
pub(crate) const RECORDER: &str = "record-http";

/// How many calls one slice of a turn makes.
const CALLS: u32 = 500;
/// How many slices a turn has, each with its own look at the direct way.
const SLICES: u32 = 10;
/// How many calls are in flight where there are many.
const MANY: usize = 32;

pub(crate) fn measure(table: &mut Table) -> Result<(), Box<dyn Error>> {
    let rows = [
        ("added by record --url, 2026-07-28", SessionMode::None, 1),
        ("added by record --url, 2025-11-25", SessionMode::Named, 1),
        ("added by record --url, 32 in flight", SessionMode::None, MANY),
    ];
    if !rows.iter().any(|(what, ..)| table.wants(what)) {
        return Ok(());
    }
    let server = Server::start(&[http::ARGUMENT])?;
    let directory = tempfile::tempdir()?;
    let trace = directory.path().join("trace.jsonl");
    let there = server.at.to_string();
    let pump = Server::start(&[PUMP, &there])?;
    let recorder = Server::start(&[RECORDER, &there, &trace.to_string_lossy()])?;
    for (what, session, in_flight) in rows {
        let mut direct = Calls::connect(server.at, session, in_flight)?;
        let mut pumped = Calls::connect(pump.at, session, in_flight)?;
        let mut recorded = Calls::connect(recorder.at, session, in_flight)?;
        let direct = std::cell::RefCell::new(&mut direct);
        let contest = Contest::new(what, "what a pump of bytes adds");
        table.measure(contest, || added(&mut recorded, &direct), || added(&mut pumped, &direct))?;
    }
    Ok(())
}

/// How much longer a call takes on a way than directly.
fn added(way: &mut Calls, direct: &std::cell::RefCell<&mut Calls>) -> Result<Duration, Box<dyn Error>> {
    let (mut through, mut without) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..SLICES {
        through += way.make()?;
        without += direct.borrow_mut().make()?;
    }
    Ok(through.saturating_sub(without).max(Duration::from_nanos(1)) / (SLICES * CALLS))
}

/// Whether calls belong to an HTTP session.
#[derive(Clone, Copy)]
pub(crate) enum SessionMode {
    None,
    Named,
}

/// Repeats one call, without a client library.
pub(crate) struct Calls {
    streams: Vec<TcpStream>,
    request: Vec<u8>,
    /// How long each response is.
    response: usize,
}

impl Calls {
    pub(crate) fn connect(at: SocketAddr, session: SessionMode, in_flight: usize) -> Result<Calls, Box<dyn Error>> {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
        let header = match session {
            SessionMode::None => "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: echo",
            SessionMode::Named => "mcp-protocol-version: 2025-11-25\r\nmcp-session-id: 8d6f3a52c5f04d0f",
        };
        let accept = "accept: application/json, text/event-stream\r\ncontent-type: application/json";
        let head =
            format!("POST /mcp HTTP/1.1\r\nhost: {at}\r\n{accept}\r\n{header}\r\ncontent-length: {}", body.len());
        let request = format!("{head}\r\n\r\n{body}").into_bytes();
        let mut streams = Vec::new();
        for _ in 0..in_flight {
            let stream = TcpStream::connect(at)?;
            stream.set_nodelay(true)?;
            streams.push(stream);
        }
        // All but the date is always the same, and that is always as long.
        let mut first = vec![0; 4096];
        streams[0].write_all(&request)?;
        let response = streams[0].read(&mut first)?;
        assert!(first.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&first[..response]));
        Ok(Calls { streams, request, response })
    }

    /// How long one call takes.
    pub(crate) fn turn(&mut self) -> Result<Duration, Box<dyn Error>> {
        let times = (0..SLICES).map(|_| self.make()).collect::<io::Result<Vec<_>>>()?;
        Ok(times.iter().sum::<Duration>() / (SLICES * CALLS))
    }

    fn make(&mut self) -> io::Result<Duration> {
        let mut response = vec![0; self.response];
        let started = Instant::now();
        for _ in 0..CALLS / u32::try_from(self.streams.len()).unwrap_or(1) {
            for stream in &mut self.streams {
                stream.write_all(&self.request)?;
            }
            for stream in &mut self.streams {
                stream.read_exact(&mut response)?;
            }
        }
        Ok(started.elapsed())
    }
}

/// Copies bytes, with two threads for each socket, and prints its address to stdout.
pub(crate) fn pump(words: &[String]) -> Result<(), Box<dyn Error>> {
    let there: SocketAddr = words.first().ok_or("expected the address of the server")?.parse()?;
    end_with_stdin();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    writeln!(io::stdout(), "{}", listener.local_addr()?)?;
    for client in listener.incoming() {
        let (client, server) = (client?, TcpStream::connect(there)?);
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
        }
        for (from, to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
            std::thread::spawn(move || copy(from, to));
        }
    }
    Ok(())
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; 32 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    // An error means that the peer has closed the connection already.
    let _ = to.shutdown(Shutdown::Write);
}

/// Records the server into a trace, and prints its address to stdout.
pub(crate) fn record(words: &[String]) -> Result<(), Box<dyn Error>> {
    let [there, trace] = words else {
        return Err("expected the address of the server and the path of the trace".into());
    };
    end_with_stdin();
    let recorder = Recorder::builder().trace(trace).build();
    let options = HttpProxyOptions::new("127.0.0.1:0".parse()?, &format!("http://{there}/mcp"))?;
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let recording = HttpRecording::start(&recorder, options).await?;
        writeln!(io::stdout(), "{}", recording.address())?;
        std::future::pending().await
    })
}
