//! `rehearse verify` of responses with additional members, or with another value in place of a list.

use crate::fixture::{Fixture, rehearse};

/// A server that reads its responses from files; its first argument is the prefix of their names.
const SERVER: &str = r#"while read line; do
  id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case "$line" in
    *server/discover*) answer=$(cat $1-discover) ;;
    *tools/list*) answer=$(cat $1-list) ;;
    *) answer=$(cat $1-call) ;;
  esac
  echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$answer}"
done
"#;

/// A recording of a server of 2026-07-28 with the responses `before`, and files with the responses `after`.
fn recorded(before: [&str; 3], after: [&str; 3]) -> Fixture {
    let about = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let request = |id: u8, method: &str, name: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{name}{about}}}}}"#)
    };
    let requests = [
        request(1, "server/discover", ""),
        request(2, "tools/list", ""),
        request(3, "tools/call", r#""name":"a","arguments":{},"#),
    ];
    let fixture = Fixture::new().file("server.sh", SERVER).file("requests", &(requests.join("\n") + "\n"));
    let files = ["discover", "list", "call"];
    let of = |fixture: Fixture, when: &str, answers: [&str; 3]| {
        files
            .iter()
            .zip(answers)
            .fold(fixture, |fixture, (file, answer)| fixture.file(&format!("{when}-{file}"), answer))
    };
    let fixture = of(of(fixture, "before", before), "after", after);
    fixture.run("rehearse record -q -o trace.jsonl -- sh server.sh before < requests");
    fixture
}

const DISCOVERED: &str = r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete","ttlMs":1,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#;
const LISTED: &str = r#""result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"resultType":"complete","ttlMs":1,"cacheScope":"public"}"#;
const REFUSED: &str = r#""error":{"code":-1,"message":"no","data":{"a":1},"hint":"later"}"#;

