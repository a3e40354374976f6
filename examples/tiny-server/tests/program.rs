//! The program itself: exit status, stdout and stderr.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tiny-server"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs the program with that stdin and shows everything that came of it.
fn run(arguments: &[&str], stdin: &str) -> String {
    let mut child = start(arguments);
    // A program that ends at once reads nothing.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    let mut shown = format!("exit: {}\n", output.status.code().unwrap());
    for (name, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
        if !bytes.is_empty() {
            shown += &format!("----- {name} -----\n{}", String::from_utf8(bytes).unwrap());
        }
    }
    shown
}

#[test]
fn what_is_piped_in_is_answered_before_the_end() {
    let asked = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}"#,
        "\n",
    );
    assert_eq!(
        run(&[], asked),
        r#"exit: 0
----- stdout -----
{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"logging":{}},"serverInfo":{"name":"tiny-server","version":"0.1.0"},"instructions":"Try the tool `echo` first; `ask`, `sample` and `roots` ask you something in return."}}
{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"hi"}]}}
"#
    );
}

#[test]
fn a_wrong_argument_is_explained() {
    assert_eq!(
        run(&["--page-size", "none"], ""),
        "exit: 2\n----- stderr -----\ntiny-server: --page-size must be a number from 1 on, not \"none\"\nhint: tiny-server --help\n"
    );
}

#[test]
fn help_names_every_tool() {
    let help = run(&["--help"], "");
    assert!(help.starts_with("exit: 0\n----- stdout -----\ntiny-server: a small MCP server"), "{help}");
    for tool in ["echo", "add", "slow", "log", "fail", "ask", "sample", "roots", "picture", "touch"] {
        assert!(help.contains(&format!("\n  {tool} {{")), "{tool}");
    }
}

#[test]
fn a_signal_ends_it_politely() {
    for signal in ["TERM", "INT"] {
        let mut child = start(&[]);
        let mut stdin = child.stdin.take().unwrap();
        writeln!(stdin, r#"{{"jsonrpc":"2.0","id":1,"method":"ping"}}"#).unwrap();
        let mut answer = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut answer).unwrap();
        assert_eq!(answer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
        Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
    }
}

#[test]
fn over_http_it_says_where_it_listens_and_ends_at_a_signal() {
    let mut child = start(&["--http"]);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line.strip_prefix("listening on http://").unwrap().strip_suffix("/mcp\n").unwrap();

    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let mut socket = TcpStream::connect(address).unwrap();
    write!(
        socket,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: echo\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains(r#""content":[{"type":"text","text":"hi"}]"#), "{answer}");

    let second = run(&["--http", address], "");
    assert!(
        second.starts_with(&format!("exit: 1\n----- stderr -----\ntiny-server: cannot listen on {address}: ")),
        "{second}"
    );

    Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
