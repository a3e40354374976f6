//! `rehearse verify`, where the recorded client had to find out which version is spoken.

use crate::stage::{Stage, rehearse};

/// A server that answers `server/discover` with its first word, and everything else whatever was said before.
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
const ODD: &str = r#"'"result":{"tools":[]}'"#;
const DISCOVERED: &str = r#"'"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}'"#;

/// What a client of 2026-07-28 asks, whatever the first answer is.
const STATELESS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
"#;

#[test]
fn a_refused_or_odd_discover_is_compared_and_the_handshake_follows() {
    for (word, other) in [(REFUSES, ODD), (ODD, REFUSES)] {
        let stage = Stage::new().file("server.sh", SERVER);
        stage.play(&format!("rehearse list -- rehearse record -q -o trace.jsonl -- sh server.sh {word}"));
        insta::allow_duplicates! {
            rehearse!(stage, &format!("rehearse verify trace.jsonl -- sh server.sh {word}"), @"
            exit: 0
            ----- stderr -----
            3 as recorded, 0 different, 0 skipped
            ");
            let told = format!("rehearse verify trace.jsonl -- sh server.sh {other} 2>&1 | grep -v expected");
            rehearse!(stage, &told, @"
            exit: 0
            ----- stdout -----
            ~ server/discover
              error: removed (message 0)
              error: added (message 0)
            2 as recorded, 1 different, 0 skipped
            hint: `--update` writes the live answers into the recording, `--ignore PATH` passes over some
            ");
            // Whoever asks for a version says only what belongs to it.
            rehearse!(stage, &format!("rehearse verify trace.jsonl --protocol legacy -- sh server.sh {word}"), @"
            exit: 0
            ----- stdout -----
            . server/discover: skipped, it agreed on no version, and `--protocol` says which one to speak
            ----- stderr -----
            2 as recorded, 0 different, 1 skipped
            ");
        }
    }
}

#[test]
fn a_server_that_refuses_discover_and_answers_all_the_same_is_asked_all_the_same() {
    let stage = Stage::new().file("server.sh", SERVER).file("requests", STATELESS);
    stage.play(&format!("rehearse record -q -o trace.jsonl -- sh server.sh {REFUSES} < requests"));
    rehearse!(stage, &format!("rehearse verify trace.jsonl -- sh server.sh {REFUSES}"), @"
    exit: 0
    ----- stderr -----
    2 as recorded, 0 different, 0 skipped
    ");
    // What it says about itself by now is a difference like any other, and so is the contrary.
    rehearse!(stage, &format!("rehearse verify trace.jsonl --update -- sh server.sh {DISCOVERED}"), @r#"
    exit: 0
    ----- stdout -----
    ~ server/discover
      error: removed (message 0)
        $.error: missing, expected {"code":-32601,"message":"no such method"}
      error: added (message 0)
        $.result: expected nothing, got {"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}
    ----- stderr -----
    1 as recorded, 1 different, 0 skipped
    trace.jsonl has the live answers now
    "#);
    rehearse!(stage, &format!("rehearse verify trace.jsonl -- sh server.sh {REFUSES}"), @r#"
    exit: 1
    ----- stdout -----
    ~ server/discover
      error: removed (message 0)
        $.result: missing, expected {"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}
      error: added (message 0)
        $.error: expected nothing, got {"code":-32601,"message":"no such method"}
    ----- stderr -----
    1 as recorded, 1 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` passes over some
    "#);
}

#[test]
fn a_server_that_makes_no_handshake_after_a_discover_makes_it_on_a_connection_of_its_own() {
    const MODERN: &str = r#"'"error":{"code":-32022,"message":"only 2026-07-28 here"}'"#;
    let refuses = format!(r#"*'"initialize"'*) [ "$asked" ] && answer={MODERN} || answer="#);
    let upgraded = SERVER.replace(r#"*'"initialize"'*) answer="#, &refuses).replace("answer=$1", "asked=1; answer=$1");
    let modern =
        SERVER.replace(r#"*'"initialize"'*) answer="#, &format!(r#"*'"initialize"'*) answer={MODERN} ;; no) "#));
    let stage = Stage::new().file("server.sh", SERVER).file("upgraded.sh", &upgraded).file("modern.sh", &modern);
    stage.play(&format!("rehearse list -- rehearse record -q -o trace.jsonl -- sh server.sh {REFUSES}"));
    rehearse!(stage, &format!("rehearse verify trace.jsonl -- sh upgraded.sh {DISCOVERED}"), @r#"
    exit: 1
    ----- stdout -----
    ~ server/discover
      error: removed (message 0)
        $.error: missing, expected {"code":-32601,"message":"no such method"}
      error: added (message 0)
        $.result: expected nothing, got {"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}
    ----- stderr -----
    2 as recorded, 1 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` passes over some
    "#);
    rehearse!(stage, &format!("rehearse verify trace.jsonl -- sh modern.sh {DISCOVERED}"), @"
    exit: 3
    ----- stderr -----
    error: initialize was refused: -32022: only 2026-07-28 here
    hint: it may speak no version with a handshake any more; `--protocol modern` makes none
    ");
}

#[test]
fn a_refused_handshake_is_compared_too() {
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let says = |message: &str| {
        format!(r#"read line; echo '{{"jsonrpc":"2.0","id":1,"error":{{"code":-32600,"message":"{message}"}}}}'; cat"#)
    };
    let stage = Stage::new().file("request", &format!("{initialize}\n"));
    let stage = stage.file("before.sh", &says("too old")).file("after.sh", &says("much too old"));
    stage.play("rehearse record -q -o trace.jsonl -- sh before.sh < request");
    rehearse!(stage, "rehearse verify trace.jsonl -- sh before.sh", @"
    exit: 0
    ----- stderr -----
    1 as recorded, 0 different, 0 skipped
    ");
    rehearse!(stage, "rehearse verify trace.jsonl -- sh after.sh", @r#"
    exit: 1
    ----- stdout -----
    ~ initialize
      error: changed (message 0)
        $.error.message: expected "too old", got "much too old"
    ----- stderr -----
    0 as recorded, 1 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` passes over some
    "#);
}

#[test]
fn a_session_without_discover_is_sent_without_one() {
    let server = SERVER.replace("*server/discover*) answer=$1 ;;", "*server/discover*) exit 3 ;;");
    let requests = STATELESS.lines().nth(1).unwrap_or_default();
    let stage = Stage::new().file("server.sh", &server).file("requests", &format!("{requests}\n"));
    stage.play("rehearse record -q -o trace.jsonl -- sh server.sh < requests");
    rehearse!(stage, "rehearse verify trace.jsonl -- sh server.sh", @"
    exit: 0
    ----- stderr -----
    1 as recorded, 0 different, 0 skipped
    ");
    rehearse!(stage, "rehearse verify trace.jsonl -- sh -c 'exit 4'", @"
    exit: 3
    ----- stderr -----
    error: the server exited with status 4 before it answered tools/list
      the server's process ended: exit status: 4
    ");
}
