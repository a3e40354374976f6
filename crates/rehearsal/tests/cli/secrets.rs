//! Secrets at every place of a session: no file and no output of a verb contains one of them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use nix::sys::signal::Signal;

use crate::fixture::Fixture;
use crate::record_http::Recorder;

/// A secret that is found only by its key or its location, with the name of its location in it.
fn secret(place: &str) -> String {
    format!("q7Zr{place}X2kV9mTd4w")
}

/// The output of every verb for the trace of a fixture, and the text of all files after that.
fn everything(fixture: &Fixture, formats: &[&str]) -> String {
    let mut text = String::new();
    for verb in ["show", "show --json", "stats", "grep .", "check --notes", "split -d parts"] {
        text.push_str(&fixture.run(&format!("rehearse trace {verb} trace.jsonl")));
    }
    for format in formats {
        let converted = fixture.run(&format!("rehearse trace convert trace.jsonl --to {format}"));
        assert!(converted.starts_with("exit: 0"), "{converted}");
        text.push_str(&converted);
    }
    let parts = std::fs::read_dir(fixture.path().join("parts")).unwrap().count();
    assert!(parts > 0, "{text}");
    read_all(fixture.path(), &mut text);
    text
}

/// Reads all files of a folder and its subfolders.
fn read_all(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, text);
        } else {
            text.push_str(&String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
        }
    }
}

#[track_caller]
fn without_secrets(text: &str, places: &[&str]) {
    for place in places {
        let at = text.find(&secret(place));
        let around =
            at.map(|at| text[..at].chars().rev().take(200).collect::<Vec<_>>().iter().rev().collect::<String>());
        assert_eq!(around, None, "the secret in {place}");
    }
}

/// Values that look like secrets, and are kept because the protocol needs them.
const KEPT: [&str; 4] = [
    "sk-progress0123456789abcdefghijklmnop",
    "sk-cursor0123456789abcdefghijklmnop",
    "\"maxTokens\":4711",
    "sk-id0123456789abcdefghijklmnop",
];

#[test]
fn secrets_over_a_pipe_are_nowhere() {
    let messages = [
        format!(
            r#"{{"jsonrpc":"2.0","id":"{}","method":"tools/call","params":{{"name":"t","arguments":{{"password":"{}","text":"{{\"api_key\":\"{}\",\"more\":\"{{\\\"token\\\":\\\"{}\\\"}}\"}}","url":"postgres://me:{}@db/x?sslmode=on","maxTokens":4711}},"_meta":{{"progressToken":"{}","apiKey":"{}"}}}}}}"#,
            KEPT[3],
            secret("argument"),
            secret("json"),
            secret("deeper"),
            secret("url"),
            KEPT[0],
            secret("meta")
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":"{}","result":{{"content":[{{"type":"text","text":"Authorization: Bearer {}"}}],"structuredContent":{{"client_secret":"{}"}},"nextCursor":"{}"}}}}"#,
            KEPT[3],
            secret("text"),
            secret("structured"),
            KEPT[1]
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":2,"error":{{"code":-1,"message":"no entry with token {}","data":{{"cookie":"sid={}"}}}}}}"#,
            secret("message"),
            secret("data")
        ),
        format!(
            r#"[{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":{{"passwd":"{}"}}}}}}]"#,
            secret("batch")
        ),
        format!("no message: api_key={}", secret("garbled")),
    ];
    let fixture = Fixture::new().file("messages.txt", &(messages.join("\n") + "\n"));
    let recorded = fixture.run(&format!(
        "rehearse record -o trace.jsonl --log log.jsonl --metadata password={} --metadata note='Bearer {}' -- sh -c 'cat >&2 messages.txt; cat' sh --api-key {} --token={} API_TOKEN={} < messages.txt",
        secret("metadata"), secret("note"), secret("flag"), secret("option"), secret("variable"),
    ));
    assert!(recorded.starts_with("exit: 0"), "{recorded}");
    std::fs::remove_file(fixture.path().join("messages.txt")).unwrap();
    let formats = ["trace", "journal", "python", "python-log"];
    let text = everything(&fixture, &formats);
    let places = [
        "argument",
        "json",
        "deeper",
        "url",
        "meta",
        "text",
        "structured",
        "message",
        "data",
        "batch",
        "garbled",
        "metadata",
        "note",
        "flag",
        "option",
        "variable",
    ];
    without_secrets(&text, &places);
    for kept in KEPT {
        assert!(text.contains(kept), "{kept}");
    }
}

