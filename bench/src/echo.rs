//! A server that does as little as a server can: no JSON, no runtime, one read and one write for whatever has arrived.

use std::io::{self, Read, Write};

/// What makes this program the server instead of the benchmark.
pub(crate) const ARGUMENT: &str = "echo";

/// What stands before the id; ours, rmcp's and the bare loop's requests all have it like this.
const ID: &[u8] = b"\"id\":";

/// The handshakes of both eras: the method, and what it is answered with.
const HANDSHAKES: [(&[u8], &[u8]); 2] = [
    (
        b"initialize\"",
        br#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}"#,
    ),
    (
        b"server/discover\"",
        br#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#,
    ),
];

/// What every call is answered with.
const ANSWER: &[u8] = br#"{"content":[{"type":"text","text":"hello"}],"resultType":"complete"}"#;

/// Answers every line that has an id until stdin ends; the first is taken for the handshake.
pub(crate) fn echo() -> io::Result<()> {
    let (mut stdin, mut stdout) = (io::stdin().lock(), io::stdout().lock());
    let mut input = vec![0; 256 * 1024];
    let (mut filled, mut output, mut greeted) = (0, Vec::new(), false);
    loop {
        let read = stdin.read(&mut input[filled..])?;
        if read == 0 {
            return Ok(());
        }
        filled += read;
        let mut rest = &input[..filled];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let result = if greeted { ANSWER } else { result(&rest[..end]) };
            if answer(&rest[..end], result, &mut output) {
                output.push(b'\n');
                greeted = true;
            }
            rest = &rest[end + 1..];
        }
        let left = rest.len();
        input.copy_within(filled - left..filled, 0);
        filled = left;
        stdout.write_all(&output)?;
        stdout.flush()?;
        output.clear();
    }
}

/// What a request is answered with.
pub(crate) fn result(request: &[u8]) -> &'static [u8] {
    // The method is at the start; the arguments of a call may contain any text.
    let head = &request[..request.len().min(64)];
    let is = |method: &[u8]| head.windows(method.len()).any(|window| window == method);
    HANDSHAKES.iter().find(|(method, _)| is(method)).map_or(ANSWER, |(_, result)| result)
}

/// Writes the answer to a request; `false` for what has no id.
pub(crate) fn answer(request: &[u8], result: &[u8], output: &mut Vec<u8>) -> bool {
    let Some(id) = id(request) else { return false };
    for piece in [br#"{"jsonrpc":"2.0","id":"#, id, br#","result":"#, result, b"}"] {
        output.extend_from_slice(piece);
    }
    true
}

/// The digits of the id, which stand within the first few bytes.
fn id(line: &[u8]) -> Option<&[u8]> {
    let start = line.windows(ID.len()).take(32).position(|window| window == ID)? + ID.len();
    let length = line[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    Some(&line[start..start + length])
}
