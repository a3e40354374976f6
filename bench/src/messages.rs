//! What reading a message costs, and pairing it with its request.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hint::black_box;
use std::time::{Duration, Instant};

use rehearsal::core::exchange::{Channel, Pairing, Side};
use rehearsal::core::message::{Message, Method};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::table::{Contest, Table, each};

/// How many bytes one turn reads, about.
const BYTES: usize = 32 * 1024 * 1024;

pub(crate) fn measure_parsing(table: &mut Table) {
    let call = json!({"name": "echo", "arguments": {"message": "hello"}});
    let request = Message::request(1.into(), Method::TOOLS_CALL, Some(&call));
    let inputs = [
        ("a small request", request),
        ("a result of 64 KiB", Message::result(1.into(), &result(64 * 1024))),
        ("a result of 1 MiB", Message::result(1.into(), &result(1024 * 1024))),
    ];
    for (name, message) in inputs {
        let raw = message.expect("a JSON value can always be written").raw().clone();
        let times = u32::try_from((BYTES / raw.len()).min(200_000)).unwrap_or(u32::MAX);
        let ours = || turn(times, || drop(black_box(Message::parse(black_box(&raw).clone()))));
        let skip = || turn(times, || drop(black_box(serde_json::from_slice::<IgnoredAny>(black_box(&raw)))));
        let read = || turn(times, || drop(black_box(serde_json::from_slice::<Value>(black_box(&raw)))));
        let contest = |bare| Contest { what: format!("parse {name}"), bare, bytes: Some(raw.len()) };
        let Ok(()) = table.measure(contest("serde_json, everything ignored"), ours, skip);
        let Ok(()) = table.measure(contest("serde_json into a Value"), ours, read);
    }
}

fn turn(times: u32, operation: impl FnMut()) -> Result<Duration, Infallible> {
    Ok(each(times, operation))
}

/// A tool's result of about this size: text with escapes, and structured content with numbers.
fn result(size: usize) -> Value {
    let rows = size / 256;
    let text = |row: usize| format!("row {row}:\t\"a line of text\" that goes on for a while — and ends here\n");
    let content: Vec<Value> = (0..rows).map(|row| json!({"type": "text", "text": text(row)})).collect();
    let table: Vec<Value> = (0..rows)
        .map(|row| json!({"id": row, "name": format!("item {row}"), "price": row as f64 * 1.25, "tags": ["a", "b"], "sold": row % 2 == 0}))
        .collect();
    json!({"content": content, "structuredContent": {"rows": table}, "isError": false})
}

/// How many requests are open while others come and go.
const OPEN: [i64; 3] = [1, 1_000, 100_000];
/// How many exchanges one turn makes.
const EXCHANGES: u32 = 50_000;

pub(crate) fn measure_pairing(table: &mut Table) {
    for open in OPEN {
        let what = format!("pair a message, {open} open");
        if !table.wants(&what) {
            continue;
        }
        let mut pairing = Pairing::<()>::default();
        let mut map = HashMap::new();
        for id in 0..open {
            pairing.step(Side::Client, Channel::MAIN, Duration::ZERO, request(id));
            map.insert(id, request(id));
        }
        let messages: Vec<_> = (0..i64::from(EXCHANGES)).map(|number| exchange(open + number)).collect();
        let ours = || {
            let messages = messages.clone();
            let started = Instant::now();
            for (_, request, answer) in messages {
                black_box(pairing.step(Side::Client, Channel::MAIN, Duration::ZERO, request));
                black_box(pairing.step(Side::Server, Channel::MAIN, Duration::ZERO, answer));
            }
            Ok::<_, Infallible>(started.elapsed() / (2 * EXCHANGES))
        };
        let bare = || {
            let messages = messages.clone();
            let started = Instant::now();
            for (id, request, answer) in messages {
                map.insert(id, request);
                black_box((map.remove(&id), answer));
            }
            Ok(started.elapsed() / (2 * EXCHANGES))
        };
        let contest = Contest::new(what, "a hash map by number");
        let Ok(()) = table.measure(contest, ours, bare);
    }
}

fn exchange(id: i64) -> (i64, Message, Message) {
    let result = json!({"content": [{"type": "text", "text": "hello"}]});
    let answer = Message::result(id.into(), &result).expect("a JSON value can always be written");
    (id, request(id), answer)
}

fn request(id: i64) -> Message {
    let params = json!({"name": "echo", "arguments": {"message": "hello"}});
    Message::request(id.into(), Method::TOOLS_CALL, Some(&params)).expect("a JSON value can always be written")
}
