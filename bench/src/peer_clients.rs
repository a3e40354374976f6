//! A replay compared with the replays of other projects, on the sizes that they can load.
//!
//! `bench/peers` installs them and sets environment variables with their paths; without these nothing is measured.

use std::error::Error;
use std::io::{BufWriter, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rehearsal::Client;
use rehearsal::client::{HttpTransport, Protocol};
use rehearsal::core::protocol::Revision;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::mock::{Folder, first_answer, first_answer_of, over_stdio};
use crate::replay::{ARGUMENT, calls, scattered, trace};
use crate::table::{Contest, Table};

/// Environment variables with the paths of the programs.
const CASSETTE: &str = "BENCH_MCP_CASSETTE";
const RECORDER: &str = "BENCH_MCP_RECORDER";

/// How many recordings.
const SIZES: [u32; 3] = [1_000, 10_000, 100_000];
/// How many calls one turn makes.
const CALLS: u32 = 50;
/// Maximum time for a peer to start.
const START_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) fn measure(table: &mut Table, runtime: &Runtime, folder: &Folder) -> Result<(), Box<dyn Error>> {
    for size in SIZES {
        let ours = [Path::new(ARGUMENT), &folder.path(&format!("{size}.jsonl"))];
        let call = format!("replay: a call among {size} recordings");
        let start = format!("replay: from start to the first answer, {size} recordings");
        let (cassette, recorder) = (std::env::var_os(CASSETTE), std::env::var_os(RECORDER));
        if !table.wants(&call) && !table.wants(&start) || cassette.is_none() && recorder.is_none() {
            continue;
        }
        trace(ours[1], size)?;
        if let Some(program) = cassette {
            let cassette = folder.path(&format!("{size}.cassette.json"));
            write_json(&cassette, &cassette_of(size))?;
            let serve = || {
                let mut command = Command::new(&program);
                command.args(["serve", "--ordering", "none"]).arg(&cassette).stderr(Stdio::null());
                command
            };
            let client = Client::command(&program).args(["serve", "--ordering", "none"]).args([&cassette]);
            let client = client.timeout(START_TIMEOUT).protocol(Protocol::Legacy(Revision::LATEST_LEGACY));
            let theirs = runtime.block_on(client.connect())?;
            contest(table, runtime, size, [&call, &start], &ours, &theirs, "mcp-cassette 0.4 on stdio", || {
                first_answer_of(&mut serve())
            })?;
            runtime.block_on(theirs.close());
        }
        if let Some(program) = recorder {
            let cassette = folder.path(&format!("{size}.recorder.json"));
            write_json(&cassette, &recorder_of(size))?;
            let serving = Serving::start(Path::new(&program), &cassette)?;
            let (theirs, _) = serving.client(runtime)?;
            contest(table, runtime, size, [&call, &start], &ours, &theirs, "mcp-recorder 0.5 over HTTP", || {
                let started = Instant::now();
                let serving = Serving::start(Path::new(&program), &cassette)?;
                let (client, ready) = serving.client(runtime)?;
                runtime.block_on(client.close());
                Ok(ready.duration_since(started))
            })?;
            runtime.block_on(theirs.close());
        }
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "what two rows are made of, from the one place that knows both peers")]
fn contest(
    table: &mut Table,
    runtime: &Runtime,
    size: u32,
    [call, start]: [&str; 2],
    ours: &[&Path; 2],
    theirs: &Client,
    peer: &'static str,
    mut started: impl FnMut() -> Result<Duration, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let client = runtime.block_on(over_stdio(ours))?;
    // One of the peers answers each recording only once.
    let turn = |turn: &mut u32| {
        *turn += CALLS;
        *turn - CALLS..*turn
    };
    let (mut first, mut second) = (0, 0);
    table.measure(
        Contest::new(call, peer),
        || scattered(runtime, &client, size, turn(&mut first)),
        || scattered(runtime, theirs, size, turn(&mut second)),
    )?;
    runtime.block_on(client.close());
    table.measure(Contest::new(start, peer), || first_answer(ours), &mut started)
}

/// A peer that listens; ends when it is dropped.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    fn start(program: &Path, cassette: &Path) -> Result<Serving, Box<dyn Error>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(program);
        command.arg("replay").arg("--cassette").arg(cassette).arg("--port").arg(port.to_string());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Serving { child, url: format!("http://127.0.0.1:{port}/mcp") })
    }

    /// Connects a client as soon as the peer answers, and returns the time of that.
    fn client(&self, runtime: &Runtime) -> Result<(Client, Instant), Box<dyn Error>> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let client = Client::url(&self.url).transport(HttpTransport::Streamable);
            let client = client.protocol(Protocol::Legacy(Revision::LATEST_LEGACY)).client_info("bench", "1");
            match runtime.block_on(client.connect()) {
                Ok(client) => return Ok((client, Instant::now())),
                Err(error) if Instant::now() > deadline => return Err(error.into()),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // An error means that it has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_json(path: &PathBuf, value: &Value) -> Result<(), Box<dyn Error>> {
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    serde_json::to_writer(&mut out, value)?;
    Ok(out.flush()?)
}

/// Method, params and result of the recorded calls, first the handshake of our client.
fn exchanges(count: u32) -> impl Iterator<Item = (&'static str, Value, Value)> {
    let version = Revision::LATEST_LEGACY.as_str();
    let info = json!({"name": "bench", "version": "1"});
    let request = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info});
    let result = json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info});
    let calls = calls(count).map(|(message, text)| {
        let params = json!({"name": "echo", "arguments": {"message": message}});
        ("tools/call", params, json!({"content": [{"type": "text", "text": text}]}))
    });
    std::iter::once(("initialize", request, result)).chain(calls)
}

fn cassette_of(count: u32) -> Value {
    let message = |seq: usize, sender: &str, kind: &str, method: Option<&str>, payload: Value| {
        json!({
            "seq": seq, "t_offset_ms": seq, "sender": sender, "kind": kind, "method": method, "msg_id": seq / 2,
            "payload": payload, "redacted": false, "exchange": null, "channel": null,
        })
    };
    let messages = exchanges(count).enumerate().flat_map(|(id, (method, params, result))| {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let response = json!({"jsonrpc": "2.0", "id": id, "result": result});
        [
            message(id * 2, "client", "request", Some(method), request),
            message(id * 2 + 1, "server", "response", None, response),
        ]
    });
    json!({
        "format_version": 3, "recorded_at": "2026-07-28T12:00:00Z", "transport": "stdio", "server_url": null,
        "session_id": null, "protocol_version": Revision::LATEST_LEGACY.as_str(),
        "server_info": {"name": "bench", "version": "1"}, "redaction": null,
        "messages": messages.collect::<Vec<_>>(),
    })
}

fn recorder_of(count: u32) -> Value {
    let interactions = exchanges(count).enumerate().map(|(id, (method, params, result))| {
        json!({
            "type": "jsonrpc_request",
            "request": {"jsonrpc": "2.0", "id": id, "method": method, "params": params},
            "response": {"jsonrpc": "2.0", "id": id, "result": result},
            "response_is_sse": false, "response_status": 200, "latency_ms": 1, "http_method": null, "http_path": null,
        })
    });
    let metadata = json!({
        "recorded_at": "2026-07-28T12:00:00+00:00", "server_url": "stdio:/bench", "transport_type": "stdio",
        "protocol_version": Revision::LATEST_LEGACY.as_str(), "server_info": {"name": "bench", "version": "1"},
    });
    json!({"version": "1.0", "metadata": metadata, "interactions": interactions.collect::<Vec<_>>()})
}
