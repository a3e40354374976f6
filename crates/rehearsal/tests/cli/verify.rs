//! `rehearse verify`

use crate::fixture::{Fixture, MOCK, rehearse};

const BEFORE: &str = r#"
server: { name: weather, version: "1.0" }
tools:
  - name: get_forecast
    description: Forecast for a city
    answers: [{ structured_content: { sky: rain, degrees: 7, at: "12:00" } }]
  - name: get_time
    answers: [{ text: noon }]
  - name: book
    answers:
      - steps: [{ ask: { how: { elicitation: { message: How?, requested_schema: { type: object } } } } }]
        choose: [{ when: { how: { action: accept } }, text: booked }, { text: not booked }]
"#;

const AFTER: &str = r#"
server: { name: weather, version: "1.1" }
tools:
  - name: get_forecast
    description: Forecast for any city
    answers: [{ structured_content: { sky: 1, degrees: 8, wind: 3, at: "13:00" } }]
  - name: get_place
    answers: [{ text: here }]
  - name: book
    answers:
      - steps: [{ ask: { how: { elicitation: { message: How then?, requested_schema: { type: object } } } } }]
        choose: [{ when: { how: { action: accept } }, text: booked }, { text: not booked }]
"#;

/// A recording of the first, in both eras, and the second beside it.
fn recorded() -> Fixture {
    let fixture = Fixture::new().file("before.mock.yaml", BEFORE).file("after.mock.yaml", AFTER);
    for protocol in ["modern", "legacy"] {
        let record =
            format!("--protocol {protocol} -- rehearse record -q -o trace.jsonl -- rehearse mock before.mock.yaml");
        fixture.run(&format!("rehearse call get_forecast {record}"));
        let answer = r#"--answer 'elicitation/create={"action":"accept","content":{}}'"#;
        fixture.run(&format!("rehearse call book {answer} {record}"));
    }
    fixture
}