#[test]
fn a_secret_over_several_lines_is_nowhere() {
    for log in ["", "--log log.jsonl"] {
        let key = format!("{}\n{}\n", secret("first"), secret("second"));
        let text = format!(
            "before\n-----BEGIN RSA PRIVATE KEY-----\n{key}-----END RSA PRIVATE KEY-----\nafter it\npassword:\n{}\n",
            secret("below")
        );
        let fixture = Fixture::new().file("messages.txt", &text);
        let slowly = "while read -r line; do echo \"$line\"; echo \"$line\" >&2; done";
        let recorded = fixture.run(&format!("rehearse record -o trace.jsonl {log} -- sh -c '{slowly}' < messages.txt"));
        assert!(recorded.starts_with("exit: 0"), "{recorded}");
        assert!(recorded.contains(&secret("first")), "forwarded bytes are unchanged: {recorded}");
        std::fs::remove_file(fixture.path().join("messages.txt")).unwrap();
        let text = everything(&fixture, &["trace", "journal"]);
        without_secrets(&text, &["first", "second", "below"]);
        assert!(text.contains("before") && text.contains("after it"), "{text}");
    }
}

#[test]
fn secrets_over_http_are_nowhere() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let events = format!(
        "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"data\":{{\"password\":\"{}\"}}}}}}\n\nevent: odd\ndata: {{\"api_key\":\"{}\"}}\n\ndata: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"secret\":\"{}\"}}}}\n\n",
        secret("notification"),
        secret("event"),
        secret("result"),
    );
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nSet-Cookie: sid={}; HttpOnly\r\nX-Auth-Token: {}\r\nLocation: https://h.example/cb?code={}\r\nContent-Length: {}\r\n\r\n{events}",
        secret("setcookie"),
        secret("answered"),
        secret("location"),
        events.len(),
    );
    let answered = answer.clone();
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        while !received.ends_with(b"}}}") {
            let mut buffer = [0; 4096];
            let count = socket.read(&mut buffer).unwrap();
            received.extend_from_slice(&buffer[..count]);
        }
        socket.write_all(answered.as_bytes()).unwrap();
    });
    let fixture = Fixture::new();
    let recorder = Recorder::before(&fixture, &url, "-o trace.jsonl --log log.jsonl");
    let host = recorder.origin.strip_prefix("http://").unwrap();
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{"password":"{}"}}}}}}"#,
        secret("body")
    );
    let head = format!(
        "POST /mcp?access_token={}&page=2 HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nX-Api-Key: {}\r\nCookie: a={}; b=c\r\nProxy-Authorization: Basic {}\r\nReferer: http://h.example/?token={}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        secret("query"),
        secret("bearer"),
        secret("header"),
        secret("cookie"),
        secret("basic"),
        secret("referer"),
        body.len(),
    );
    let mut socket = TcpStream::connect(host).unwrap();
    socket.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut received = vec![0; answer.len()];
    socket.read_exact(&mut received).unwrap();
    assert_eq!(String::from_utf8(received).unwrap(), answer, "forwarded bytes are unchanged");
    server.join().unwrap();
    drop(socket);
    recorder.signal(Signal::SIGINT);
    assert_eq!(recorder.ended().0, Some(130));
    let formats = ["trace", "journal", "python", "python-log", "har"];
    let text = everything(&fixture, &formats);
    let places = [
        "notification",
        "event",
        "result",
        "setcookie",
        "answered",
        "location",
        "body",
        "query",
        "bearer",
        "header",
        "cookie",
        "basic",
        "referer",
    ];
    without_secrets(&text, &places);
    assert!(text.contains("page=2"), "{text}");
}

#[test]
fn a_password_in_a_url_is_in_no_error_of_any_verb() {
    let config = r#"{"mcpServers":{"a":{"url":"http://joe:hunter2@h/mcp?key=hunter2"},"b":{"command":"x"}}}"#;
    let fixture = Fixture::new().file("m.json", config);
    let urls = [
        "http://joe:hunter2@127.0.0.1:9/mcp?key=hunter2",
        "joe:hunter2@127.0.0.1:9/mcp",
        "ftp://joe:hunter2@h/",
        "http://joe:hunter2@ho st/",
        "http://joe:hunter2@/mcp",
    ];
    for url in urls {
        for verb in [
            "list",
            "call x",
            "read x",
            "prompt x",
            "request ping",
            "init -o -",
            "logout",
            "record --listen 127.0.0.1:0",
        ] {
            let option = if verb == "logout" { "" } else { "--url" };
            let output = fixture.run(&format!("HOME=$PWD rehearse {verb} {option} '{url}'"));
            assert!(!output.contains("hunter2") && output.contains("***"), "{verb} {url}: {output}");
        }
    }
    let output = fixture.run("rehearse list --config m.json --server a; rehearse wrap m.json");
    assert!(!output.contains("hunter2") && output.contains("b: wrapped"), "{output}");
}
