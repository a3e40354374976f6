//! Servers behind a URL.

use crate::fixture::{Fixture, rehearse};

#[test]
fn a_server_is_reached_over_both_http_transports() {
    let fixture = Fixture::with_http_server();
    rehearse!(fixture, "rehearse call echo message=hello --url http://$ADDRESS/mcp", @r"
exit: 0
----- stdout -----
hello
");
    rehearse!(fixture, "rehearse list --prompts --protocol 2025-06-18 --url http://$ADDRESS/mcp", @r"
exit: 0
----- stdout -----
PROMPT  ARGUMENTS  DESCRIPTION
greet   who        Says hello
----- stderr -----
tiny-mock 1.0, protocol 2025-06-18
");
    rehearse!(fixture, "rehearse list --prompts --protocol legacy --transport sse --url http://$ADDRESS/sse", @r"
exit: 0
----- stdout -----
PROMPT  ARGUMENTS  DESCRIPTION
greet   who        Says hello
----- stderr -----
tiny-mock 1.0, protocol 2025-11-25
");
}

#[test]
fn a_closed_port_and_a_refusing_server_have_different_errors() {
    let fixture = Fixture::with_http_server();
    rehearse!(fixture, "rehearse list --url http://$ADDRESS/elsewhere", @r#"
    exit: 3
    ----- stderr -----
    error: the server supports neither Streamable HTTP nor HTTP+SSE
      Streamable HTTP: initialize was refused with HTTP status 404: -32000: Not Found: /elsewhere
      HTTP+SSE: the server answered 404 Not Found: {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Not Found: /elsewhere"}}
    hint: check the path of the URL: many servers are at /mcp, older ones at /sse
    "#);
    rehearse!(fixture, "rehearse list --url http://127.0.0.1:1/mcp", @r"
    exit: 3
    ----- stderr -----
    error: no answer to server/discover: cannot connect to 127.0.0.1:1: tcp connect error: Connection refused (os error 111)
    hint: check that the server is running, and its URL
    ");
}

#[test]
fn a_client_config_may_name_a_url() {
    let config = r#"{"mcpServers": {"remote": {"url": "http://${ADDRESS}/mcp"}}}"#;
    let fixture = Fixture::with_http_server().file(".mcp.json", config);
    rehearse!(fixture, "rehearse call add a=1 b=2 --config .mcp.json --server remote", @r"
exit: 0
----- stdout -----
3
");
    rehearse!(fixture, "rehearse list --env KEY=1 --config .mcp.json --server remote", @r"
    exit: 2
    ----- stderr -----
    error: --env has no effect: it is for servers that are started by a command
    ");
}

#[test]
fn a_server_with_authorization_gets_the_header_of_the_caller() {
    let fixture = Fixture::with_http_answer("401 Unauthorized", "text/plain", "who are you?");
    rehearse!(fixture, "rehearse list --url http://$ADDRESS/mcp", @r"
    exit: 3
    ----- stderr -----
    error: server/discover was refused: the server answered 401 Unauthorized: who are you?
    hint: log in with --login, or send a token with --header 'Authorization: Bearer TOKEN'
    ");
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no token"}}"#;
    let fixture = Fixture::with_http_answer("401 Unauthorized", "application/json", body);
    rehearse!(fixture, "rehearse list --url http://$ADDRESS/mcp", @r"
    exit: 3
    ----- stderr -----
    error: server/discover was refused with HTTP status 401: -32001: no token
    hint: log in with --login, or send a token with --header 'Authorization: Bearer TOKEN'
    ");
}

#[test]
fn an_http_server_without_mcp_is_detected() {
    let fixture = Fixture::with_http_answer("200 OK", "text/html", "<html>Welcome</html>");
    rehearse!(fixture, "rehearse list --url http://$ADDRESS/", @r"
    exit: 3
    ----- stderr -----
    error: server/discover was refused: the server answered 200 OK with text/html, which is no message: <html>Welcome</html>
    hint: check the path of the URL: many servers are at /mcp, older ones at /sse
    ");
    let fixture = Fixture::with_http_answer("503 Service Unavailable", "text/plain", "come back later");
    rehearse!(fixture, "rehearse list --url http://$ADDRESS/mcp", @r"
exit: 3
----- stderr -----
error: server/discover was refused: the server answered 503 Service Unavailable: come back later
");
}

#[test]
fn a_garbled_message_is_reported_with_its_location() {
    let fixture = Fixture::with_http_answer("200 OK", "text/event-stream", "data: Listening on 80\n\n");
    rehearse!(fixture, "rehearse list --protocol legacy --timeout 5 --url http://$ADDRESS/mcp", @r"
    exit: 3
    ----- stderr -----
    error: no answer to initialize: the stream ended before the answer to 1
      in an answer body or an event stream, but not a message:
        Listening on 80
    hint: check that the server is running, and its URL
    hint: a response body, and each event of a stream, must be a message
    ");
}
