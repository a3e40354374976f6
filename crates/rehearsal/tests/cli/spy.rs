//! `rehearse mock --upstream`: some answers from a file, the rest from a live server.

use crate::fixture::{Fixture, rehearse};

/// One tool of `tiny-server` with another answer, one that it does not have, and a fault for one of its prompts.
const SPY: &str = r#"
tools:
  - name: add
    answers:
      - when: { a: 2 }
        text: five
  - name: invented
    description: Only in the file
    answers: [{ text: from the file }]
prompts:
  - name: greet
    faults: [{ fault: { http: { status: 503 } } }]
"#;

const SPIED: &str = "rehearse mock spy.mock.yaml --upstream -- tiny-server";

fn fixture() -> Fixture {
    Fixture::new().file("spy.mock.yaml", SPY)
}

#[test]
fn scripted_answers_take_precedence_over_the_upstream_in_both_eras() {
    for protocol in ["2026-07-28", "2025-06-18"] {
        let calls = format!(
            "for c in 'call add a=2 b=40' 'call add a=1 b=2' 'call invented' 'call echo message=live' 'read tiny://greeting'; do \
             rehearse $c --protocol {protocol} -- {SPIED}; done 2>&1"
        );
        let played = fixture().run(&calls);
        let expected = "exit: 0\n----- stdout -----\nfive\n3\nfrom the file\nlive\nHello from tiny-server\n";
        assert_eq!(played, expected, "{protocol}");
    }
}

#[test]
fn merged_lists_contain_the_upstream_entry_of_an_overridden_tool() {
    for protocol in ["2026-07-28", "2025-06-18"] {
        let fixture = fixture();
        let spied = fixture.run(&format!("rehearse list --json --protocol {protocol} -- {SPIED}"));
        let live = fixture.run(&format!("rehearse list --json --protocol {protocol} -- tiny-server"));
        let read = |played: &str| -> serde_json::Value {
            let json = played.split("----- stdout -----\n").nth(1).unwrap().split("----- stderr").next().unwrap();
            serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {played}"))
        };
        let (spied, live) = (read(&spied), read(&live));
        let find = |lists: &serde_json::Value, name: &str| {
            let tools = lists["tools"].as_array().unwrap().clone();
            tools.into_iter().find(|tool| tool["name"] == name)
        };
        assert_eq!(find(&spied, "add"), find(&live, "add"), "{protocol}");
        assert!(find(&spied, "invented").is_some() && find(&live, "invented").is_none());
        assert_eq!(spied["tools"].as_array().unwrap().len(), live["tools"].as_array().unwrap().len() + 1);
        assert_eq!(spied["resources"], live["resources"], "{protocol}");
    }
}

#[test]
fn a_fault_of_the_file_is_applied_to_a_live_answer() {
    let fixture = fixture();
    rehearse!(fixture, &format!("rehearse prompt greet who=Ada -- {SPIED}"), @r#"
    exit: 1
    ----- stderr -----
    error: -32603: HTTP status 503
      data: {"status":503,"headers":{}}
    "#);
}

#[test]
fn each_answer_names_its_source() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let call = |id: u8, name: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{{"a":1,"b":2}},{meta}}}}}"#
        )
    };
    let fixture = fixture().file("requests", &format!("{}\n{}\n", call(1, "invented"), call(2, "add")));
    rehearse!(fixture, "rehearse mock spy.mock.yaml -v --upstream -- tiny-server < requests > answers", @r"
    exit: 0
    ----- stderr -----
    tools/call invented: script: tool invented, answer 1
    tools/call add: live
    ");
}

#[test]
fn a_live_server_over_http_gets_what_the_file_does_not_answer() {
    let fixture = Fixture::with_http_server().file("spy.mock.yaml", SPY);
    let calls = "for c in 'call add a=2 b=40' 'call echo message=live'; do \
                 rehearse $c -- rehearse mock spy.mock.yaml --url http://$ADDRESS/mcp; done";
    rehearse!(fixture, calls, @r"
    exit: 0
    ----- stdout -----
    five
    live
    ");
}

#[test]
fn an_upstream_that_cannot_be_started_fails_the_request() {
    rehearse!(fixture(), "rehearse list -- rehearse mock spy.mock.yaml --upstream -- no-such-server", @r#"
    exit: 3
    ----- stderr -----
    error: initialize was refused: -32603: the server behind the mock did not answer: the server could not be started: there is no program "no-such-server" in PATH
    "#);
    rehearse!(fixture(), "rehearse mock spy.mock.yaml --upstream", @r"
    exit: 2
    ----- stderr -----
    error: --upstream needs a server: --url URL, or -- COMMAND
    hint: for example: --upstream -- npx -y some-server
    ");
}
