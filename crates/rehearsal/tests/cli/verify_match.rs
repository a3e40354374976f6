//! `rehearse verify --match`.

use crate::fixture::{Fixture, rehearse};

/// A server whose responses contain its arguments.
pub(crate) const SERVER: &str = r#"while read -r line; do
  id=$(echo "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *notifications/*) continue ;;
    *'"initialize"'*) answer='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *tools/list*) answer='{"tools":[{"name":"a","description":"'$2'"},{"name":"b"}]}' ;;
    *) answer='{"content":[{"type":"text"'$1'}]}' ;;
  esac
  echo '{"jsonrpc":"2.0","id":'"$id"',"result":'"$answer"'}'
done
"#;

pub(crate) const REQUESTS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a"}}
"#;

const VERIFY: &str = r#"rehearse verify trace.jsonl --match '$.result.content[0].text={"matches":"^at [0-9]+$"}' --match '$.result.tools[*].description={"matches":"^v"}'"#;

fn recorded() -> Fixture {
    let fixture = Fixture::new().file("server.sh", SERVER).file("requests", REQUESTS);
    fixture.run(r#"rehearse record -q -o trace.jsonl -- sh server.sh ',"text":"at 1"' v1 < requests"#);
    fixture
}

#[test]
fn a_value_that_fits_its_matcher_counts_as_equal() {
    let fixture = recorded();
    rehearse!(fixture, &format!(r#"{VERIFY} -- sh server.sh ',"text":"at 2"' v2"#), @"
    exit: 0
    ----- stderr -----
    3 as recorded, 0 different, 0 skipped
    ");
    rehearse!(fixture, &format!(r#"{VERIFY} -- sh server.sh ',"text":"soon"' w"#), @r#"
    exit: 1
    ----- stdout -----
    ~ tools/list
      error: changed: the tool `a` (message 2)
        $.description: expected a string matching /^v/, got "w"
    ~ tools/call a
      error: changed (message 3)
        $.result.content[0].text: expected a string matching /^at [0-9]+$/, got "soon"
    ----- stderr -----
    1 as recorded, 2 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` ignores a value
    "#);
    rehearse!(fixture, &format!(r#"{VERIFY} --match '$.result.tools={{"length":3}}' -- sh server.sh "" v3"#), @r"
    exit: 1
    ----- stdout -----
    ~ tools/list
      error: changed (message 2)
        $.result.tools: expected a length of 3, got a length of 2
    ~ tools/call a
      error: removed (message 3)
        $.result.content[0].text: missing, expected a string matching /^at [0-9]+$/
    ----- stderr -----
    1 as recorded, 2 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` ignores a value
    ");
}

#[test]
fn a_path_that_matches_nothing_is_reported() {
    let fixture = recorded();
    let server = r#"-- sh server.sh ',"text":"at 1"' v1"#;
    rehearse!(fixture, &format!("rehearse verify trace.jsonl --ignore '$.result.serverinfo' --ignore '$.result.content[0].text' --match '$.result.tool[0]=x' {server}"), @"
    exit: 0
    ----- stdout -----
    warning: $.result.serverinfo led to nothing in any answer, recorded or live
    warning: $.result.tool[0] led to nothing in any answer, recorded or live
    ----- stderr -----
    3 as recorded, 0 different, 0 skipped
    ");
    // A path may match only the live response.
    rehearse!(fixture, r#"rehearse verify trace.jsonl --ignore '$.result.content[0].new' -- sh server.sh ',"text":"at 1","new":1' v1"#, @"
    exit: 0
    ----- stderr -----
    3 as recorded, 0 different, 0 skipped
    ");
}

#[test]
fn an_update_keeps_values_that_fit_their_matcher() {
    let fixture = recorded();
    rehearse!(fixture, &format!(r#"{VERIFY} --update -- sh server.sh ',"text":"at 2","new":1' w; grep -o '"text":"at 1"[^}}]*\|"description":"[^"]*"' trace.jsonl"#), @r#"
    exit: 0
    ----- stdout -----
    ~ tools/list
      error: changed: the tool `a` (message 2)
        $.description: expected a string matching /^v/, got "w"
    ~ tools/call a
      error: added (message 3)
        $.result.content[0].new: expected nothing, got 1
    "description":"w"
    "text":"at 1","new":1
    ----- stderr -----
    1 as recorded, 2 different, 0 skipped
    trace.jsonl has the live answers now
    "#);
}

#[test]
fn a_secret_that_does_not_fit_is_not_shown() {
    let fixture = Fixture::new().file("server.sh", SERVER).file("requests", REQUESTS);
    let redact = "--redact '$..description' --redact '$..text'";
    fixture.run(&format!(
        r#"rehearse record -q -o trace.jsonl {redact} -- sh server.sh ',"text":"hidden1"' hidden2 < requests"#
    ));
    let output = fixture.run(&format!(r#"{VERIFY} -- sh server.sh ',"text":"hidden3"' hidden4"#));
    assert!(output.contains("string matching") && !output.contains("hidden"), "{output}");
}

#[test]
fn verify_reports_an_invalid_matcher_before_it_starts_the_server() {
    let fixture = recorded();
    rehearse!(fixture, "rehearse verify trace.jsonl --match now -- sh server.sh", @r#"
    exit: 2
    ----- stderr -----
    error: --match now: there is no `=` in it
    hint: write it like --match '$.result.content[0].text={"matches": "^created at "}'
    "#);
    rehearse!(fixture, "rehearse verify trace.jsonl --match now=1 -- sh server.sh", @r#"
    exit: 2
    ----- stderr -----
    error: --match now: not a JSONPath: unexpected text, at byte 0
    hint: a path begins with `$`, as in --match '$.result.content[0].text={"matches": "^created at "}'
    "#);
}
