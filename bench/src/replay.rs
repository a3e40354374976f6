//! A replay beside a mock that says the same, and large recordings beside small ones.

use std::error::Error;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rehearsal::Client;
use rehearsal::replay::{Options, Replay};
use rehearsal::store::Input;
use rehearsal::wire::{MESSAGE_LIMIT, stdio};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::measure::Contest;
use crate::mock::{Folder, first_answer, over_stdio};
use crate::stdio::sequential;
use crate::table::Table;

/// What makes this program a replay instead of the benchmark: a trace follows.
pub(crate) const ARGUMENT: &str = "replay";

/// How many calls one turn makes.
const CALLS: u32 = 10_000;
/// How many recordings a small and a large trace have.
const FEW: u32 = 1_000;
const MANY: u32 = 1_000_000;

pub(crate) fn measure(table: &mut Table) -> Result<(), Box<dyn Error>> {
    let echo = Contest::new("replay: echo over stdio", "a mock that says the same");
    let lookup = Contest::new("replay: a call among 1,000,000 recordings", "among 1,000");
    let start = Contest::new("replay: from start to the first answer, 1,000,000 recordings", "the mock with one tool");
    if ![&echo, &lookup, &start].iter().any(|contest| table.wants(&contest.what)) {
        return Ok(());
    }
    let folder = Folder::new("replay")?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mock = folder.file("echo", "  - { name: echo, answers: [{ text: hello }] }\n")?;
    let small = trace(&folder.path("small.jsonl"), FEW)?;
    let one = runtime.block_on(over_stdio(&[ARGUMENT.as_ref(), &small]))?;
    let other = runtime.block_on(over_stdio(&[crate::mock::ARGUMENT.as_ref(), &mock]))?;
    table.measure(echo, || sequential(&runtime, &one, CALLS), || sequential(&runtime, &other, CALLS))?;
    if table.wants(&lookup.what) || table.wants(&start.what) {
        let large = trace(&folder.path("large.jsonl"), MANY)?;
        let many = runtime.block_on(over_stdio(&[ARGUMENT.as_ref(), &large]))?;
        table.measure(lookup, || scattered(&runtime, &many, MANY), || scattered(&runtime, &one, FEW))?;
        runtime.block_on(many.close());
        table.measure(
            start,
            || first_answer(&[ARGUMENT.as_ref(), &large]),
            || first_answer(&[crate::mock::ARGUMENT.as_ref(), &mock]),
        )?;
    }
    runtime.block_on(async { (one.close().await, other.close().await) });
    Ok(())
}

/// Calls all over a recording, so that hardly one is asked twice.
fn scattered(runtime: &Runtime, client: &Client, count: u32) -> Result<Duration, Box<dyn Error>> {
    let started = Instant::now();
    runtime.block_on(async {
        for turn in 0..CALLS {
            let number = u64::from(turn) * 7_919 % u64::from(count);
            let response = client.call_tool("echo", json!({"message": format!("number {number}")})).await?;
            if !response.success() {
                return Err(format!("number {number} was not found").into());
            }
        }
        Ok::<(), Box<dyn Error>>(())
    })?;
    Ok(started.elapsed() / CALLS)
}

/// A trace of so many calls, each about 500 bytes, and one of `hello`.
fn trace(path: &Path, count: u32) -> Result<PathBuf, Box<dyn Error>> {
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    let head = r#"{"format":1,"session_id":"bench","server_info":{},"started_at":null,"metadata":{},"calls":["#;
    out.write_all(head.as_bytes())?;
    let padding = "x".repeat(250);
    for number in 0..=count {
        let message = if number == count { "hello".to_owned() } else { format!("number {number}") };
        let text = if number == count { "hello" } else { padding.as_str() };
        let (asked, answered) = (u64::from(number) * 2, u64::from(number) * 2 + 1);
        let comma = if number == 0 { "" } else { "," };
        write!(
            out,
            r#"{comma}{{"request":{{"seq":{asked},"at_ms":{asked},"id":{number},"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"{message}"}}}}}},"response":{{"seq":{answered},"at_ms":{answered},"success":true,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}},"duration_ms":1}}"#
        )?;
    }
    out.write_all(b"],\"messages\":[],\"ended_at\":null,\"end\":null}\n")?;
    out.flush()?;
    // The index is there when it is measured.
    Replay::open(&Input::File(path.to_owned()), Options::default())?;
    Ok(path.to_owned())
}

/// Serves a trace on stdin and stdout.
pub(crate) fn serve(file: Option<&String>) -> Result<(), Box<dyn Error>> {
    let path = file.ok_or("which trace?")?;
    let replay = Replay::open(&Input::File(path.into()), Options::default())?;
    let server = replay.server(|_, _| {});
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        server.serve(stdio::own(MESSAGE_LIMIT)?).await;
        Ok(())
    })
}
