//! `rehearse verify`: errors and hints.

use crate::fixture::{Fixture, rehearse};

/// A server that lists no tools; its first argument selects another behaviour, `other` lists one tool.
const SERVER: &str = r#"while read line; do
  id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  answer='"result":{"tools":[]}'
  case "$1 $line" in
    *notifications/*) continue ;;
    *'"initialize"'*) answer='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    dies*) echo "login as ghp_0123456789abcdefghijABCDEFGHIJ012345" >&2; exit 3 ;;
    garbled*) answer='"result":{"api_key":"abcd-1234"},"error":1' ;;
    logs*) echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"api_key":"abcd-1234"}}}' ;;
    silent*) echo "waiting, password=abcd-1234" >&2; continue ;;
    other*) answer='"result":{"tools":[{"name":"a","inputSchema":{}}]}' ;;
    nameless*) answer='"result":{"tools":[{"inputSchema":{}}]}' ;;
  esac
  echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$answer}"
done
"#;

fn recorded() -> Fixture {
    let fixture = Fixture::new().file("server.sh", SERVER);
    fixture.run("rehearse list --protocol legacy -- rehearse record -q -o trace.jsonl -- sh server.sh");
    fixture
}

#[test]
fn stderr_and_log_lines_have_no_secrets() {
    let fixture = recorded();
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server.sh dies", @"
    exit: 3
    ----- stdout -----
    ~ tools/list
      error: no answer: the server exited with status 3 before it answered tools/list
        the server's process ended: exit status: 3
        last lines of its stderr:
          login as [redacted:b9aa0fc5]
    ----- stderr -----
    1 as recorded, 1 different, 0 skipped
    ");
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server.sh garbled", @r#"
    exit: 3
    ----- stdout -----
    ~ tools/list
      error: no answer: the answer to tools/list is not a response: both `result` and `error`
        {"jsonrpc":"2.0","id":2,"result":{"api_key":"[redacted:bfc4c1d5]"},"error":1}
    ----- stderr -----
    1 as recorded, 1 different, 0 skipped
    "#);
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server.sh logs", @r#"
    exit: 0
    ----- stderr -----
    [info] {"api_key":"[redacted:bfc4c1d5]"}
    2 as recorded, 0 different, 0 skipped
    "#);
    // Also if there is nothing to compare, and with the messages shown.
    let gone = "sh -c 'echo login as ghp_0123456789abcdefghijABCDEFGHIJ012345 >&2; exit 3'";
    rehearse!(fixture, &format!("rehearse verify trace.jsonl -- {gone}"), @"
    exit: 3
    ----- stderr -----
    error: the server exited with status 3 before it answered initialize
      the server's process ended: exit status: 3
      last lines of its stderr:
        login as [redacted:b9aa0fc5]
    ");
    let secrets = ["ghp_0123456789", "abcd-1234"];
    for word in ["dies", "garbled", "logs", "silent"] {
        let verify = |more: &str| {
            fixture.run(&format!("rehearse verify trace.jsonl --timeout 0.3 {more} -- sh server.sh {word} 2>&1"))
        };
        let (shown, whole) = (verify("-v"), verify("-v --no-redact"));
        assert!(!secrets.iter().any(|secret| shown.contains(secret)), "{shown}");
        assert!(secrets.iter().any(|secret| whole.contains(secret)), "{whole}");
    }
}

#[test]
fn the_timeout_is_extended_only_for_a_silent_server() {
    let fixture = recorded();
    rehearse!(fixture, "rehearse verify trace.jsonl --timeout 0.3 -- sh server.sh silent", @r"
    exit: 3
    ----- stdout -----
    ~ tools/list
      error: no answer: no answer to tools/list within 0.3 s
        last lines of its stderr:
          waiting, password=[redacted:bfc4c1d5]
    ----- stderr -----
    1 as recorded, 1 different, 0 skipped
    hint: a request timed out; `--timeout 60` waits longer
    ");
}

#[test]
fn an_update_is_suggested_if_it_is_possible() {
    let fixture = recorded();
    let piped = "bash -c 'rehearse verify <(cat trace.jsonl) -- sh server.sh other 2>&1'";
    for line in ["rehearse verify - -- sh server.sh other 2>&1 < trace.jsonl", piped] {
        insta::allow_duplicates! {
            rehearse!(fixture, line, @r"
            exit: 1
            ----- stdout -----
            ~ tools/list
              error: added: the tool `a` was not listed before (message 3)
            1 as recorded, 1 different, 0 skipped
            hint: `--ignore PATH` ignores a value; `--update` needs a recording in a file
            ");
        }
    }
    rehearse!(fixture, "bash -c 'rehearse verify <(cat trace.jsonl) --update -- sh server.sh other'", @"
    exit: 2
    ----- stderr -----
    error: --update needs a recording in a file, not stdin or a pipe
    ");
    let python = include_str!("../../../../fixtures/traces/python.jsonl");
    let fixture = fixture.file("python.jsonl", python);
    rehearse!(fixture, "rehearse verify python.jsonl -- sh server.sh other 2>&1 | tail -n 1", @r"
    exit: 0
    ----- stdout -----
    hint: `--ignore PATH` ignores a value; `--update` needs a trace, which `rehearse trace convert` writes
    ");
}

#[test]
fn a_read_only_recording_is_reported_before_the_server_is_called() {
    let fixture = recorded();
    fixture.run("chmod 444 trace.jsonl");
    rehearse!(fixture, "rehearse verify trace.jsonl --update -- sh -c 'touch called; exec sh server.sh other'; ls -A", @"
    exit: 0
    ----- stdout -----
    server.sh
    trace.jsonl
    ----- stderr -----
    error: cannot write trace.jsonl: the file is read-only
    ");
    // A hard link to the recording keeps the old contents.
    fixture.run("chmod 644 trace.jsonl; ln trace.jsonl other.jsonl");
    fixture.run("rehearse verify trace.jsonl --update -- sh server.sh other");
    rehearse!(fixture, "rehearse verify other.jsonl -- sh server.sh && rehearse verify trace.jsonl -- sh server.sh other", @"
    exit: 0
    ----- stderr -----
    2 as recorded, 0 different, 0 skipped
    2 as recorded, 0 different, 0 skipped
    ");
}

#[test]
fn a_tool_without_a_name_is_reported() {
    rehearse!(recorded(), "rehearse verify trace.jsonl -- sh server.sh nameless 2>&1 | head -2", @"
    exit: 0
    ----- stdout -----
    ~ tools/list
      error: added: a tool without a name was not listed before (message 3)
    ");
}
