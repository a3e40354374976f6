//! The time that a recorder adds to a call over pipes, compared with a pump that only copies bytes.
//!
//! ```text
//! direct:    client ⇄ server            added by the pump     = pump − direct
//! pump:      client ⇄ pump ⇄ server     added by the recorder = recorder − direct
//! recorder:  client ⇄ recorder ⇄ server
//! ```

use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, fcntl};
use rehearsal::record::{Recorder, StdioRecording};
use rehearsal::wire::stdio::{ClientStreams, ServerCommand};

use crate::echo;
use crate::table::{Contest, Table};

/// What makes this program the pump.
pub(crate) const PUMP: &str = "pump";
/// What makes this program the recorder; the trace follows.
pub(crate) const RECORDER: &str = "record";

/// How many calls one turn makes.
const CALLS: u32 = 5000;
/// How many calls are in flight at once.
const WINDOWS: [u32; 2] = [64, 1000];
/// The numbers of calls after which the memory of the recorder is read.
const MEMORY_CHECKS: [u32; 3] = [10_000, 100_000, 1_000_000];

pub(crate) fn measure(table: &mut Table) -> Result<(), Box<dyn Error>> {
    let what = "recording call_tool over stdio";
    let folder = std::env::temp_dir().join(format!("rehearsal-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let measured = rows(table, what, &folder).and_then(|()| memory(table, what, &folder));
    std::fs::remove_dir_all(&folder)?;
    measured
}

fn rows(table: &mut Table, what: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    let one = format!("{what}, one by one: what it adds");
    if table.wants(&one) {
        let start = |arguments: &[&str]| Peer::start(arguments, 1);
        let direct = std::cell::RefCell::new(start(&[echo::ARGUMENT])?);
        let mut pump = start(&[PUMP])?;
        let mut recorder = start(&[RECORDER, &folder.join("one.jsonl").to_string_lossy()])?;
        let added = |peer: &mut Peer| {
            let alone = direct.borrow_mut().turn()?;
            Ok::<_, Box<dyn Error>>(peer.turn()?.saturating_sub(alone))
        };
        let contest = Contest::new(one, "what a bare pump of bytes adds (aim: at most 2)");
        table.measure(contest, || added(&mut recorder), || added(&mut pump))?;
    }
    for window in WINDOWS {
        let name = format!("{what}, {window} in flight");
        if table.wants(&name) {
            let mut pump = Peer::start(&[PUMP], window)?;
            let trace = folder.join(format!("{window}.jsonl"));
            let mut recorder = Peer::start(&[RECORDER, &trace.to_string_lossy()], window)?;
            let contest = Contest::new(name, "through a bare pump of bytes (aim: at most 3)");
            table.measure(contest, || recorder.turn(), || pump.turn())?;
        }
    }
    Ok(())
}

fn memory(table: &Table, what: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    if !table.wants_memory() {
        return Ok(());
    }
    let mut recorder = Peer::start(&[RECORDER, &folder.join("memory.jsonl").to_string_lossy()], 64)?;
    let mut calls = 0;
    for check in MEMORY_CHECKS {
        while calls < check {
            recorder.exchange()?;
            calls += 64;
        }
        println!("{what}: {} of memory after {calls} calls", recorder.memory()?);
    }
    Ok(())
}

/// A server, or a program in front of it.
pub(crate) struct Peer {
    child: Child,
    stdin: File,
    stdout: File,
    window: u32,
    /// The requests that are in flight at once.
    requests: Vec<u8>,
    buffer: Vec<u8>,
}

impl Peer {
    pub(crate) fn start(arguments: &[&str], window: u32) -> Result<Peer, Box<dyn Error>> {
        let mut peer = Peer::spawn(arguments, window)?;
        peer.exchange()?; // the server behind it has started
        Ok(peer)
    }

    fn spawn(arguments: &[&str], window: u32) -> Result<Peer, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin: OwnedFd = child.stdin.take().ok_or("no stdin")?.into();
        let stdout: OwnedFd = child.stdout.take().ok_or("no stdout")?.into();
        // A whole window must fit, because this loop does not read while it writes.
        for pipe in [&stdin, &stdout] {
            fcntl(pipe, FcntlArg::F_SETPIPE_SZ(1024 * 1024))?;
        }
        let requests = (1..=window).map(|id| request(id, "hello")).collect::<String>().into_bytes();
        let (stdin, stdout) = (stdin.into(), stdout.into());
        Ok(Peer { child, stdin, stdout, window, requests, buffer: vec![0; 256 * 1024] })
    }

    /// A server of the handshake era, after the handshake.
    pub(crate) fn after_handshake(arguments: &[&str], window: u32) -> Result<Peer, Box<dyn Error>> {
        let mut peer = Peer::spawn(arguments, window)?;
        let client =
            r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}"#;
        writeln!(peer.stdin, r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{client}}}"#)?;
        if peer.stdout.read(&mut peer.buffer)? == 0 {
            return Err("the server ended".into());
        }
        peer.stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
        peer.exchange()?;
        Ok(peer)
    }

    pub(crate) fn turn(&mut self) -> Result<Duration, Box<dyn Error>> {
        let rounds = CALLS / self.window;
        let started = Instant::now();
        (0..rounds).try_for_each(|_| self.exchange())?;
        Ok(started.elapsed() / (rounds * self.window))
    }

    fn exchange(&mut self) -> Result<(), Box<dyn Error>> {
        self.stdin.write_all(&self.requests)?;
        let mut answers = 0;
        while answers < self.window {
            let read = self.stdout.read(&mut self.buffer)?;
            if read == 0 {
                return Err("the server ended".into());
            }
            answers += self.buffer[..read].iter().map(|byte| u32::from(*byte == b'\n')).sum::<u32>();
        }
        Ok(())
    }

    /// Exchanges other requests, of the same number.
    pub(crate) fn exchange_others(&mut self, requests: String) -> Result<(), Box<dyn Error>> {
        self.requests = requests.into_bytes();
        self.exchange()
    }

    /// The resident memory of the process, from the kernel: `5120 kB`.
    pub(crate) fn memory(&self) -> Result<String, Box<dyn Error>> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // An error means that it has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A call of the tool, with the end of its line.
