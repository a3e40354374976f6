//! Traces whose sessions are not in the order in which they started.

use crate::fixture::{Fixture, rehearse};
use crate::verify_match::{REQUESTS, SERVER};

/// A trace in which the session that started first is the second line.
fn recorded() -> Fixture {
    let fixture = Fixture::new().file("server.sh", SERVER).file("requests", REQUESTS);
    for text in ["first", "second", "third"] {
        fixture.run(&format!("rehearse record -q -o {text}.jsonl -- sh server.sh ',\"text\":\"{text}\"' v < requests"));
    }
    fixture.run("cat third.jsonl first.jsonl second.jsonl > trace.jsonl");
    fixture
}

#[test]
fn sessions_are_replayed_and_generated_in_start_order() {
    let fixture = recorded();
    let again = "sleep 0.2; sed -n 4p requests";
    rehearse!(fixture, &format!("(cat requests; {again}; {again}) | rehearse replay -q trace.jsonl | grep -o 'text\":\"[a-z]*'"), @r#"
    exit: 0
    ----- stdout -----
    text":"first
    text":"second
    text":"third
    "#);
    rehearse!(fixture, "rehearse generate trace.jsonl --as mock | grep 'text: '", @"
    exit: 0
    ----- stdout -----
              - text: first
              - text: second
              - text: third
    ");
}

#[test]
fn an_update_keeps_the_order_of_sessions() {
    let fixture = recorded();
    let texts = "grep -o 'text\":\"[a-z]*' trace.jsonl";
    rehearse!(fixture, &format!("rehearse verify trace.jsonl --update -- sh server.sh ',\"text\":\"first\"' v; {texts}"), @r#"
    exit: 0
    ----- stdout -----
    ~ session 3: tools/call a
      error: changed (message 3)
        $.result.content[0].text: expected "second", got "first"
    ~ tools/call a
      error: changed (message 3)
        $.result.content[0].text: expected "third", got "first"
    text":"first
    text":"first
    text":"first
    ----- stderr -----
    7 as recorded, 2 different, 0 skipped
    trace.jsonl has the live answers now
    "#);
    let session = "sed 's/.*session_id\":\"\\([^\"]*\\).*/\\1/'";
    rehearse!(fixture, &format!("cat third.jsonl first.jsonl second.jsonl | {session} > before; {session} trace.jsonl | cmp - before"), @"exit: 0");
    // A malformed line is reported with its number.
    rehearse!(fixture, "sed -i '3s/\"calls\":\\[/\"calls\":[7,/' trace.jsonl; rehearse verify trace.jsonl -- sh server.sh '' v 2>&1 | grep -o 'line [0-9]*'", @"
    exit: 0
    ----- stdout -----
    line 3
    ");
}
