//! Random sessions for the property tests of this module.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::{Entry, EntryBody, HttpHead, SessionEnd, SessionStart};
use crate::exchange::{Channel, Side};
use crate::message::{GarbledReason, Message};

/// The entries of a session, numbered from 0 in recorded order.
pub(crate) fn entries() -> impl Strategy<Value = Vec<Entry>> {
    proptest::collection::vec((0..5_000_000_u64, what()), 0..40).prop_map(|events| {
        let mut at = Duration::ZERO;
        let entry = |(seq, (later, what))| {
            at += Duration::from_micros(later);
            Entry::new(seq, at, what)
        };
        (0..).zip(events).map(entry).collect()
    })
}

pub(super) fn start() -> impl Strategy<Value = SessionStart> {
    let map = || proptest::collection::hash_map(any::<String>(), any::<String>(), 0..3);
    let time = prop::option::of(-1_000_000_000_000..4_000_000_000_000_i64);
    (any::<String>(), map(), map(), time).prop_map(|(session_id, server_info, metadata, time)| {
        let map = |map: std::collections::HashMap<String, String>| -> Map<String, Value> {
            map.into_iter().map(|(key, value)| (key, Value::from(value))).collect()
        };
        let started_at = time.map(|milliseconds| jiff::Timestamp::from_millisecond(milliseconds).unwrap());
        SessionStart { session_id, server_info: map(server_info), started_at, metadata: map(metadata) }
    })
}

fn what() -> impl Strategy<Value = EntryBody> {
    let text = || prop::option::of(any::<String>());
    prop_oneof![
        12 => (side(), channel(), message(), text()).prop_map(|(from, channel, message, event_id)| {
            EntryBody::Message { from, channel, message, event_id }
        }),
        1 => (side(), channel(), head()).prop_map(|(from, channel, head)| EntryBody::Http { from, channel, head }),
        1 => (channel(), text(), text(), any::<String>(), any::<Option<u64>>())
            .prop_map(|(channel, name, id, data, retry)| EntryBody::Event { channel, name, id, data, retry }),
        1 => (channel(), text()).prop_map(|(channel, why)| EntryBody::ChannelEnded { channel, why }),
        1 => (side(), channel(), any::<(usize, Vec<u8>)>()).prop_map(|(from, channel, (offset, bytes))| {
            EntryBody::Piece { from, channel, offset, bytes: bytes.into() }
        }),
        1 => any::<String>().prop_map(|line| EntryBody::Stderr { line }),
        1 => end().prop_map(EntryBody::Ended),
    ]
}

pub(super) fn end() -> impl Strategy<Value = SessionEnd> {
    prop_oneof![
        any::<Option<i32>>().prop_map(|status| SessionEnd::ClientClosed { status }),
        any::<(Option<i32>, Option<i32>)>().prop_map(|(status, signal)| SessionEnd::ServerExited { status, signal }),
        Just(SessionEnd::Stopped),
        any::<String>().prop_map(|why| SessionEnd::Failed { why }),
        Just(SessionEnd::Recovered),
    ]
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Client), Just(Side::Server)]
}

fn channel() -> impl Strategy<Value = Channel> {
    prop_oneof![3 => Just(0), 2 => 1..3_u64, 1 => any::<u64>()].prop_map(Channel)
}

fn head() -> impl Strategy<Value = HttpHead> {
    let text = || prop::option::of(any::<String>());
    let headers = proptest::collection::vec(any::<(String, String)>(), 0..4);
    (text(), text(), any::<Option<u16>>(), headers).prop_map(|(method, target, status, headers)| HttpHead {
        method,
        target,
        status,
        headers: headers.into_iter().collect(),
    })
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        12 => one().prop_map(Message::parse),
        2 => proptest::collection::vec(one(), 0..4).prop_map(|items| Message::parse(format!("[{}]", items.join(",")))),
        1 => proptest::collection::vec(one(), 1..3).prop_map(|items| Message::parse(format!(" [{}\n]\n", items.join(" ,")))),
        2 => any::<Vec<u8>>().prop_map(Message::parse),
        1 => any::<String>().prop_map(Message::parse),
        1 => any::<Vec<u8>>().prop_map(|bytes| Message::garbled(bytes, GarbledReason::PartialLine)),
        1 => one().prop_map(|text| Message::garbled(text, GarbledReason::PartialLine)),
        1 => any::<(Vec<u8>, usize)>().prop_map(|(bytes, limit)| Message::garbled(bytes, GarbledReason::TooLong { limit })),
    ]
}

/// The text of a message or of something close to one: few ids, so that they repeat; members in any order; odd spacing;
/// unknown members.
fn one() -> impl Strategy<Value = String> {
    let id = proptest::sample::select(vec!["1", "2", "-0", "0", r#""1""#, r#""\u0031""#, "null", "1.0"]);
    let value = proptest::sample::select(vec![
        "{}",
        "{ }",
        "{\n  \"a\": 1.0,\r\n\t\"b\": [\n1,\n2]\n}",
        r#"{"a":12345678901234567890123,"z":1e400,"a":"}\"\\"}"#,
        "[]",
        "null",
        "5",
        r#"{"_meta":{"progressToken":1}}"#,
        r#"{"code":-1,"message":"no"}"#,
        "{\"code\": 1,\n\"message\":\"blåbær\", \"data\":[\n]}",
        r#"{"requestId":1}"#,
        r#"{"progressToken":1,"progress":2}"#,
    ]);
    let method = proptest::sample::select(vec![
        r#""tools/call""#,
        r#""tools\/list""#,
        r#""notifications/cancelled""#,
        r#""notifications/progress""#,
        r#""x\n#""#,
    ]);
    let kind = 0..7_u8;
    let space = proptest::sample::select(vec!["", "", "", " ", "\n", "\r\n  "]);
    let extra = proptest::sample::select(vec!["", "", "", r#""extra":[1,{"id":2}]"#, r##""#":"#""##, r#""\u0069d":3"#]);
    (kind, id, method, value, space, extra, any::<u64>()).prop_map(|(kind, id, method, value, space, extra, order)| {
        let mut members = vec![r#""jsonrpc":"2.0""#.to_owned()];
        match kind {
            0 | 1 => members.extend([
                format!(r#""id":{id}"#),
                format!(r#""method":{method}"#),
                format!(r#""params":{value}"#),
            ]),
            2 => members.extend([format!(r#""id":{id}"#), format!(r#""method":{method}"#)]),
            3 => members.extend([format!(r#""method":{method}"#), format!(r#""params":{value}"#)]),
            4 | 5 => members.extend([format!(r#""id":{id}"#), format!(r#""result":{value}"#)]),
            _ => members.extend([format!(r#""id":{id}"#), format!(r#""error":{value}"#)]),
        }
        if !extra.is_empty() {
            members.push(extra.to_owned());
        }
        if order % 2 == 1 {
            let count = members.len();
            members.rotate_left((order / 2) as usize % count);
        }
        let members: Vec<String> =
            members.iter().map(|member| member.replacen(':', &format!("{space}:{space}"), 1)).collect();
        format!("{space}{{{space}{}{space}}}{space}", members.join(&format!("{space},{space}")))
    })
}
