//! Calls over the pipes of a child process.

use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, fcntl};
use rehearsal::Client;
use rehearsal::client::Protocol;
use rehearsal::core::protocol::Revision;
use serde::Serialize;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::echo;
use crate::table::{Contest, Table};

/// How many calls one turn makes.
const CALLS: u32 = 20_000;
/// How many calls are in flight at once.
const WINDOWS: [u32; 2] = [64, 1000];

pub(crate) const BARE: &str = "a blocking loop: write, read";

pub(crate) fn measure(table: &mut Table) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let eras = [("2025-11-25", Protocol::Legacy(Revision::LATEST_LEGACY)), ("2026-07-28", Protocol::Modern)];
    for (version, protocol) in eras {
        let (client, request) = runtime.block_on(connect(protocol))?;
        let mut bare = BareLoop::start(request)?;
        let what = format!("call_tool over stdio, {version}");
        let one = format!("{what}, one by one");
        table.measure(Contest::new(one, BARE), || sequential(&runtime, &client, CALLS), || bare.sequential())?;
        for window in WINDOWS {
            let name = format!("{what}, {window} in flight");
            let contest = Contest::new(&name, "a write for each request, then reads");
            let ours = || pipelined(&runtime, &client, window);
            table.measure(contest, ours, || bare.pipelined(window, Writes::Each))?;
            let contest = Contest::new(&name, "one write for all of them, then reads");
            table.measure(contest, ours, || bare.pipelined(window, Writes::One))?;
        }
        runtime.block_on(client.close());
    }
    #[cfg(feature = "peers")]
    crate::rmcp_echo::measure_client(table, &runtime, CALLS)?;
    Ok(())
}

/// The arguments of every call: a type of the caller that costs nothing to build.
#[derive(Serialize)]
pub(crate) struct Arguments {
    message: &'static str,
}

pub(crate) fn arguments() -> Arguments {
    Arguments { message: "hello" }
}

/// A client, and the bytes of one of its calls.
async fn connect(protocol: Protocol) -> Result<(Client, Vec<u8>), Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let client = Client::command(program).args([echo::ARGUMENT]).protocol(protocol).connect().await?;
    let response = client.call_tool("echo", arguments()).await?;
    if response.content() != "hello" {
        return Err("the server that the benchmark talks to is not its own".into());
    }
    Ok((client, response.exchange().request.message.raw().to_vec()))
}

/// One call after the other, in a task: tokio looks at its driver once more whenever the future of `block_on` itself is
/// woken, which is a system call a call that has nothing to do with us.
pub(crate) fn sequential(runtime: &Runtime, client: &Client, calls: u32) -> Result<Duration, Box<dyn Error>> {
    let client = client.clone();
    let took = runtime.block_on(runtime.spawn(async move {
        let started = Instant::now();
        for _ in 0..calls {
            client.call_tool("echo", arguments()).await?;
        }
        Ok::<_, rehearsal::client::ClientError>(started.elapsed() / calls)
    }));
    Ok(took??)
}

fn pipelined(runtime: &Runtime, client: &Client, window: u32) -> Result<Duration, Box<dyn Error>> {
    runtime.block_on(async {
        let started = Instant::now();
        let mut callers = JoinSet::new();
        for _ in 0..window {
            let client = client.clone();
            callers.spawn(async move {
                for _ in 0..CALLS / window {
                    client.call_tool("echo", arguments()).await?;
                }
                Ok::<_, rehearsal::client::ClientError>(())
            });
        }
        while let Some(done) = callers.join_next().await {
            done??;
        }
        Ok(started.elapsed() / (CALLS / window * window))
    })
}

/// How the requests of a window are written.
#[derive(Clone, Copy)]
enum Writes {
    /// One write for each request, as a client must do that delays no caller.
    Each,
    /// One write for all requests, which needs a caller that has all of them.
    One,
}

/// A client without a library: a blocking loop that sends the calls.
pub(crate) struct BareLoop {
    child: Child,
    stdin: File,
    stdout: File,
    /// One request and its line end.
    request: Vec<u8>,
    buffer: Vec<u8>,
}

impl BareLoop {
    pub(crate) fn start(mut request: Vec<u8>) -> Result<BareLoop, Box<dyn Error>> {
        request.push(b'\n');
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.arg(echo::ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin: OwnedFd = child.stdin.take().ok_or("no stdin")?.into();
        let stdout: OwnedFd = child.stdout.take().ok_or("no stdout")?.into();
        // A whole window must fit, because this loop does not read while it writes.
        for pipe in [&stdin, &stdout] {
            fcntl(pipe, FcntlArg::F_SETPIPE_SZ(1024 * 1024))?;
        }
        let mut bare =
            BareLoop { child, stdin: stdin.into(), stdout: stdout.into(), request, buffer: vec![0; 256 * 1024] };
        bare.exchange(1, Writes::Each)?; // the handshake
        Ok(bare)
    }

    /// Writes that many requests and reads as many answers.
    fn exchange(&mut self, count: u32, writes: Writes) -> Result<(), Box<dyn Error>> {
        match writes {
            Writes::Each => (0..count).try_for_each(|_| self.stdin.write_all(&self.request))?,
            Writes::One => self.stdin.write_all(&self.request.repeat(count as usize))?,
        }
        let mut answers = 0;
        while answers < count {
            let read = self.stdout.read(&mut self.buffer)?;
            if read == 0 {
                return Err("the server ended".into());
            }
            answers += self.buffer[..read].iter().map(|byte| u32::from(*byte == b'\n')).sum::<u32>();
        }
        Ok(())
    }

    pub(crate) fn sequential(&mut self) -> Result<Duration, Box<dyn Error>> {
        self.pipelined(1, Writes::Each)
    }

    fn pipelined(&mut self, window: u32, writes: Writes) -> Result<Duration, Box<dyn Error>> {
        let started = Instant::now();
        for _ in 0..CALLS / window {
            self.exchange(window, writes)?;
        }
        Ok(started.elapsed() / (CALLS / window * window))
    }
}

impl Drop for BareLoop {
    fn drop(&mut self) {
        // An error means that it has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
