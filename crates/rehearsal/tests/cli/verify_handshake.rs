//! `rehearse verify` of sessions whose client had to find the version of the server.

use crate::fixture::{Fixture, rehearse};

/// A server that answers `server/discover` with its first argument, and accepts every other request at any time.
const SERVER: &str = r#"while read line; do
  id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case "$line" in
    *notifications/*) continue ;;
    *server/discover*) answer=$1 ;;
    *'"initialize"'*) answer='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *) answer='"result":{"tools":[]}' ;;
  esac
  echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$answer}"
done
"#;

const REFUSES: &str = r#"'"error":{"code":-32601,"message":"no such method"}'"#;

/// The requests of a client that starts with `server/discover`.
const STATELESS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
"#;

#[test]
fn a_session_with_a_refused_discover_starts_with_the_handshake() {
    let fixture = Fixture::new().file("server.sh", SERVER).file("requests", STATELESS);
    fixture.run(&format!("rehearse list -- rehearse record -q -o trace.jsonl -- sh server.sh {REFUSES}"));
    rehearse!(fixture, &format!("rehearse verify trace.jsonl -- sh server.sh {REFUSES}"), @"
    exit: 0
    ----- stdout -----
    . server/discover: skipped, it negotiated no version
    ----- stderr -----
    2 as recorded, 0 different, 1 skipped
    ");
    fixture.run(&format!("rehearse record -q -o stateless.jsonl -- sh server.sh {REFUSES} < requests"));
    rehearse!(fixture, &format!("rehearse verify stateless.jsonl -- sh server.sh {REFUSES}"), @"
    exit: 0
    ----- stdout -----
    . server/discover: skipped, it negotiated no version
    ----- stderr -----
    1 as recorded, 0 different, 1 skipped
    ");
}

#[test]
fn a_session_without_discover_is_sent_without_one() {
    let server = SERVER.replace("*server/discover*) answer=$1 ;;", "*server/discover*) exit 3 ;;");
    let requests = STATELESS.lines().nth(1).unwrap_or_default();
    let fixture = Fixture::new().file("server.sh", &server).file("requests", &format!("{requests}\n"));
    fixture.run("rehearse record -q -o trace.jsonl -- sh server.sh < requests");
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server.sh", @"
    exit: 0
    ----- stderr -----
    1 as recorded, 0 different, 0 skipped
    ");
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh -c 'exit 4'", @"
    exit: 3
    ----- stderr -----
    error: the server exited with status 4 before it answered tools/list
      the server's process ended: exit status: 4
    ");
}
