//! Requests and answers finding each other, however many wait.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hint::black_box;
use std::time::{Duration, Instant};

use rehearsal::core::exchange::{Channel, Pairing, Side};
use rehearsal::core::message::{Message, Method};
use serde_json::json;

use crate::measure::Contest;
use crate::table::Table;

/// How many requests are open while others come and go.
const OPEN: [i64; 3] = [1, 1_000, 100_000];
/// How many exchanges one turn makes.
const EXCHANGES: u32 = 50_000;

pub(crate) fn measure(table: &mut Table) {
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
