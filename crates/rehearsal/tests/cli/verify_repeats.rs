//! `rehearse verify` of repetitions: list pages, repeated server requests, and several sessions.

use crate::fixture::{Fixture, rehearse};

/// A session of these calls after its handshake.
fn trace(calls: &str) -> String {
    let handshake = r#"{"request":{"seq":0,"at_ms":0,"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}},"response":{"seq":1,"at_ms":1,"success":true,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}},"duration_ms":1}"#;
    let trace = format!(
        r#"{{"format":1,"session_id":"s","server_info":{{}},"started_at":null,"metadata":{{}},"calls":[{handshake},{calls}],"messages":[],"ended_at":null,"end":null}}"#
    );
    trace.replace('\n', "")
}

/// A server whose responses depend on the request, by the `cases` of a shell script.
fn server(cases: &str) -> String {
    let handshake = r#"*initialize\"*) say '"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}' ;;"#;
    format!(
        r#"say() {{ echo '{{"jsonrpc":"2.0","id":'"$id,$1"'}}'; }}
while read -r line; do
  id=$(echo "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    {handshake}
    *notifications/*) ;;
    {cases}
  esac
done
"#
    )
}

#[test]
fn an_update_leaves_every_page_where_it_was() {
    let calls = r#"{"request":{"seq":3,"at_ms":3,"id":2,"method":"tools/list"},"response":{"seq":4,"at_ms":4,"success":true,"result":{"tools":[{"name":"a","description":"old"},{"name":"gone"}],"nextCursor":"c2"}},"duration_ms":1},
{"request":{"seq":5,"at_ms":5,"id":3,"method":"tools/list","params":{"cursor":"c2"}},"response":{"seq":6,"at_ms":6,"success":true,"result":{"tools":[{"name":"b"}]}},"duration_ms":1}"#;
    let pages = r#"*live-2*) say '"result":{"tools":[{"name":"new"},{"name":"b"}]}' ;;
    *tools/list*) say '"result":{"tools":[{"name":"a","description":"new"}],"nextCursor":"live-2"}' ;;"#;
    let fixture = Fixture::new().file("trace.jsonl", &trace(calls)).file("server.sh", &server(pages));
    let verify = "rehearse verify trace.jsonl -- sh server.sh";
    let update = "rehearse verify trace.jsonl --update -- sh server.sh";
    rehearse!(fixture, update, @r#"
    exit: 0
    ----- stdout -----
    ~ tools/list
      error: changed: the tool `a` (message 3)
        $.description: expected "old", got "new"
      error: removed: the tool `gone` is no longer listed (message 3)
      error: added: the tool `new` was not listed before (message 3)
    ----- stderr -----
    1 as recorded, 1 different, 0 skipped
    trace.jsonl has the live answers now
    "#);
    rehearse!(fixture, "grep -o '\"result\":{\"tools[^}]*}[^}]*}[^}]*}' trace.jsonl", @r#"
    exit: 0
    ----- stdout -----
    "result":{"tools":[{"name":"a","description":"new"}],"nextCursor":"c2"}}
    "result":{"tools":[{"name":"new"},{"name":"b"}]}
    "#);
    rehearse!(fixture, verify, @"
    exit: 0
    ----- stderr -----
    2 as recorded, 0 different, 0 skipped
    ");
    rehearse!(fixture, update, @r"
    exit: 0
    ----- stderr -----
    2 as recorded, 0 different, 0 skipped
    trace.jsonl is unchanged
    ");
}

/// A recorded tool call with a server request in it.
fn recorded_call(seq: u64, method: &str, answer: &str, text: &str) -> String {
    let (second, third, last, id) = (seq + 1, seq + 2, seq + 3, seq);
    format!(
        r#"{{"request":{{"seq":{seq},"at_ms":{seq},"id":{id},"method":"tools/call","params":{{"name":"ask","arguments":{{}}}}}},"response":{{"seq":{last},"at_ms":{last},"success":true,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}},"duration_ms":3}},
{{"request":{{"seq":{second},"at_ms":{second},"from":"server","id":"q{id}","method":"{method}"}},"response":{{"seq":{third},"at_ms":{third},{answer}}},"duration_ms":1}}"#
    )
}

/// A server that sends a request in each call, and returns the response to it as text.
fn requesting_server(method: &str) -> String {
    let request = format!(r#"echo '{{"jsonrpc":"2.0","id":"q","method":"{method}"}}'"#);
    server(&format!(
        r#"*tools/call*) {request}; read -r response; case "$response" in
      *one*) text=one ;; *two*) text=two ;; *'no roots'*) text=refused ;; *) text=other ;;
    esac; say '"result":{{"content":[{{"type":"text","text":"'$text'"}}]}}' ;;"#
    ))
}

#[test]
fn roots_requests_get_the_recorded_answers_in_order() {
    let roots = |uri: &str| format!(r#""success":true,"result":{{"roots":[{{"uri":"file:///{uri}"}}]}}"#);
    let refused = r#""success":false,"error":{"code":-32000,"message":"no roots"}"#;
    let calls = [
        recorded_call(3, "roots/list", &roots("one"), "one"),
        recorded_call(7, "roots/list", &roots("two"), "two"),
        recorded_call(11, "roots/list", refused, "refused"),
    ];
    let fixture = Fixture::new()
        .file("trace.jsonl", &trace(&calls.join(",")))
        .file("server.sh", &requesting_server("roots/list"));
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server.sh", @"
    exit: 0
    ----- stderr -----
    4 as recorded, 0 different, 0 skipped
    ");
}

#[test]
fn a_server_request_of_any_method_gets_its_recorded_answer() {
    let answer = |text: &str| format!(r#""success":true,"result":{{"text":"{text}"}}"#);
    let calls =
        [recorded_call(3, "custom/ask", &answer("one"), "one"), recorded_call(7, "custom/ask", &answer("two"), "two")];
    let fixture = Fixture::new()
        .file("trace.jsonl", &trace(&calls.join(",")))
        .file("server.sh", &requesting_server("custom/ask"));
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server.sh", @"
    exit: 0
    ----- stderr -----
    3 as recorded, 0 different, 0 skipped
    ");
}

#[test]
fn a_list_that_was_requested_twice_is_compared_twice() {
    let calls = r#"{"request":{"seq":3,"at_ms":3,"id":2,"method":"tools/list"},"response":{"seq":4,"at_ms":4,"success":true,"result":{"tools":[{"name":"a","description":"old"}],"nextCursor":"c2"}},"duration_ms":1},
{"request":{"seq":5,"at_ms":5,"id":3,"method":"tools/list"},"response":{"seq":6,"at_ms":6,"success":true,"result":{"tools":[{"name":"a","description":"new"}],"nextCursor":"c2"}},"duration_ms":1},
{"request":{"seq":7,"at_ms":7,"id":4,"method":"tools/list","params":{"cursor":"c2"}},"response":{"seq":8,"at_ms":8,"success":true,"result":{"tools":[{"name":"b"}]}},"duration_ms":1}"#;
    let pages = r#"*live-2*) say '"result":{"tools":[{"name":"b"}]}' ;;
    *tools/list*) say '"result":{"tools":[{"name":"a","description":"new"}],"nextCursor":"live-2"}' ;;"#;
    let fixture = Fixture::new().file("trace.jsonl", &trace(calls)).file("server.sh", &server(pages));
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server.sh", @r#"
    exit: 1
    ----- stdout -----
    ~ tools/list
      error: changed: the tool `a` (message 3)
        $.description: expected "old", got "new"
    ----- stderr -----
    2 as recorded, 1 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` ignores a value
    "#);
}

#[test]
fn a_session_that_cannot_start_does_not_affect_the_others() {
    let list = r#"{"request":{"seq":3,"at_ms":3,"id":2,"method":"tools/list"},"response":{"seq":4,"at_ms":4,"success":true,"result":{"tools":[{"name":"a"}]}},"duration_ms":1}"#;
    let call = |id: u8| {
        format!(
            r#"{{"request":{{"seq":{id},"at_ms":1,"id":{id},"method":"tools/call","params":{{"name":"a","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}}}},"response":{{"seq":9,"at_ms":4,"success":true,"result":{{}}}},"duration_ms":1}}"#
        )
    };
    let stateless =
        |id: u8| format!(r#"{{"format":1,"session_id":"{id}","calls":[{},{}],"messages":[]}}"#, call(id), call(id + 1));
    let sessions = [trace(list), trace(list), stateless(1), trace(list)].join("\n");
    let tools = r#"*tools/list*) say '"result":{"tools":[{"name":"b"}]}' ;;"#;
    let starts = r#"n=$(cat starts); echo "$n+" > starts; [ "$n" = + ] || [ "$n" = ++ ] && exit 1"#;
    let fixture = Fixture::new().file("trace.jsonl", &sessions).file("starts", "");
    let fixture = fixture.file("server.sh", &format!("{starts}\n{}", server(tools)));
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server.sh", @"
    exit: 3
    ----- stdout -----
    ~ tools/list
      error: removed: the tool `a` is no longer listed (message 3)
      error: added: the tool `b` was not listed before (message 3)
    ~ session 2: initialize
      error: no answer: the server exited with status 1 before it answered initialize
        the server's process ended: exit status: 1
    . session 2: tools/list: skipped, the server was lost
    ~ session 3: tools/call a
      error: no answer: the server exited with status 1 before it answered tools/call
        the server's process ended: exit status: 1
    . session 3: tools/call a: skipped, the server was lost
    ~ session 4: tools/list
      error: removed: the tool `a` is no longer listed (message 3)
      error: added: the tool `b` was not listed before (message 3)
    ----- stderr -----
    2 as recorded, 4 different, 2 skipped
    ");
}
