//! `rehearse replay`

use crate::fixture::{Fixture, rehearse};

/// A mock with a tool that counts its calls, and one with progress and an elicitation.
const WEATHER: &str = r#"
server: { name: weather, version: "1.0" }
tools:
  - name: rain
    input_schema: { type: object, properties: { city: { type: string }, password: { type: string } } }
    answers:
      - when: { city: Oslo }
        times: 1
        text: Rain in Oslo
      - when: { city: Oslo }
        text: More rain in Oslo
      - text: "Sun in {{ arguments.city }}"
  - name: book
    answers:
      - steps:
          - progress: { progress: 1, total: 2, message: half }
          - ask:
              day: { elicitation: { message: Which day?, requested_schema: { type: object, properties: { day: { type: string } } } } }
        text: "Booked for {{ answers.day.content.day }}"
"#;

/// A fixture with a recording of these commands in `trace.jsonl`.
fn recorded(lines: &[&str]) -> Fixture {
    let fixture = Fixture::new().file("weather.mock.yaml", WEATHER);
    for line in lines {
        let server = "rehearse record -q -o trace.jsonl -- rehearse mock weather.mock.yaml";
        let played = fixture.run(&format!("{line} -- {server}"));
        assert!(played.starts_with("exit: 0"), "{played}");
    }
    // Gives the sessions stable ids.
    let trace = std::fs::read_to_string(fixture.path().join("trace.jsonl")).unwrap();
    let named = trace.lines().enumerate().map(|(at, line)| {
        let id = line.split("\"session_id\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        line.replace(id, &format!("session-{at}")) + "\n"
    });
    std::fs::write(fixture.path().join("trace.jsonl"), named.collect::<String>()).unwrap();
    fixture
}

#[test]
fn a_recording_is_served_as_a_server() {
    let fixture = recorded(&["rehearse call rain city=Oslo"]);
    rehearse!(fixture, "rehearse call rain city=Oslo -v -- rehearse replay trace.jsonl", @r#"
    exit: 0
    ----- stdout -----
    Rain in Oslo
    ----- stderr -----
    > {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"rehearsal","version":"[VERSION]"}}}}
    < {"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"weather","version":"1.0"}}}}
    > {"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"rehearsal","version":"[VERSION]"}}}}
    < {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"rain","inputSchema":{"type":"object","properties":{"city":{"type":"string"},"password":{"type":"string"}}}},{"name":"book","inputSchema":{"type":"object"}}],"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"weather","version":"1.0"}}}}
    > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"rain","arguments":{"city":"Oslo"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"rehearsal","version":"[VERSION]"},"io.modelcontextprotocol/logLevel":"info","progressToken":3}}}
    < {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"Rain in Oslo"}],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"weather","version":"1.0"}}}}
    ! 2 matched, 0 repeated, 0 unmatched, 0 unused
    "#);
    rehearse!(fixture, "rehearse call rain city=Oslo --protocol 2024-11-05 -- rehearse replay trace.jsonl", @"
    exit: 0
    ----- stdout -----
    Rain in Oslo
    ");
    assert!(fixture.path().join("trace.jsonl.index").exists());
}

