//! Servers that do not answer.

use crate::fixture::{Fixture, rehearse};

#[test]
fn a_missing_program_is_reported_with_the_searched_path() {
    rehearse!(Fixture::new(), "rehearse list -- no-such-server", @r#"
    exit: 3
    ----- stderr -----
    error: the server could not be started: there is no program "no-such-server" in PATH
    hint: check the spelling, and that the directory of the program is in PATH
    "#);
    rehearse!(Fixture::new(), "rehearse list -- './no-such-server --flag'", @r#"
    exit: 3
    ----- stderr -----
    error: the server could not be started: there is no program "./no-such-server --flag"
    hint: write the program and its arguments as separate words: -- npx -y some-server
    "#);
}

#[test]
fn the_stderr_of_a_server_that_exits_is_shown() {
    let traceback =
        "Traceback (most recent call last):\n  File \"server.py\", line 1, in <module>\nImportError: no mcp\n";
    let fixture = Fixture::new().file("traceback", traceback).file("server", "cat traceback >&2; exit 3");
    rehearse!(fixture, "rehearse list -- sh server", @r#"
exit: 3
----- stderr -----
error: the server exited with status 3 before it answered initialize
  the server's process ended: exit status: 3
  last lines of its stderr:
    Traceback (most recent call last):
      File "server.py", line 1, in <module>
    ImportError: no mcp
"#);
}

#[test]
fn a_silent_server_runs_into_the_timeout() {
    rehearse!(Fixture::new(), "rehearse list --timeout 0.3 -- sleep 600", @r"
    exit: 3
    ----- stderr -----
    error: no answer to initialize within 0.3 s
    hint: if this is an MCP server, `--timeout 60` waits longer; `-v` prints what it sends
    ");
}

#[test]
fn a_slow_tool_runs_into_the_timeout() {
    rehearse!(Fixture::new(), "rehearse call slow steps=100 delay_ms=10000 --timeout 2s -- tiny-server", @r"
exit: 3
----- stderr -----
error: no answer to tools/call within 2 s
hint: `--timeout 60` waits longer
");
}

#[test]
fn a_program_without_mcp_is_detected() {
    rehearse!(Fixture::new(), "rehearse list --timeout 1 -- sh -c 'echo Listening on port 3000; sleep 600'", @r"
    exit: 3
    ----- stderr -----
    error: no answer to initialize within 1 s
      on its stdout, but not a message:
        Listening on port 3000
    hint: if this is an MCP server, `--timeout 60` waits longer; `-v` prints what it sends
    hint: a server must write only messages to stdout, and logs to stderr
    ");
}

#[test]
fn a_server_that_exits_during_a_call_is_reported_with_its_stderr() {
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"frail"}}}"#;
    let server = "read line; cat answer; echo; read line; read line; echo out of memory >&2; exit 137";
    let fixture = Fixture::new().file("answer", answer).file("server", server);
    rehearse!(fixture, "rehearse call think --args '{}' --protocol legacy -- sh server", @r"
exit: 3
----- stderr -----
error: the server exited with status 137 before it answered tools/call
  the server's process ended: exit status: 137
  last lines of its stderr:
    out of memory
");
}
