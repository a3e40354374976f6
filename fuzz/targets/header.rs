//! The headers that repeat a body: what we send is what we would accept, and nothing that others send makes us panic.
//!
//! ```text
//! a value to encode, also a header to decode
//! the input schema of a tool
//! a request
//! Header: value
//! …
//! ```

#![no_main]

use libfuzzer_sys::fuzz_target;
use rehearsal_core::message::Message;
use rehearsal_core::protocol::header;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let mut lines = text.split('\n');
    let mut line = || lines.next().unwrap_or_default();
    let (value, schema, request) = (line(), line(), line());

    round_trip(value);
    if let Some(decoded) = header::decode(value) {
        round_trip(&decoded);
    }

    let schema: Option<Value> = serde_json::from_str(schema).ok();
    let _ = schema.as_ref().map(header::annotations);
    let message = Message::parse(request.to_owned());
    let Some(request) = message.as_request() else { return };
    let ours = header::for_request(request, schema.as_ref());
    let verdict = header::check(request, schema.as_ref(), lookup(&ours));
    assert_eq!(verdict, Ok(()), "we would refuse our own headers {ours:?}");

    let pair = |line: &str| line.split_once(':').map(|(name, value)| (name.to_owned(), value.to_owned()));
    let theirs: Vec<_> = lines.filter_map(pair).collect();
    if let Err(disagreement) = header::check(request, schema.as_ref(), lookup(&theirs)) {
        let _ = disagreement.to_string();
    }
});

fn round_trip(value: &str) {
    let encoded = header::encode(value);
    assert!(encoded.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)), "no header: {encoded:?}");
    assert_eq!(header::decode(&encoded).as_deref(), Some(value));
}

fn lookup(headers: &[(String, String)]) -> impl Fn(&str) -> Vec<String> {
    |name| {
        let same = headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        same.map(|(_, value)| value.clone()).collect()
    }
}
