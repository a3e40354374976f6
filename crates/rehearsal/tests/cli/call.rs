//! `rehearse call`

use crate::fixture::{Fixture, rehearse};

#[test]
fn values_are_read_as_the_types_that_the_tool_wants() {
    rehearse!(Fixture::new(), "rehearse call add a=1 b=2.5 -- tiny-server", @r"
exit: 0
----- stdout -----
3.5
");
    rehearse!(Fixture::new(), "rehearse call echo 'message:=\"5\"' -- tiny-server", @r"
exit: 0
----- stdout -----
5
");
}

#[test]
fn content_that_is_not_text_is_shown_in_one_line() {
    rehearse!(Fixture::new(), "rehearse call picture -- tiny-server", @r"
    exit: 0
    ----- stdout -----
    [image image/png, 69 bytes]
    [link tiny://pixel, image/png]
    [resource tiny://greeting, text/plain]
    Hello from tiny-server
    ----- stderr -----
    hint: `--save DIR` writes images, audio and bytes to files
    ");
}

#[test]
fn args_come_from_the_line_a_file_or_stdin() {
    let fixture = Fixture::new().file("message.json", r#"{"message": "from a file"}"#);
    rehearse!(fixture, r#"rehearse call echo --args '{"message": "from the line"}' -- tiny-server"#, @r"
exit: 0
----- stdout -----
from the line
");
    rehearse!(fixture, "rehearse call echo --args - -- tiny-server < message.json", @r"
exit: 0
----- stdout -----
from a file
");
    rehearse!(fixture, "rehearse call echo --args @message.json message='from both' -- tiny-server", @r"
exit: 0
----- stdout -----
from both
");
}

#[test]
fn a_tool_that_is_misspelled_gets_a_suggestion() {
    rehearse!(Fixture::new(), "rehearse call ecoh message=hello -- tiny-server", @r"
exit: 2
----- stderr -----
error: the server has no tool `ecoh`
hint: did you mean `echo`?
");
}

#[test]
fn a_tool_that_may_depend_on_client_capabilities_gets_both_hints() {
    rehearse!(Fixture::new(), "rehearse call picture-with-sampling -- tiny-server", @r"
exit: 2
----- stderr -----
error: the server has no tool `picture-with-sampling`
hint: did you mean `picture`?
hint: some servers list a tool only to clients with --roots or --answer
");
}

#[test]
fn an_argument_that_is_misspelled_gets_a_suggestion() {
    rehearse!(Fixture::new(), "rehearse call echo mesage=hello -- tiny-server", @r"
exit: 2
----- stderr -----
error: `echo` has no argument `mesage`
hint: did you mean `message`?
hint: `--args JSON` is sent unchecked
");
}

#[test]
fn a_value_that_is_not_among_the_choices_gets_a_suggestion() {
    rehearse!(Fixture::new(), "rehearse call log level=warn message=x -- tiny-server", @r"
    exit: 2
    ----- stderr -----
    error: argument `level` cannot be `warn`
    hint: did you mean `warning`?
    hint: `level:=JSON` is sent unchecked
    ");
}

#[test]
fn an_argument_that_is_missing_is_named_with_its_description() {
    rehearse!(Fixture::new(), "rehearse call slow delay_ms=1 -- tiny-server", @r"
    exit: 2
    ----- stderr -----
    error: `slow` needs `steps`
      required arguments:
        steps  integer  How many steps
    hint: `--args JSON` is sent unchecked
    ");
}

#[test]
fn a_word_that_is_no_argument_is_probably_a_command() {
    rehearse!(Fixture::new(), "rehearse call echo message=hello tiny-server", @r"
    exit: 2
    ----- stderr -----
    error: `tiny-server` is not key=value
    hint: write arguments as key=value or key:=JSON, and the command of a server after `--`
    ");
}

#[test]
fn a_tool_error_exits_with_status_1() {
    rehearse!(Fixture::new(), "rehearse call fail message='out of rain' -- tiny-server", @r"
exit: 1
----- stdout -----
out of rain
----- stderr -----
error: the tool failed
");
}

#[test]
fn args_alone_are_sent_unchecked_so_that_errors_can_be_provoked() {
    rehearse!(Fixture::new(), "rehearse call ecoh --args '{}' --json -- tiny-server", @r#"
exit: 1
----- stdout -----
{"code":-32602,"message":"unknown tool \"ecoh\""}
----- stderr -----
error: -32602: unknown tool "ecoh"
"#);
}

#[test]
fn invalid_json_args_are_reported_with_their_position() {
    rehearse!(Fixture::new(), r#"rehearse call echo --args '{"message": hello}' -- tiny-server"#, @r#"
exit: 2
----- stderr -----
error: --args, line 1, column 13: not JSON: expected value
hint: quote it for the shell: --args '{"key": "value"}'; --args @FILE reads a file
"#);
}

#[test]
fn verbose_shows_the_wire() {
    let line = r#"rehearse call echo --args '{"message": "hi"}' -v --protocol 2025-06-18 -- tiny-server"#;
    rehearse!(Fixture::new(), line, @r#"
    exit: 0
    ----- stdout -----
    hi
    ----- stderr -----
    > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"rehearsal","version":"[VERSION]"}}}
    < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"logging":{},"completions":{},"prompts":{},"resources":{"subscribe":true},"tools":{}},"serverInfo":{"name":"tiny-server","title":"Tiny server","version":"[VERSION]"},"instructions":"Try the tool `echo` first; `ask`, `sample` and `roots` ask you something in return."}}
    > {"jsonrpc":"2.0","method":"notifications/initialized"}
    > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message": "hi"},"_meta":{"progressToken":2}}}
    < {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"hi"}],"isError":false}}
    "#);
}

#[test]
fn verbose_shows_the_servers_stderr() {
    let server = "sh -c 'echo getting ready >&2; echo and gone >&2'";
    rehearse!(Fixture::new(), &format!("rehearse list -v --protocol legacy -- {server}"), @r#"
exit: 3
----- stderr -----
> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"rehearsal","version":"[VERSION]"}}}
! getting ready
! and gone
error: the server exited with status 0 before it answered initialize
  the server's process ended: exit status: 0
  last lines of its stderr:
    getting ready
    and gone
"#);
}

/// A server that has one answer to every call.
fn answering(result: &str) -> Fixture {
    let opened =
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{}}}"#;
    let answer = format!(r#"{{"jsonrpc":"2.0","id":2,"result":{result}}}"#);
    let script = format!("read initialize\necho '{opened}'\nread initialized\nread call\necho '{answer}'\ncat\n");
    Fixture::new().file("server.sh", &script)
}

#[test]
fn a_result_of_another_shape_is_shown_and_is_a_failure() {
    rehearse!(answering(r#"{"content":"not a list"}"#), "rehearse call t --args '{}' --protocol legacy -- sh server.sh", @r#"
    exit: 1
    ----- stdout -----
    {
      "content": "not a list"
    }
    ----- stderr -----
    error: the result of tools/call has a `content` that is not a list
    "#);
    rehearse!(answering(r#"{"structuredContent":{"sum":3}}"#), "rehearse call t --args '{}' --protocol legacy -- sh server.sh", @r#"
    exit: 0
    ----- stdout -----
    {
      "sum": 3
    }
    "#);
}

#[test]
fn the_result_is_printed_after_the_log_lines_of_the_server() {
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"again"}}"#;
    let opened =
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{}}}"#;
    let flood = format!("while :; do echo '{log}'; done");
    let script = format!("read initialize\necho '{opened}'\nread initialized\nread call\n{flood}\n");
    let fixture = Fixture::new().file("server.sh", &script);
    rehearse!(fixture, "rehearse call t --args '{}' --timeout 1s --protocol legacy -- sh server.sh 2>all; grep -A100 error: all | grep -c again; grep error: all", @"
    exit: 0
    ----- stdout -----
    0
    error: no answer to tools/call within 1 s
    ");
}
