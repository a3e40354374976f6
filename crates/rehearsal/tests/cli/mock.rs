//! `rehearse mock`

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Child;

use crate::fixture::{Fixture, rehearse};

const WEATHER: &str = r#"
server: { name: weather, version: "1.0" }
tools:
  - name: get_forecast
    description: Forecast for a city
    input_schema: { type: object, properties: { city: { type: string } }, required: [city] }
    answers:
      - when: { city: Oslo }
        text: Rain in Oslo
      - when: { city: { matches: "^B" } }
        text: "Sun in {{ arguments.city }}"
"#;
const NOTES: &str = "server: { name: notes }\nresources: [{ uri: 'notes://a', name: a, text: Hello }]\n";

fn fixture() -> Fixture {
    Fixture::new().file("weather.mock.yaml", WEATHER).file("notes.mock.yaml", NOTES)
}

#[test]
fn several_files_are_one_server() {
    rehearse!(fixture(), "rehearse list -- rehearse mock weather.mock.yaml notes.mock.yaml", @r"
    exit: 0
    ----- stdout -----
    TOOL          ARGUMENTS    DESCRIPTION
    get_forecast  city=string  Forecast for a city

    RESOURCE   NAME
    notes://a  a
    ----- stderr -----
    weather 1.0, protocol 2026-07-28
    ");
}

#[test]
fn an_unanswered_request_is_reported_to_the_client_and_on_stderr() {
    rehearse!(fixture(), "rehearse call get_forecast city=Rome -- rehearse mock weather.mock.yaml 2>&1", @r#"
    exit: 1
    ----- stdout -----
    error: -32603: no answer for tool get_forecast; closest was `an object with {city: "Oslo"}`: $.city: expected "Oslo", got "Rome"
      data: {"closest":{"rule":"an object with {city: \"Oslo\"}","mismatches":["$.city: expected \"Oslo\", got \"Rome\""]}}
    "#);
}

#[test]
fn a_broken_file_is_not_served() {
    let fixture = fixture().file("broken.mock.yaml", "tools:\n  - nme: x\n");
    rehearse!(fixture, "rehearse mock broken.mock.yaml < /dev/null", @r"
    exit: 2
    ----- stderr -----
    error: unknown key `nme`
     --> broken.mock.yaml:2:5
      |
    2 |   - nme: x
      |     ^^^
      |
      = help: did you mean `name`?
    ");
    rehearse!(fixture, "rehearse mock weather.mock.yaml weather.mock.yaml < /dev/null", @r"
    exit: 2
    ----- stderr -----
    error: duplicate tool `get_forecast`
     --> weather.mock.yaml:4:11
      |
    4 |   - name: get_forecast
      |           ^^^^^^^^^^^^
    ");
}

#[test]
fn an_address_and_stdio_contradict_each_other() {
    rehearse!(fixture(), "rehearse mock weather.mock.yaml --listen 0 --transport stdio", @r"
    exit: 2
    ----- stderr -----
    error: --listen is for HTTP, but --transport is stdio
    ");
}

#[test]
fn with_schema_fill_nothing_needs_an_answer_of_its_own() {
    let fixture = Fixture::new().file(
        "m.yaml",
        "tools: [{ name: add, output_schema: { type: object, properties: { sum: { type: integer, minimum: 7 } } } }]\n\
         resources: [{ uri: \"notes://today\", mime_type: text/markdown }]\n\
         resource_templates: [{ uri_template: \"notes://{day}\" }]\nprompts: [{ name: greet }]\n",
    );
    rehearse!(fixture, "rehearse call add -- rehearse mock m.yaml --schema-fill", @r#"
    exit: 0
    ----- stdout -----
    {"sum":7}
    "#);
    rehearse!(fixture, "rehearse read notes://today -- rehearse mock m.yaml --schema-fill", @"
    exit: 0
    ----- stdout -----
    placeholder: no answer is known for resource notes://today
    ");
    rehearse!(fixture, "rehearse check m.yaml --schema-fill", @r"
    exit: 0
    ----- stderr -----
    1 file checked, no problems
    ");
}

/// A mock that listens, and its stderr.
struct Listening {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStderr>>,
    url: String,
}

impl Listening {
    fn start(fixture: &Fixture, arguments: &str) -> Listening {
        let mut child = fixture.shell(&format!("exec rehearse mock {arguments}")).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let url = first.strip_prefix("listening on ").unwrap().to_owned();
        Listening { child, lines, url }
    }

    fn expect_line(&mut self, expected: &str) {
        let line = self.lines.by_ref().map(Result::unwrap).find(|line| line.contains(expected));
        assert!(line.is_some(), "{expected:?} was never printed");
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn over_http_both_eras_and_the_older_transport_are_at_one_address() {
    let fixture = fixture();
    let mock = Listening::start(&fixture, "weather.mock.yaml --listen 0");
    for line in [
        format!("rehearse call get_forecast city=Oslo --url {}", mock.url),
        format!("rehearse call get_forecast city=Oslo --protocol 2025-03-26 --url {}", mock.url),
        format!("rehearse call get_forecast city=Oslo --url {}", mock.url.replace("/mcp", "/sse")),
    ] {
        assert_eq!(fixture.run(&line), "exit: 0\n----- stdout -----\nRain in Oslo\n", "{line}");
    }
}

/// The status of a POST with these headers, and the body that explains it.
fn post(url: &str, headers: &str) -> String {
    let address = url.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let head = "content-type: application/json\r\nconnection: close\r\n";
    let length = body.len();
    write!(stream, "POST /mcp HTTP/1.1\r\n{headers}{head}content-length: {length}\r\n\r\n{body}").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn host_and_origin_are_checked_on_every_address() {
    let fixture = fixture();
    let foreign = "host: box.example:80\r\norigin: http://box.example\r\n";
    let mock = Listening::start(&fixture, "weather.mock.yaml --listen 0.0.0.0:0");
    let refused = post(&mock.url, foreign);
    assert!(refused.starts_with("HTTP/1.1 403 ") && refused.contains("--allow-host"), "{refused}");
    let by_address = post(&mock.url, "host: 192.0.2.1:80\r\n");
    assert!(by_address.contains("Mcp-Session-Id header is required"), "{by_address}");
    let mock = Listening::start(&fixture, "weather.mock.yaml --listen 0.0.0.0:0 --allow-host box.example");
    let allowed = post(&mock.url, foreign);
    assert!(allowed.contains("Mcp-Session-Id header is required"), "{allowed}");
}

#[test]
fn a_changed_file_is_reloaded_and_a_broken_one_is_ignored() {
    let fixture = fixture();
    let mut mock = Listening::start(&fixture, "weather.mock.yaml --listen 0 --watch");
    let call = format!("rehearse call get_forecast city=Oslo --url {}", mock.url);
    let write = |text: &str| std::fs::write(fixture.path().join("weather.mock.yaml"), text).unwrap();
    write("tools:\n  - nme: broken\n");
    mock.expect_line("still serving the previous files");
    assert!(fixture.run(&call).contains("Rain in Oslo"));
    write(&WEATHER.replace("Rain in Oslo", "Snow in Oslo"));
    mock.expect_line("files reloaded");
    assert!(fixture.run(&call).contains("Snow in Oslo"));
}

#[test]
fn a_referenced_file_is_watched_too() {
    let files = "resources: [{ uri: 'a://b', file: b.txt }]\n";
    let fixture = Fixture::new().file("files.mock.yaml", files).file("b.txt", "before");
    let mut mock = Listening::start(&fixture, "files.mock.yaml --listen 0 --watch");
    let read = format!("rehearse read a://b --url {}", mock.url);
    assert_eq!(fixture.run(&read), "exit: 0\n----- stdout -----\nbefore\n");
    std::fs::write(fixture.path().join("b.txt"), "after that").unwrap();
    mock.expect_line("files reloaded");
    assert_eq!(fixture.run(&read), "exit: 0\n----- stdout -----\nafter that\n");
    // A removed file is reported; when it exists again, it is served.
    std::fs::remove_file(fixture.path().join("b.txt")).unwrap();
    mock.expect_line("still serving the previous files");
    std::fs::write(fixture.path().join("b.txt"), "back").unwrap();
    mock.expect_line("files reloaded");
    assert_eq!(fixture.run(&read), "exit: 0\n----- stdout -----\nback\n");
}

#[test]
fn a_verbose_mock_prints_the_rule_that_answered() {
    let fixture = fixture();
    let mut mock = Listening::start(&fixture, "weather.mock.yaml --listen 0 --verbose");
    fixture.run(&format!("rehearse call get_forecast city=Oslo --url {}", mock.url));
    mock.expect_line(r#"tools/call get_forecast: script: tool get_forecast, an object with {city: "Oslo"}"#);
}

#[test]
fn a_mock_ends_on_sigterm() {
    let fixture = fixture();
    let mut mock = Listening::start(&fixture, "weather.mock.yaml --listen 0");
    let pid = nix::unistd::Pid::from_raw(i32::try_from(mock.child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(mock.child.wait().unwrap().code(), Some(143));
    let mut rest = String::new();
    mock.child.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

#[test]
fn a_port_in_use_is_reported_with_a_hint() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let fixture = Fixture::new().file("a.mock.yaml", "tools: [{ name: a, answers: [{ text: a }] }]\n");
    let played = fixture.run(&format!("rehearse mock a.mock.yaml --listen {port}"));
    assert!(played.contains(&format!("cannot listen on 127.0.0.1:{port}: Address already in use")), "{played}");
    assert!(played.contains("use port 0 for any free port"), "{played}");
}

/// Over stdio, notifications are sent in the order of the steps.
#[test]
fn a_change_notice_is_sent_before_the_next_step() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let folder = tempfile::tempdir().unwrap();
    let steps =
        "[{ changed: tools }, { progress: { progress: 1 } }, { changed: tools }, { progress: { progress: 2 } }]";
    let mock = format!("tools: [{{ name: a, answers: [{{ steps: {steps}, text: ok }}] }}]\n");
    std::fs::write(folder.path().join("a.mock.yaml"), mock).unwrap();
    let mut server = std::process::Command::new(env!("CARGO_BIN_EXE_rehearse"))
        .args(["mock", "a.mock.yaml"])
        .current_dir(folder.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = server.stdin.take().unwrap();
    let params = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
    writeln!(stdin, r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#).unwrap();
    writeln!(stdin, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
    let call = r#"{"name":"a","arguments":{},"_meta":{"progressToken":7}}"#;
    writeln!(stdin, r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{call}}}"#).unwrap();
    let mut order = Vec::new();
    for line in BufReader::new(server.stdout.take().unwrap()).lines() {
        let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        if line["id"] == 2 {
            break;
        }
        order.extend(line["method"].as_str().map(|method| method.trim_start_matches("notifications/").to_owned()));
    }
    drop(stdin);
    server.wait().unwrap();
    assert_eq!(order, ["tools/list_changed", "progress", "tools/list_changed", "progress"]);
}