#[test]
fn every_member_of_a_response_is_compared() {
    let discovered = DISCOVERED.replace(r#""ttlMs":1"#, r#""ttlMs":2,"motd":"hello""#);
    let discovered = discovered.replace(r#""name":"s""#, r#""name":"s","title":"S""#);
    let listed = LISTED.replace(r#","cacheScope":"public""#, r#","total":1"#).replace("complete", "whole");
    let refused = REFUSED.replace("later", "never").replace(r#""hint""#, r#""kind":4,"hint""#);
    let fixture = recorded([DISCOVERED, LISTED, REFUSED], [&discovered, &listed, &refused]);
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server.sh before", @"
    exit: 0
    ----- stderr -----
    3 as recorded, 0 different, 0 skipped
    ");
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server.sh after", @r#"
    exit: 1
    ----- stdout -----
    ~ server/discover
      error: added (message 0)
        $.result.serverInfo.title: expected nothing, got "S"
        $.result.motd: expected nothing, got "hello"
      error: changed (message 0)
        $.result.ttlMs: expected 1, got 2
    ~ tools/list
      error: removed (message 1)
        $.result.cacheScope: missing, expected "public"
      error: added (message 1)
        $.result.total: expected nothing, got 1
      error: changed (message 1)
        $.result.resultType: expected "complete", got "whole"
    ~ tools/call a
      error: added (message 2)
        $.error.kind: expected nothing, got 4
      error: changed (message 2)
        $.error.hint: expected "later", got "never"
    ----- stderr -----
    0 as recorded, 3 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` ignores a value
    "#);
    let ignored = "--ignore '$.result' --ignore '$.error.hint' --ignore '$.error.kind'";
    rehearse!(fixture, &format!("rehearse verify trace.jsonl {ignored} -- sh server.sh after"), @"
    exit: 0
    ----- stderr -----
    3 as recorded, 0 different, 0 skipped
    ");
    fixture.run("rehearse verify trace.jsonl --update -- sh server.sh after");
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server.sh after", @"
    exit: 0
    ----- stderr -----
    3 as recorded, 0 different, 0 skipped
    ");
}

#[test]
fn an_object_with_only_ignored_members_may_be_missing() {
    let listed = LISTED.replace(r#""name":"a""#, r#""name":"a","annotations":{"n":1}"#);
    let called = r#""result":{"content":[],"structuredContent":{"n":1},"resultType":"complete"}"#;
    let after = called.replace(r#""structuredContent":{"n":1},"#, "");
    let fixture = recorded([DISCOVERED, &listed, called], [DISCOVERED, LISTED, &after]);
    rehearse!(fixture, "rehearse verify trace.jsonl --ignore '$..n' -- sh server.sh after", @"
    exit: 0
    ----- stderr -----
    3 as recorded, 0 different, 0 skipped
    ");
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server.sh after 2>&1 | grep missing", @r#"
    exit: 0
    ----- stdout -----
        $.annotations: missing, expected {"n":1}
        $.result.structuredContent: missing, expected {"n":1}
    "#);
}

#[test]
fn a_list_that_became_another_value_has_changed_its_type() {
    let wrong = r#""result":{"tools":{},"resultType":"complete","ttlMs":1,"cacheScope":"public"}"#;
    let none = r#""result":{"resultType":"complete","ttlMs":1,"cacheScope":"public"}"#;
    let fixture = recorded([DISCOVERED, LISTED, REFUSED], [DISCOVERED, wrong, REFUSED]).file("none-list", none);
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server.sh after", @r#"
    exit: 1
    ----- stdout -----
    ~ tools/list
      error: type changed (message 1)
        $.result.tools: expected [{"name":"a","inputSchema":{"type":"object"}}], got {}
    ----- stderr -----
    2 as recorded, 1 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` ignores a value
    "#);
    fixture.run("cp before-call none-call; cp before-discover none-discover");
    rehearse!(fixture, "rehearse verify trace.jsonl --update -- sh server.sh none", @r#"
    exit: 0
    ----- stdout -----
    ~ tools/list
      error: removed (message 1)
        $.result.tools: missing, expected [{"name":"a","inputSchema":{"type":"object"}}]
    ----- stderr -----
    2 as recorded, 1 different, 0 skipped
    trace.jsonl has the live answers now
    "#);
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server.sh before", @r#"
    exit: 1
    ----- stdout -----
    ~ tools/list
      error: added (message 1)
        $.result.tools: expected nothing, got [{"name":"a","inputSchema":{"type":"object"}}]
    ----- stderr -----
    2 as recorded, 1 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` ignores a value
    "#);
}

#[test]
fn envelope_members_are_ignored_if_the_recorded_version_is_unknown() {
    let python = include_str!("../../../../fixtures/traces/python.jsonl");
    let fixture = Fixture::new().file("python.jsonl", python);
    let output = fixture.run("rehearse verify python.jsonl --protocol modern -- tiny-server");
    assert!(output.contains("different") && !output.contains("resultType"), "{output}");
}

#[test]
fn an_unrecorded_error_code_is_not_compared() {
    let call = |error: &str| {
        format!(
            r#"{{"session_id":"s","server_info":{{}},"calls":[{{"request":{{"method":"call_tool","args":["boom"],"kwargs":{{"arguments":{{}}}}}},"response":{{"success":false,"result":null,"error":{error}}}}}],"started_at":"2025-10-30T10:30:45","ended_at":null,"metadata":{{}}}}"#
        )
    };
    let message = r#""unknown tool \"boom\"""#;
    let fixture = Fixture::new().file("message.jsonl", &call(message));
    let fixture = fixture.file("code.jsonl", &call(&format!(r#"{{"code":-32603,"message":{message}}}"#)));
    fixture.run("rehearse trace convert message.jsonl > trace.jsonl");
    for trace in ["message.jsonl", "trace.jsonl"] {
        insta::allow_duplicates! {
            rehearse!(fixture, &format!("rehearse verify {trace} -- tiny-server"), @"
            exit: 0
            ----- stderr -----
            1 as recorded, 0 different, 0 skipped
            ");
        }
    }
    rehearse!(fixture, "rehearse verify code.jsonl -- tiny-server 2>/dev/null", @"
    exit: 1
    ----- stdout -----
    ~ tools/call boom
      error: changed (message 0)
        $.error.code: expected -32603, got -32602
    ");
}

#[test]
fn a_lone_surrogate_is_compared_as_u_fffd_and_recorded_unchanged() {
    let server = r#"while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  [ "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"
done
"#;
    let requests = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
"#;
    let fixture = Fixture::new().file("server.sh", server).file("requests", requests);
    fixture.run(r#"rehearse record -q -o trace.jsonl -- sh server.sh '{"text":"cut \ud83d"}' < requests"#);
    rehearse!(fixture, r#"rehearse verify trace.jsonl -- sh server.sh '{"text":"cut \uD83D"}'"#, @"
    exit: 0
    ----- stderr -----
    1 as recorded, 0 different, 0 skipped
    ");
    let different = fixture.run(r#"rehearse verify trace.jsonl -- sh server.sh '{"text":"cut \ud83d\ude00"}'"#);
    assert!(different.contains("$.result.text: expected \"cut \u{fffd}\", got \"cut \u{1f600}\""), "{different}");
    fixture.run(r#"rehearse verify trace.jsonl --update -- sh server.sh '{"text":"hurt \ud83e"}'"#);
    assert!(fixture.run("cat trace.jsonl").contains(r#""result":{"text":"hurt \ud83e"}"#));
}

#[test]
fn a_session_without_calls_member_is_reported() {
    let call = r#"{"request":{"method":"list_prompts","args":[],"kwargs":{}},"response":{"success":true,"result":{"prompts":[]}}}"#;
    let sessions = format!(
        r#"{{"session_id":"one","calls":[{call}]}}
{{"session_id":5,"calls":{{"a":1}}}}
{{"session_id":"three","calls":null}}
"#
    );
    let fixture = Fixture::new().file("python.jsonl", &sessions);
    rehearse!(fixture, "rehearse verify python.jsonl --ignore '$.result..*' -- tiny-server", @r#"
    exit: 0
    ----- stdout -----
    warning: session 2 has no list in `calls`, so nothing of it is sent: {"a":1}
    ----- stderr -----
    1 as recorded, 0 different, 0 skipped
    "#);
}

#[test]
fn the_json_report_has_the_kind_values_and_count_of_differences() {
    let server = r#"while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  [ "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"result":{"text":"%0100d","n":1%s}}\n' "$id" "$1" "$2"
done
"#;
    let requests = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
"#;
    let fixture = Fixture::new().file("server.sh", server).file("requests", requests);
    fixture.run("rehearse record -q -o trace.jsonl -- sh server.sh 1 0 < requests");
    let output = fixture.run("rehearse verify trace.jsonl --json -- sh server.sh 2 1");
    let json = output.split("----- stderr").next().and_then(|text| text.split_once("stdout -----\n"));
    let (_, json) = json.unwrap_or_else(|| panic!("{output}"));
    let long = |last: u8| format!(r#""{:0>99}{last}""#, "");
    for line in [
        r#""kind": "changed","#.to_owned(),
        format!(r#""was": {},"#, long(1)),
        format!(r#""is": {}"#, long(2)),
        r#""was": 10,"#.to_owned(),
        r#""is": 11"#.to_owned(),
        r#""failed": 1,"#.to_owned(),
    ] {
        assert!(json.lines().any(|it| it.trim() == line), "{line}\n{json}");
    }
}