#[test]
fn repeated_requests_get_the_recorded_answers_in_order() {
    let fixture = recorded(&["rehearse call rain city=Oslo", "rehearse call rain city=Bergen"]);
    let requests = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"rain","arguments":{"city":"Oslo"}}}
{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"arguments":{"city":"Oslo"},"name":"rain","_meta":{"progressToken":1}}}
{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"rain","arguments":{"city":"Rome"}}}
{"jsonrpc":"2.0","id":"d","method":"prompts/list"}
"#;
    let fixture = fixture.file("requests", requests);
    rehearse!(fixture, "rehearse replay trace.jsonl --strict < requests", @r#"
    exit: 1
    ----- stdout -----
    {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"weather","version":"1.0"}}}
    {"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"Rain in Oslo"}]}}
    {"jsonrpc":"2.0","id":"b","result":{"content":[{"type":"text","text":"Rain in Oslo"}]}}
    {"jsonrpc":"2.0","id":"c","error":{"code":-32603,"message":"no recording of tools/call rain; closest is session session-0, call 3: $.params.arguments.city: expected \"Oslo\", got \"Rome\"","data":{"closest":{"recording":"session session-0, call 3","mismatches":[{"path":"$.params.arguments.city","expected":"\"Oslo\"","got":"\"Rome\""}]}}}}
    {"jsonrpc":"2.0","id":"d","error":{"code":-32603,"message":"no recording of prompts/list, nor of anything like it","data":{}}}
    ----- stderr -----
    no recording of tools/call rain; closest is session session-0, call 3: $.params.arguments.city: expected "Oslo", got "Rome"
    no recording of prompts/list, nor of anything like it
    2 matched, 1 repeated, 2 unmatched, 1 unused
      unmatched: tools/call rain
      unmatched: prompts/list
      unused: session session-1, call 3: tools/call rain
    "#);
    rehearse!(fixture, "rehearse replay trace.jsonl --repeat error -q < requests | sed -n 3p", @r#"
    exit: 0
    ----- stdout -----
    {"jsonrpc":"2.0","id":"b","error":{"code":-32603,"message":"all 1 recorded answers of tools/call rain were used","data":{"recorded":1}}}
    ----- stderr -----
    all 1 recorded answers of tools/call rain were used
    no recording of tools/call rain; closest is session session-0, call 3: $.params.arguments.city: expected "Oslo", got "Rome"
    no recording of prompts/list, nor of anything like it
    "#);
    rehearse!(fixture, "rehearse replay trace.jsonl --unmatched first -q < requests | sed -n 4p", @r#"
    exit: 0
    ----- stdout -----
    {"jsonrpc":"2.0","id":"c","result":{"content":[{"type":"text","text":"Rain in Oslo"}]}}
    ----- stderr -----
    no recording of prompts/list, nor of anything like it
    "#);
    rehearse!(fixture, "rehearse replay trace.jsonl --ignore '$.params.arguments.city' --ledger ledger.json < requests | sed -n 4p; cat ledger.json", @r#"
    exit: 0
    ----- stdout -----
    {"jsonrpc":"2.0","id":"c","result":{"content":[{"type":"text","text":"Sun in Bergen"}]}}
    {
      "matched": 3,
      "repeated": 1,
      "unmatched": 1,
      "forwarded": 0,
      "failed": 0,
      "unused": 0,
      "undelivered": 0,
      "unmatched_requests": [
        {
          "method": "prompts/list",
          "count": 1
        }
      ],
      "unused_recordings": []
    }
    ----- stderr -----
    no recording of prompts/list, nor of anything like it
    3 matched, 1 repeated, 1 unmatched, 0 unused
      unmatched: prompts/list
    "#);
    rehearse!(fixture, r#"rehearse replay trace.jsonl -q --match '$.params.arguments.city={"matches":"^R"}' < requests | sed -n '2p;4p'"#, @r#"
    exit: 0
    ----- stdout -----
    {"jsonrpc":"2.0","id":"a","error":{"code":-32603,"message":"tools/call rain is not matched: $.params.arguments.city: expected a string matching /^R/, got \"Oslo\"","data":{"closest":{"recording":"session session-0, call 3","mismatches":[{"path":"$.params.arguments.city","expected":"a string matching /^R/","got":"\"Oslo\""}]}}}}
    {"jsonrpc":"2.0","id":"c","result":{"content":[{"type":"text","text":"Rain in Oslo"}]}}
    ----- stderr -----
    tools/call rain is not matched: $.params.arguments.city: expected a string matching /^R/, got "Oslo"
    tools/call rain is not matched: $.params.arguments.city: expected a string matching /^R/, got "Oslo"
    no recording of prompts/list, nor of anything like it
    "#);
}

#[test]
fn a_recorded_input_request_is_replayed_in_both_eras() {
    let answer = r#"--answer 'elicitation/create={"action":"accept","content":{"day":"Monday"}}'"#;
    let fixture = recorded(&[&format!("rehearse call book {answer}")]);
    rehearse!(fixture, &format!("rehearse call book {answer} -- rehearse replay trace.jsonl"), @"
    exit: 0
    ----- stdout -----
    Booked for Monday
    ");
    rehearse!(fixture, &format!("rehearse call book {answer} --protocol 2025-11-25 -- rehearse replay trace.jsonl"), @"
    exit: 0
    ----- stdout -----
    Booked for Monday
    ");
    rehearse!(fixture, "rehearse call book --protocol 2025-11-25 -- rehearse replay trace.jsonl 2>&1", @"
    exit: 0
    ----- stdout -----
    Booked for Monday
    ");
    let fixture = recorded(&[&format!("rehearse call book {answer} --protocol 2025-06-18")]);
    rehearse!(fixture, &format!("rehearse call book {answer} --protocol 2026-07-28 -- rehearse replay trace.jsonl"), @"
    exit: 0
    ----- stdout -----
    Booked for Monday
    ");
}

#[test]
fn a_redacted_secret_is_redacted_from_the_live_request() {
    let fixture = recorded(&["rehearse call rain city=Oslo password=hunter2hunter2"]);
    rehearse!(fixture, "grep -c hunter2 trace.jsonl", @"
    exit: 1
    ----- stdout -----
    0
    ");
    rehearse!(fixture, "rehearse call rain city=Oslo password=hunter2hunter2 -- rehearse replay trace.jsonl", @"
    exit: 0
    ----- stdout -----
    Rain in Oslo
    ");
    rehearse!(fixture, "rehearse call rain city=Oslo password=another -- rehearse replay trace.jsonl", @r#"
    exit: 1
    ----- stderr -----
    error: -32603: no recording of tools/call rain; closest is session session-0, call 3: $.params.arguments.password: expected "[redacted:fad04dae]", got "[redacted:fbdbd0eb]"
      data: {"closest":{"recording":"session session-0, call 3","mismatches":[{"path":"$.params.arguments.password","expected":"\"[redacted:fad04dae]\"","got":"\"[redacted:fbdbd0eb]\""}]}}
    "#);
}

#[test]
fn a_silent_upstream_and_an_unwritable_ledger_are_reported() {
    let fixture = recorded(&["rehearse call rain city=Oslo"]);
    let requests = r#"printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}' '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"rain","arguments":{"city":"Rome"}}}' |"#;
    rehearse!(fixture, &format!("{requests} rehearse replay trace.jsonl --unmatched forward -- false > output"), @"
    exit: 3
    ----- stderr -----
    this was not recorded, and the server did not answer: the server exited with status 1 before it answered initialize
      the server's process ended: exit status: 1
    0 matched, 0 repeated, 1 unmatched (0 forwarded, 1 that the server did not answer), 1 unused
      unmatched: tools/call rain
      unused: session session-0, call 3: tools/call rain
    ");
    rehearse!(fixture, "rehearse replay trace.jsonl --ledger no/such/ledger.json < /dev/null", @r"
    exit: 2
    ----- stderr -----
    error: cannot write the ledger to no/such/ledger.json: No such file or directory (os error 2)
    hint: name a file in an existing folder: --ledger ledger.json
    ");
    // A ledger that was created before an error is removed.
    rehearse!(fixture, "rehearse replay none.jsonl --ledger ledger.json < /dev/null 2> stderr; echo $?; test ! -e ledger.json", @"
    exit: 0
    ----- stdout -----
    2
    ");
}

#[test]
fn a_ledger_cannot_overwrite_its_recording() {
    let fixture = recorded(&["rehearse call rain city=Oslo"]);
    rehearse!(fixture, "ln -s trace.jsonl link; rehearse replay trace.jsonl --ledger link < /dev/null", @r"
    exit: 2
    ----- stderr -----
    error: --ledger link: this file is the recording
    hint: name another file: --ledger ledger.json
    ");
    for (options, reason) in [
        ("--ledger ./trace.jsonl.index", "this file is its index"),
        (
            "--unmatched forward -o new.jsonl --ledger ./new.jsonl -- false",
            "this file is the recording of the live server",
        ),
    ] {
        let played = fixture.run(&format!("rehearse replay trace.jsonl {options} < /dev/null"));
        assert!(played.starts_with("exit: 2\n") && played.contains(reason), "{played}");
    }
    rehearse!(fixture, "ls; wc -l < trace.jsonl", @"
    exit: 0
    ----- stdout -----
    link
    trace.jsonl
    weather.mock.yaml
    1
    ");
}

#[test]
fn an_unrecorded_request_is_forwarded_to_the_upstream_once() {
    let fixture = recorded(&["rehearse call rain city=Oslo"]);
    let forward = "rehearse replay trace.jsonl --unmatched forward -v -- rehearse mock weather.mock.yaml";
    rehearse!(fixture, &format!("rehearse call rain city=Rome -v -- {forward} 2>&1 | grep -v '^session\\|stopped'"), @r#"
    exit: 0
    ----- stdout -----
    > {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"rehearsal","version":"[VERSION]"}}}}
    ! server/discover: protocol
    < {"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"weather","version":"1.0"}}}}
    > {"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"rehearsal","version":"[VERSION]"}}}}
    ! tools/list: recording: session session-0, call 2
    < {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"rain","inputSchema":{"type":"object","properties":{"city":{"type":"string"},"password":{"type":"string"}}}},{"name":"book","inputSchema":{"type":"object"}}],"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"weather","version":"1.0"}}}}
    > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"rain","arguments":{"city":"Rome"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"rehearsal","version":"[VERSION]"},"io.modelcontextprotocol/logLevel":"info","progressToken":3}}}
    ! tools/call rain: live
    < {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"Sun in Rome"}],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"weather","version":"1.0"}}}}
    Sun in Rome
    ! 1 matched, 0 repeated, 1 unmatched (1 forwarded), 1 unused
    !   unmatched: tools/call rain
    !   unused: session session-0, call 3: tools/call rain
    "#);
    rehearse!(fixture, "rehearse call rain city=Rome -- rehearse replay trace.jsonl", @"
    exit: 0
    ----- stdout -----
    Sun in Rome
    ");
}

#[test]
fn upstream_responses_are_not_appended_to_other_formats() {
    let python = include_str!("../../../../fixtures/traces/python.jsonl");
    let fixture = Fixture::new().file("weather.mock.yaml", WEATHER).file("python.jsonl", python);
    let forward = "--unmatched forward -- rehearse mock weather.mock.yaml < /dev/null";
    rehearse!(fixture, &format!("rehearse replay python.jsonl {forward}"), @r"
    exit: 2
    ----- stderr -----
    error: python.jsonl is a recording of python, and --unmatched forward writes traces
    hint: `-o FILE` records in another file
    hint: `rehearse trace convert` converts it to a trace
    ");
    rehearse!(fixture, &format!("rehearse replay - {forward}"), @"
    exit: 2
    ----- stderr -----
    error: --unmatched forward needs a recording in a file, not stdin or a pipe
    hint: `-o FILE` records in a file
    ");
    rehearse!(fixture, &format!("rehearse replay -q python.jsonl -o more.jsonl {forward}"), @"exit: 0");
    assert_eq!(std::fs::read_to_string(fixture.path().join("python.jsonl")).unwrap(), python);
}

#[test]
fn responses_that_could_not_be_recorded_are_counted() {
    let fixture = recorded(&["rehearse call rain city=Oslo"]);
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rain","arguments":{"city":"Rome"}}}
"#;
    let fixture = fixture.file("requests", hello);
    let server = "rehearse mock weather.mock.yaml";
    let replay = format!("rehearse replay -q trace.jsonl -o /dev/null/no.jsonl --unmatched forward -- {server}");
    rehearse!(fixture, &format!("{replay} < requests > responses 2> log; echo $?; tail -n 1 responses; grep -o 'RECORDING STOPPED' log"), @r#"
    exit: 0
    ----- stdout -----
    4
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Sun in Rome"}]}}
    RECORDING STOPPED
    "#);
}

#[test]
fn sessions_are_selected_by_name_and_metadata() {
    let fixture = Fixture::new().file("weather.mock.yaml", WEATHER);
    for (client, city) in [("desktop", "Oslo"), ("phone", "Rome")] {
        let server = format!("rehearse record -q --metadata client={client} -- rehearse mock weather.mock.yaml");
        fixture.run(&format!("rehearse call rain city={city} -- {server}"));
    }
    rehearse!(fixture, "rehearse call rain city=Rome -- rehearse replay trace.jsonl --metadata client=phone", @"
    exit: 0
    ----- stdout -----
    Sun in Rome
    ");
    rehearse!(fixture, "rehearse call rain city=Oslo -- rehearse replay trace.jsonl --metadata client=phone 2>&1 | cut -c 1-30", @r#"
    exit: 0
    ----- stdout -----
    error: -32603: no recording of
      data: {"closest":{"recording
    "#);
    // The session id is random.
    rehearse!(fixture, "rehearse replay trace.jsonl --session unknown < /dev/null 2>&1 | sed 's/`[^`]*`/`SESSION`/g'", @"
    exit: 0
    ----- stdout -----
    error: trace.jsonl: no session matches the filters
    hint: it has `SESSION`, `SESSION`
    ");
}

#[test]
fn recordings_that_cannot_be_replayed_are_reported() {
    let fixture = Fixture::new().file("broken.jsonl", "{\"format\":1,\"session_id\":\"a\",\"calls\":[{}]}\n");
    rehearse!(fixture, "rehearse replay broken.jsonl < /dev/null", @r"
    exit: 2
    ----- stderr -----
    error: broken.jsonl, line 1, column 40: missing field `request`
    hint: `rehearse trace convert --skip-bad broken.jsonl readable.jsonl` keeps the lines that can be read
    ");
    rehearse!(fixture, "rehearse replay broken.jsonl --unmatched forward < /dev/null", @r"
    exit: 2
    ----- stderr -----
    error: --unmatched forward needs a server: --url URL, or -- COMMAND
    hint: for example: --unmatched forward -- npx -y some-server
    ");
}

#[test]
fn a_read_only_folder_is_replayed_and_a_stale_index_rebuilt() {
    let fixture = recorded(&["rehearse call rain city=Oslo"]);
    let replay = "rehearse call rain city=Oslo -- rehearse replay trace.jsonl";
    fixture.run(replay);
    let fixture = fixture.file("trace.jsonl.index", "no index at all");
    rehearse!(fixture, replay, @"
    exit: 0
    ----- stdout -----
    Rain in Oslo
    ");
    fixture.run("rehearse call rain city=Rome -- rehearse record -q -- rehearse mock weather.mock.yaml");
    rehearse!(fixture, "rehearse call rain city=Rome -- rehearse replay trace.jsonl", @"
    exit: 0
    ----- stdout -----
    Sun in Rome
    ");
    rehearse!(fixture, "rm trace.jsonl.index; mkdir trace.jsonl.index; rehearse call rain city=Rome -- rehearse replay trace.jsonl", @"
    exit: 0
    ----- stdout -----
    Sun in Rome
    ");
}

#[test]
fn a_list_that_was_never_requested_contains_the_called_tools() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/traces");
    let cassette = std::fs::read_to_string(format!("{fixtures}/mcp-cassette-0.4.json")).unwrap();
    let fixture = Fixture::new().file("time.json", &cassette);
    rehearse!(fixture, "rehearse list --resources --prompts -- rehearse replay time.json", @"
    exit: 0
    ----- stderr -----
    mcp-time 2026.10.19, protocol 2026-07-28
    it has no resources
    it has no prompts
    ");
    rehearse!(fixture, "rehearse request resources/templates/list -- rehearse replay time.json", @r#"
    exit: 0
    ----- stdout -----
    {
      "resourceTemplates": [],
      "resultType": "complete",
      "ttlMs": 0,
      "cacheScope": "private",
      "_meta": {
        "io.modelcontextprotocol/serverInfo": {
          "name": "mcp-time",
          "version": "2026.10.19"
        }
      }
    }
    "#);
    // A page that was not requested is not the list.
    rehearse!(fixture, r#"rehearse request tools/list --params '{"cursor":"2"}' -- rehearse replay time.json"#, @r#"
    exit: 1
    ----- stderr -----
    error: -32603: no recording of tools/list; closest is session mcp-cassette-2026-11-16T10:48:43.830998Z, call 2: $.params: expected nothing, got {"cursor":"2"}
      data: {"closest":{"recording":"session mcp-cassette-2026-11-16T10:48:43.830998Z, call 2","mismatches":[{"path":"$.params","expected":"nothing","got":"{\"cursor\":\"2\"}"}]}}
    "#);
}