#[test]
fn a_server_that_answers_as_recorded_passes_in_both_eras() {
    let fixture = recorded();
    rehearse!(fixture, "rehearse verify trace.jsonl -- rehearse mock before.mock.yaml", @"
    exit: 0
    ----- stderr -----
    12 as recorded, 0 different, 0 skipped
    ");
    rehearse!(fixture, "rehearse verify trace.jsonl --protocol 2025-06-18 -- rehearse mock before.mock.yaml", @"
    exit: 0
    ----- stderr -----
    12 as recorded, 0 different, 0 skipped
    ");
}

#[test]
fn each_difference_is_reported_with_its_kind() {
    let fixture = recorded();
    rehearse!(fixture, "rehearse verify trace.jsonl -- rehearse mock after.mock.yaml", @r#"
    exit: 1
    ----- stdout -----
    = server/discover
      note: the server's version was "1.0" and is "1.1" (message 0)
    ~ tools/list
      error: changed: the tool `get_forecast` (message 2)
        $.description: expected "Forecast for a city", got "Forecast for any city"
      error: removed: the tool `get_time` is no longer listed (message 2)
      error: added: the tool `get_place` was not listed before (message 2)
    ~ tools/call get_forecast
      error: added (message 4)
        $.result.structuredContent.wind: expected nothing, got 3
      error: type changed (message 4)
        $.result.structuredContent.sky: expected "rain", got 1
      error: changed (message 4)
        $.result.structuredContent.degrees: expected 7, got 8
        $.result.structuredContent.at: expected "12:00", got "13:00"
        $.result.content[0].text: expected "{\"sky\":\"rain\",\"degrees\":7,\"at\":\"12:00\"}", got "{\"sky\":1,\"degrees\":8,\"wind\":3,\"at\":\"13:00\"}"
    = session 2: server/discover
      note: the server's version was "1.0" and is "1.1" (message 0)
    ~ session 2: tools/list
      error: changed: the tool `get_forecast` (message 2)
        $.description: expected "Forecast for a city", got "Forecast for any city"
      error: removed: the tool `get_time` is no longer listed (message 2)
      error: added: the tool `get_place` was not listed before (message 2)
    ~ session 2: tools/call book
      error: changed: the params of the server request elicitation/create
        $.params.message: expected "How?", got "How then?"
    = session 3: initialize
      note: the server's version was "1.0" and is "1.1" (message 0)
    ~ session 3: tools/list
      error: changed: the tool `get_forecast` (message 3)
        $.description: expected "Forecast for a city", got "Forecast for any city"
      error: removed: the tool `get_time` is no longer listed (message 3)
      error: added: the tool `get_place` was not listed before (message 3)
    ~ session 3: tools/call get_forecast
      error: added (message 5)
        $.result.structuredContent.wind: expected nothing, got 3
      error: type changed (message 5)
        $.result.structuredContent.sky: expected "rain", got 1
      error: changed (message 5)
        $.result.structuredContent.degrees: expected 7, got 8
        $.result.structuredContent.at: expected "12:00", got "13:00"
        $.result.content[0].text: expected "{\"sky\":\"rain\",\"degrees\":7,\"at\":\"12:00\"}", got "{\"sky\":1,\"degrees\":8,\"wind\":3,\"at\":\"13:00\"}"
    = session 4: initialize
      note: the server's version was "1.0" and is "1.1" (message 0)
    ~ session 4: tools/list
      error: changed: the tool `get_forecast` (message 3)
        $.description: expected "Forecast for a city", got "Forecast for any city"
      error: removed: the tool `get_time` is no longer listed (message 3)
      error: added: the tool `get_place` was not listed before (message 3)
    ~ session 4: tools/call book
      error: changed: the params of the server request elicitation/create
        $.params.message: expected "How?", got "How then?"
    ----- stderr -----
    4 as recorded, 8 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` ignores a value
    "#);
}

#[test]
fn ignored_paths_do_not_count() {
    let fixture = recorded();
    let ignored = "--ignore '$.result..at' --ignore '$.result.tools' --ignore '$.result.content' --ignore '$.result.structuredContent'";
    rehearse!(fixture, &format!("rehearse verify trace.jsonl {ignored} -- rehearse mock after.mock.yaml"), @r#"
    exit: 1
    ----- stdout -----
    = server/discover
      note: the server's version was "1.0" and is "1.1" (message 0)
    = session 2: server/discover
      note: the server's version was "1.0" and is "1.1" (message 0)
    ~ session 2: tools/call book
      error: changed: the params of the server request elicitation/create
        $.params.message: expected "How?", got "How then?"
    = session 3: initialize
      note: the server's version was "1.0" and is "1.1" (message 0)
    = session 4: initialize
      note: the server's version was "1.0" and is "1.1" (message 0)
    ~ session 4: tools/call book
      error: changed: the params of the server request elicitation/create
        $.params.message: expected "How?", got "How then?"
    ----- stderr -----
    10 as recorded, 2 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` ignores a value
    "#);
}

#[test]
fn an_update_writes_the_live_responses_into_the_recording() {
    let fixture = recorded();
    rehearse!(fixture, "rehearse verify trace.jsonl --update -- rehearse mock after.mock.yaml | tail -1", @r#"
    exit: 0
    ----- stdout -----
        $.params.message: expected "How?", got "How then?"
    ----- stderr -----
    4 as recorded, 8 different, 0 skipped
    trace.jsonl has the live answers now
    "#);
    rehearse!(fixture, "rehearse verify trace.jsonl -- rehearse mock after.mock.yaml", @"
    exit: 0
    ----- stderr -----
    12 as recorded, 0 different, 0 skipped
    ");
    rehearse!(fixture, "ls -A", @"
    exit: 0
    ----- stdout -----
    after.mock.yaml
    before.mock.yaml
    trace.jsonl
    ");
}

#[test]
fn secrets_are_redacted_before_responses_are_compared_and_written() {
    let mock = |key: &str, place: &str| {
        let answer = format!("{{ structured_content: {{ api_key: {key}, place: {place} }} }}");
        format!("server: {{ name: keys }}\ntools:\n  - {{ name: get_key, answers: [{answer}] }}\n")
    };
    let fixture = Fixture::new().file("before.mock.yaml", &mock("abcd-1234", "Oslo"));
    let fixture =
        fixture.file("after.mock.yaml", &mock("abcd-1234", "Rome")).file("new.mock.yaml", &mock("efgh-5678", "Rome"));
    fixture.run("rehearse call get_key -- rehearse record -q -o trace.jsonl -- rehearse mock before.mock.yaml");
    rehearse!(fixture, "rehearse verify trace.jsonl -- rehearse mock before.mock.yaml", @"
    exit: 0
    ----- stderr -----
    3 as recorded, 0 different, 0 skipped
    ");
    for mock in ["after", "new"] {
        let updated = fixture.run(&format!("rehearse verify trace.jsonl --update -- rehearse mock {mock}.mock.yaml"));
        assert!(updated.starts_with("exit: 0"), "{updated}");
        let trace = std::fs::read_to_string(fixture.path().join("trace.jsonl")).unwrap();
        assert!(trace.contains("Rome") && !trace.contains("abcd-1234") && !trace.contains("efgh-5678"), "{trace}");
    }
    rehearse!(fixture, "rehearse verify trace.jsonl -- rehearse mock before.mock.yaml", @r#"
    exit: 1
    ----- stdout -----
    ~ tools/call get_key
      error: changed (message 4)
        $.result.structuredContent.api_key: expected "[redacted:f657c9c2]", got "[redacted:bfc4c1d5]"
        $.result.structuredContent.place: expected "Rome", got "Oslo"
        $.result.content[0].text: expected "{\"api_key\":\"[redacted:f657c9c2]\",\"place\":\"Rome\"}", got "{\"api_key\":\"[redacted:bfc4c1d5]\",\"place\":\"Oslo\"}"
    ----- stderr -----
    2 as recorded, 1 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` ignores a value
    "#);
    fixture.run("rehearse verify trace.jsonl --update --no-redact -- rehearse mock before.mock.yaml");
    assert!(std::fs::read_to_string(fixture.path().join("trace.jsonl")).unwrap().contains("abcd-1234"));
}

#[test]
fn the_json_report_is_complete() {
    let fixture = recorded();
    let json = r#"rehearse verify trace.jsonl --json -- rehearse mock after.mock.yaml | sed 's/"duration_ms": .*/"duration_ms": 0/' | head -30"#;
    rehearse!(fixture, json, @r#"
    exit: 0
    ----- stdout -----
    {
      "title": "trace.jsonl",
      "findings": [],
      "cases": [
        {
          "name": "server/discover",
          "run": {
            "ran": {
              "duration_ms": 0
            }
          },
          "findings": [
            {
              "severity": "note",
              "message": "the server's version was \"1.0\" and is \"1.1\"",
              "place": {
                "message": {
                  "sequence": 0
                }
              }
            }
          ]
        },
        {
          "name": "tools/list",
          "run": {
            "ran": {
              "duration_ms": 0
            }
          },
    ----- stderr -----
    4 as recorded, 8 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` ignores a value
    "#);
}

#[test]
fn a_server_over_http_is_verified_like_one_over_stdio() {
    let fixture = Fixture::with_http_server();
    fixture
        .run(&format!("rehearse call echo message=hello -- rehearse record -q -o trace.jsonl -- rehearse mock {MOCK}"));
    rehearse!(fixture, "rehearse verify trace.jsonl --url http://$ADDRESS/mcp", @"
    exit: 0
    ----- stderr -----
    3 as recorded, 0 different, 0 skipped
    ");
}

#[test]
fn verify_does_not_wait_for_a_server_that_exited() {
    let fixture = recorded();
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh -c 'exit 3'", @"
    exit: 3
    ----- stderr -----
    error: the server exited with status 3 before it answered server/discover
      the server's process ended: exit status: 3
    ");
    rehearse!(fixture, "rehearse verify trace.jsonl -- no-such-program", @r#"
    exit: 3
    ----- stderr -----
    error: the server could not be started: there is no program "no-such-program" in PATH
    hint: check the spelling, and that the directory of the program is in PATH
    "#);
}

#[test]
fn a_server_that_stops_answering_fails_verification() {
    let fixture = recorded();
    // The server exits after the second request.
    let exits = r#"sh -c 'read one; echo "$one" | rehearse replay -q trace.jsonl; read two'"#;
    rehearse!(fixture, &format!("rehearse verify trace.jsonl -- {exits}"), @"
    exit: 3
    ----- stdout -----
    ~ tools/list
      error: no answer: the server exited with status 0 before it answered tools/list
        the server's process ended: exit status: 0
    . tools/call get_forecast: skipped, the server was lost
    ~ session 2: tools/list
      error: no answer: the server exited with status 0 before it answered tools/list
        the server's process ended: exit status: 0
    . session 2: tools/call book: skipped, the server was lost
    ~ session 3: tools/list
      error: no answer: the server exited with status 0 before it answered tools/list
        the server's process ended: exit status: 0
    . session 3: tools/call get_forecast: skipped, the server was lost
    ~ session 4: tools/list
      error: no answer: the server exited with status 0 before it answered tools/list
        the server's process ended: exit status: 0
    . session 4: tools/call book: skipped, the server was lost
    ----- stderr -----
    4 as recorded, 4 different, 4 skipped
    ");
    rehearse!(fixture, &format!("rehearse verify trace.jsonl --update -- {exits} > /dev/null"), @"
    exit: 3
    ----- stderr -----
    4 as recorded, 4 different, 4 skipped
    trace.jsonl was not updated: some requests were not answered
    ");
}

#[test]
fn verify_reports_flag_errors_before_it_starts_the_server() {
    let fixture = recorded().file("notes.txt", "hello").file("log.jsonl", "");
    rehearse!(fixture, "rehearse verify trace.jsonl", @r"
    exit: 2
    ----- stderr -----
    error: no server
    hint: start a server: rehearse verify … -- npx -y @modelcontextprotocol/server-everything
    hint: use a URL:      rehearse verify … --url http://127.0.0.1:3000/mcp
    hint: run an image:   rehearse verify … --container my-server:latest
    hint: from a file:    rehearse verify … --config .mcp.json --server NAME
    ");
    rehearse!(fixture, "rehearse verify none.jsonl -- tiny-server", @"
    exit: 2
    ----- stderr -----
    error: cannot read none.jsonl: No such file or directory (os error 2)
    hint: `rehearse record -- COMMAND` writes trace.jsonl
    ");
    rehearse!(fixture, "rehearse verify notes.txt -- tiny-server", @r#"
    exit: 2
    ----- stderr -----
    error: notes.txt: not a recording: it begins with "hello"
    hint: a trace has one session a line, a journal one message a line; `rehearse record` writes both
    "#);
    rehearse!(fixture, "rehearse verify trace.jsonl --ignore at -- tiny-server", @"
    exit: 2
    ----- stderr -----
    error: --ignore at: not a JSONPath: unexpected text, at byte 0
    hint: a path begins with `$`: $.result.content[0].text, or $..timestamp for all of them
    ");
    rehearse!(fixture, "rehearse verify - --update -- tiny-server < trace.jsonl", @"
    exit: 2
    ----- stderr -----
    error: --update needs a recording in a file, not stdin or a pipe
    ");
    rehearse!(fixture, "rehearse verify log.jsonl -- tiny-server", @r"
    exit: 1
    ----- stderr -----
    0 as recorded, 0 different, 0 skipped
    error: nothing was compared
    hint: `rehearse trace show` prints the recording
    ");
}

#[test]
fn an_update_does_not_overwrite_recordings_of_other_tools() {
    let python = include_str!("../../../../fixtures/traces/python.jsonl");
    let fixture = Fixture::new().file("python.jsonl", python);
    rehearse!(fixture, "rehearse verify python.jsonl --update -- tiny-server", @r"
    exit: 2
    ----- stderr -----
    error: python.jsonl is a recording of python, and --update writes traces
    hint: `rehearse trace convert` converts it to a trace
    ");
}

/// A server that requests the roots before the first call, and returns whether it received them.
const REQUESTS_ROOTS: &str = r#"read initialize
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}'
read initialized
echo '{"jsonrpc":"2.0","id":"r","method":"roots/list"}'
read one
read other
case "$one$other" in *file:///here*) roots=here ;; *) roots=nothing ;; esac
echo '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"'$roots'"}]}}'
cat
"#;

#[test]
fn a_server_request_at_any_time_gets_its_recorded_answer() {
    let calls = r#"{"request":{"seq":0,"at_ms":0,"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}},"response":{"seq":1,"at_ms":1,"success":true,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}},"duration_ms":1},
        {"request":{"seq":3,"at_ms":3,"id":2,"method":"tools/call","params":{"name":"where","arguments":{}}},"response":{"seq":4,"at_ms":4,"success":true,"result":{"content":[{"type":"text","text":"here"}]}},"duration_ms":1},
        {"request":{"seq":5,"at_ms":5,"from":"server","id":7,"method":"roots/list"},"response":{"seq":6,"at_ms":6,"success":true,"result":{"roots":[{"uri":"file:///here"}]}},"duration_ms":1}"#;
    let trace = format!(
        r#"{{"format":1,"session_id":"s","server_info":{{}},"started_at":null,"metadata":{{}},"calls":[{calls}],"messages":[],"ended_at":null,"end":null}}"#
    );
    let trace = trace.replace('\n', "");
    let fixture = Fixture::new().file("trace.jsonl", &trace).file("server.sh", REQUESTS_ROOTS);
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server.sh", @"
    exit: 0
    ----- stderr -----
    2 as recorded, 0 different, 0 skipped
    ");
}

#[test]
fn a_link_to_a_recording_stays_a_link() {
    let fixture = recorded();
    fixture.run("mkdir real && mv trace.jsonl real/trace.jsonl && ln -s real/trace.jsonl trace.jsonl");
    let updated = fixture.run("rehearse verify trace.jsonl --update -- rehearse mock after.mock.yaml");
    assert!(updated.contains("trace.jsonl has the live answers now"), "{updated}");
    rehearse!(fixture, "readlink trace.jsonl && grep -c 'How then?' real/trace.jsonl && ls -A real", @"
    exit: 0
    ----- stdout -----
    real/trace.jsonl
    2
    trace.jsonl
    ");
}

/// A server that writes with spaces, which a recording keeps.
const SPACED: &str = r#"at=$1 text=$2 description=$3
read initialize
echo '{"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}}'
read initialized
read list
echo '{"jsonrpc": "2.0", "id": 2, "result": {"tools": [{"name": "now", "description": "'$description'", "title": "T'$text'", "inputSchema": {"type": "object"}}]}}'
read call
echo '{"jsonrpc": "2.0", "id": 3, "result": {"content": [{"type": "text", "text": "'$text'"}], "structuredContent": {"at": '$at', "text": "'$text'"}}}'
cat > /dev/null
"#;

#[test]
fn an_update_keeps_unchanged_and_ignored_values() {
    let fixture = Fixture::new().file("server.sh", SPACED);
    fixture.run("rehearse call now --protocol legacy -- rehearse record -q -o trace.jsonl -- sh server.sh 1 a old");
    fixture.run("cp trace.jsonl before.jsonl");
    let ignored = "--ignore '$.result..at' --ignore '$.result.tools[*].description'";
    rehearse!(fixture, &format!("rehearse verify trace.jsonl --update {ignored} -- sh server.sh 2 a new && cmp trace.jsonl before.jsonl"), @r"
    exit: 0
    ----- stderr -----
    3 as recorded, 0 different, 0 skipped
    trace.jsonl is unchanged
    ");
    rehearse!(fixture, &format!("rehearse verify trace.jsonl --update {ignored} -- sh server.sh 2 b new"), @r#"
    exit: 0
    ----- stdout -----
    ~ tools/list
      error: changed: the tool `now` (message 3)
        $.title: expected "Ta", got "Tb"
    ~ tools/call now
      error: changed (message 5)
        $.result.content[0].text: expected "a", got "b"
        $.result.structuredContent.text: expected "a", got "b"
    ----- stderr -----
    1 as recorded, 2 different, 0 skipped
    trace.jsonl has the live answers now
    "#);
    rehearse!(fixture, "tr , '\\n' < before.jsonl > before.txt; tr , '\\n' < trace.jsonl | diff before.txt -", @r#"
    exit: 1
    ----- stdout -----
    40,46c40,43
    < "result":{"tools": [{"name": "now"
    <  "description": "old"
    <  "title": "Ta"
    <  "inputSchema": {"type": "object"}}]}
    < "layout":"{\"jsonrpc\": \"2.0\"
    <  \"id\": #
    <  \"result\": #}"}
    ---
    > "result":{"tools":[{"name":"now"
    > "description":"old"
    > "title":"Tb"
    > "inputSchema":{"type":"object"}}]}}
    58,64c55,58
    < "result":{"content": [{"type": "text"
    <  "text": "a"}]
    <  "structuredContent": {"at": 1
    <  "text": "a"}}
    < "layout":"{\"jsonrpc\": \"2.0\"
    <  \"id\": #
    <  \"result\": #}"}
    ---
    > "result":{"content":[{"type":"text"
    > "text":"b"}]
    > "structuredContent":{"at":1
    > "text":"b"}}}
    "#);
}

#[test]
fn the_replacement_of_a_secret_is_not_sent() {
    let mock = "server: { name: door, version: '1' }\ntools: [{ name: login, answers: [{ when: { password: hunter2 }, text: in }, { text: wrong }] }]\n";
    let fixture = Fixture::new().file("door.mock.yaml", mock);
    let call = "rehearse call login password=hunter2 -- rehearse record -q";
    fixture.run(&format!("{call} -o trace.jsonl -- rehearse mock door.mock.yaml"));
    fixture.run(&format!("{call} --no-redact -o whole.jsonl -- rehearse mock door.mock.yaml"));
    rehearse!(fixture, "rehearse verify trace.jsonl -- rehearse mock door.mock.yaml", @"
    exit: 0
    ----- stdout -----
    . tools/call login: skipped, a secret was redacted from its params; a recording made with --no-redact has it
    ----- stderr -----
    2 as recorded, 0 different, 1 skipped
    ");
    rehearse!(fixture, "rehearse verify whole.jsonl --no-redact -- rehearse mock door.mock.yaml", @"
    exit: 0
    ----- stderr -----
    3 as recorded, 0 different, 0 skipped
    ");
}

/// A recording of a handshake and of one page of tools, and a server that sends the same.
fn against(recorded: &str, info: &str, listed: &str) -> Fixture {
    let opening = |info: &str| {
        format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{info}}}"#)
    };
    let call = |at: usize, request: &str, result: &str| {
        let request = format!(r#"{{"seq":{at},"at_ms":{at},"id":{at},{request}}}"#);
        let response = format!(r#"{{"seq":{},"at_ms":{at},"success":true,"result":{result}}}"#, at + 1);
        format!(r#"{{"request":{request},"response":{response}}}"#)
    };
    let begin = r#""method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}"#;
    let first = call(0, begin, &opening(r#"{"name":"s","version":"1"}"#));
    let second = call(2, r#""method":"tools/list""#, recorded);
    let trace = format!(r#"{{"format":1,"session_id":"a","calls":[{first},{second}]}}"#);
    let respond = |id: u8, result: &str| format!("echo '{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}'");
    let server = format!(
        "read a; {}; read b; read c; {}; while read d; do :; done",
        respond(1, &opening(info)),
        respond(2, listed)
    );
    Fixture::new().file("trace.jsonl", &(trace + "\n")).file("server", &server)
}

#[test]
fn a_server_info_that_is_no_object_is_a_difference() {
    let fixture = against(r#"{"tools":[]}"#, "[]", r#"{"tools":[]}"#);
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server", @r#"
    exit: 1
    ----- stdout -----
    ~ initialize
      error: type changed (message 0)
        $.result.serverInfo: expected {"name":"s"}, got []
      note: the server's version was "1" and is absent (message 0)
    ----- stderr -----
    1 as recorded, 1 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` ignores a value
    "#);
}

#[test]
fn unrequested_list_pages_are_not_reported_as_missing() {
    let tool = r#"{"name":"a","inputSchema":{"type":"object","maximum":123456789012345678901234567890}}"#;
    let page = format!(r#"{{"tools":[{tool}],"nextCursor":"2"}}"#);
    let all = format!(r#"{{"tools":[{tool},{{"name":"b","inputSchema":{{}}}}]}}"#);
    let fixture = against(&page, r#"{"name":"s","version":"1"}"#, &all);
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server", @"
    exit: 0
    ----- stderr -----
    2 as recorded, 0 different, 0 skipped
    ");
}
