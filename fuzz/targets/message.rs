//! Any bytes parse, stay what they were, and mean what they mean when they are written again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rehearsal_core::message::{Body, Message, Reply, Response};

fuzz_target!(|bytes: &[u8]| {
    let message = Message::parse(bytes.to_vec());
    assert_eq!(&message.raw()[..], bytes, "parsing changed the bytes");
    examine(&message);
});

fn examine(message: &Message) {
    let _ = (format!("{message:?}"), message.text(), message.method());
    let _ = message.params().map(|params| (params.value(), params.is_null(), params.field("_meta"), params.text()));
    match message.body() {
        Body::Request(request) => {
            let _ = (request.param(&["_meta", "progressToken"]), request.id.to_string());
            let again = Message::request(request.id.clone(), request.method.clone(), request.params.as_ref());
            same(message, &again.expect("what was read can be written"));
        }
        Body::Notification(notification) => {
            let _ = notification.param(&["progressToken"]);
            let again = Message::notification(notification.method.clone(), notification.params.as_ref());
            same(message, &again.expect("what was read can be written"));
        }
        Body::Response(Response { id: Some(id), reply }) => same(message, &Message::reply(id.clone(), reply)),
        Body::Response(Response { id: None, reply: Reply::Error(error) }) => {
            same(message, &Message::error(None, error))
        }
        Body::Response(Response { id: None, reply: Reply::Result(_) }) => panic!("a result without an id"),
        Body::Batch(messages) => {
            assert!(!messages.is_empty());
            messages.iter().for_each(examine);
        }
        Body::Garbled(garbled) => drop(garbled.to_string()),
    }
}

fn same(read: &Message, written: &Message) {
    assert_eq!(read.body(), written.body(), "written again it means something else");
    assert_eq!(&Message::parse(written.raw().clone()), written, "what we write is not what we would read");
}
