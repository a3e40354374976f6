//! A server that stays when its client has left: it ignores the end of its stdin, and so does the child that it starts.
//!
//! Only the standard library, so that `rustc` alone makes of it a static program for an image on nothing at all.

use std::io::BufRead;
use std::process::{Command, Stdio};

fn main() {
    if std::env::args().nth(1).as_deref() == Some("child") {
        loop {
            std::thread::park();
        }
    }
    let program = std::env::current_exe().expect("a program knows where it is");
    let child = Command::new(program).arg("child").stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    child.expect("a program can start itself");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        answer(&line);
    }
    loop {
        std::thread::park();
    }
}

/// Crude, but our client writes its ids as numbers.
fn answer(line: &str) {
    let Some((_, rest)) = line.split_once("\"id\":") else { return };
    let id: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let rest = if line.contains("\"method\":\"initialize\"") {
        r#""result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"ignores-shutdown"}}"#
    } else if line.contains("\"method\":\"tools/call\"") {
        r#""result":{"content":[{"type":"text","text":"here"}]}"#
    } else {
        r#""error":{"code":-32601,"message":"no such method"}"#
    };
    println!(r#"{{"jsonrpc":"2.0","id":{id},{rest}}}"#);
}
