//! A replay beside a hard-coded server on the official Rust SDK, and large recordings beside small ones.

use std::error::Error;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rehearsal::Client;
use rehearsal::replay::{Replay, ReplayOptions};
use rehearsal::serve::http_options;
use rehearsal::store::Input;
use rehearsal::wire::{MESSAGE_LIMIT, stdio};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::mock::{Folder, end_with_stdin, first_answer, on_http, over_stdio};
use crate::peer_clients;
use crate::record::{Peer, request};
use crate::table::{Contest, Table};

/// What makes this program a replay instead of the benchmark: a trace follows.
pub(crate) const ARGUMENT: &str = "replay";
/// The argument for the same role over HTTP.
pub(crate) const OVER_HTTP: &str = "replay-http";

/// How many recordings a small and a large trace have.
const FEW: u32 = 1_000;
const MANY: u32 = 1_000_000;
/// How many calls are in flight while its memory is looked at.
const WINDOW: u32 = 50;

pub(crate) fn measure(table: &mut Table) -> Result<(), Box<dyn Error>> {
    let folder = Folder::new("replay")?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let small = trace(&folder.path("small.jsonl"), FEW)?;
    #[cfg(feature = "peers")]
    crate::rmcp_echo::measure(
        table,
        &runtime,
        &crate::rmcp_echo::Ours {
            name: "replay",
            on_stdio: [ARGUMENT.as_ref(), &small],
            over_http: [OVER_HTTP.as_ref(), &small],
        },
    )?;
    let lookup = Contest::new("replay: a call that is new, among 1,000,000 recordings", "among 1,000");
    let start = Contest::new("replay: from start to the first answer, 1,000,000 recordings", "with 1,000");
    if table.wants(&lookup.what) || table.wants(&start.what) || table.wants_memory() {
        let large = folder.path("large.jsonl");
        let started = Instant::now();
        trace(&large, MANY)?;
        memory(table, &large, started.elapsed())?;
        table.measure(lookup, || fresh(&runtime, &large, MANY), || fresh(&runtime, &small, FEW))?;
        table.measure(
            start,
            || first_answer(&[ARGUMENT.as_ref(), &large]),
            || first_answer(&[ARGUMENT.as_ref(), &small]),
        )?;
    }
    peer_clients::measure(table, &runtime, &folder)
}

/// How much a replay holds, beside what it serves.
fn memory(table: &Table, trace: &Path, took: Duration) -> Result<(), Box<dyn Error>> {
    if !table.wants_memory() {
        return Ok(());
    }
    let size = |path: &Path| std::fs::metadata(path).map(|file| file.len() / 1_000_000);
    let index = trace.with_extension("jsonl.index");
    println!("replay: a trace of {} MB written and its index of {} MB built in {took:?}", size(trace)?, size(&index)?);
    let mut replay = Peer::start(&[ARGUMENT, &trace.to_string_lossy()], WINDOW)?;
    for round in 0..MANY / WINDOW {
        let numbers = (0..WINDOW).map(|id| (id, (u64::from(round * WINDOW + id) * 7_919) % u64::from(MANY)));
        replay.exchange_others(numbers.map(|(id, number)| request(id, &format!("number {number}"))).collect())?;
    }
    println!("replay: {} of memory after {MANY} different calls", replay.memory()?);
    Ok(())
}

/// Calls all over a recording, each for the first time.
fn fresh(runtime: &Runtime, trace: &Path, count: u32) -> Result<Duration, Box<dyn Error>> {
    let client = runtime.block_on(over_stdio(&[ARGUMENT.as_ref(), trace]))?;
    let took = scattered(runtime, &client, count, 0..FEW);
    runtime.block_on(client.close());
    took
}

/// Calls spread over a recording, so that hardly any is repeated.
pub(crate) fn scattered(
    runtime: &Runtime,
    client: &Client,
    count: u32,
    calls: Range<u32>,
) -> Result<Duration, Box<dyn Error>> {
    let (started, times) = (Instant::now(), calls.len());
    runtime.block_on(async {
        for turn in calls {
            let number = u64::from(turn) * 7_919 % u64::from(count);
            let response = client.call_tool("echo", json!({"message": format!("number {number}")})).await?;
            if !response.success() {
                return Err(format!("number {number}: {}", response.error_message().unwrap_or_default()).into());
            }
        }
        Ok::<(), Box<dyn Error>>(())
    })?;
    Ok(started.elapsed() / u32::try_from(times)?)
}

/// The recorded calls: a message for each, and the text that answers it. The last text is `hello`.
pub(crate) fn calls(count: u32) -> impl Iterator<Item = (String, String)> {
    let padding = "x".repeat(250);
    let numbers = (0..count).map(move |number| (format!("number {number}"), padding.clone()));
    numbers.chain([("hello".to_owned(), "hello".to_owned())])
}

/// A trace of so many calls, each about 500 bytes, with its index.
pub(crate) fn trace(path: &Path, count: u32) -> Result<PathBuf, Box<dyn Error>> {
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    let head = r#"{"format":1,"session_id":"bench","server_info":{},"started_at":null,"metadata":{},"calls":["#;
    out.write_all(head.as_bytes())?;
    for (number, (message, text)) in calls(count).enumerate() {
        let (request_seq, response_seq) = (number * 2, number * 2 + 1);
        let comma = if number == 0 { "" } else { "," };
        write!(
            out,
            r#"{comma}{{"request":{{"seq":{request_seq},"at_ms":{request_seq},"id":{number},"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"{message}"}}}}}},"response":{{"seq":{response_seq},"at_ms":{response_seq},"success":true,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}},"duration_ms":1}}"#
        )?;
    }
    out.write_all(b"],\"messages\":[],\"ended_at\":null,\"end\":null}\n")?;
    out.flush()?;
    // The index is there when it is measured.
    Replay::open(&Input::File(path.to_owned()), ReplayOptions::default())?;
    Ok(path.to_owned())
}

/// Serves a trace on stdin and stdout.
pub(crate) fn serve(file: Option<&String>) -> Result<(), Box<dyn Error>> {
    let server = open(file)?.server();
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        server.serve(stdio::own_stdio(MESSAGE_LIMIT)?).await;
        Ok(())
    })
}

/// Serves a trace over HTTP, and prints the URL to stdout; until stdin ends.
pub(crate) fn serve_http(file: Option<&String>) -> Result<(), Box<dyn Error>> {
    end_with_stdin();
    let server = open(file)?.server();
    let options = http_options(&server);
    on_http(server, options)
}

fn open(file: Option<&String>) -> Result<Replay, Box<dyn Error>> {
    let path = file.ok_or("which trace?")?;
    Ok(Replay::open(&Input::File(path.into()), ReplayOptions::default())?)
}