pub(crate) fn request(id: u32, message: &str) -> String {
    let params = format!(r#"{{"name":"echo","arguments":{{"message":"{message}"}},"_meta":{{"progressToken":1}}}}"#);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}\n")
}

/// Reads and writes, in two threads, with a server behind it.
pub(crate) fn pump() -> Result<(), Box<dyn Error>> {
    let mut server = Command::new(std::env::current_exe()?);
    let mut server = server.arg(echo::ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (stdin, stdout) = (server.stdin.take().ok_or("no stdin")?, server.stdout.take().ok_or("no stdout")?);
    let streams = ClientStreams::own()?;
    let there = std::thread::spawn(move || pass(streams.input.into(), OwnedFd::from(stdin).into()));
    pass(OwnedFd::from(stdout).into(), streams.output.into())?;
    drop(there);
    server.wait()?;
    Ok(())
}

fn pass(mut from: File, mut to: File) -> io::Result<()> {
    let mut chunk = vec![0; 64 * 1024];
    loop {
        match from.read(&mut chunk)? {
            0 => return Ok(()),
            count => to.write_all(&chunk[..count])?,
        }
    }
}

/// Records a server behind it, as `rehearse record -- …` does.
pub(crate) fn record(trace: &str) -> Result<(), Box<dyn Error>> {
    let recorder = Recorder::builder().trace(trace).build();
    let server = ServerCommand::new(std::env::current_exe()?).args([echo::ARGUMENT]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let recording = StdioRecording::start(&recorder, &server, ClientStreams::own()?).await?;
        recording.ended().await;
        Ok(())
    })
}
