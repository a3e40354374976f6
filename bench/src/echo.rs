//! A server that does as little as a server can: no JSON, no runtime, one read and one write for whatever has arrived.

use std::io::{self, Read, Write};

/// What makes this program the server instead of the benchmark.
pub(crate) const ARGUMENT: &str = "echo";

/// What stands before the id; ours, rmcp's and the bare loop's requests all have it like this.
const ID: &[u8] = b"\"id\":";

/// Satisfies `initialize` and `server/discover` alike.
pub(crate) const WELCOME: &[u8] = br#"{"protocolVersion":"2025-11-25","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"},"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#;

/// What every call is answered with.
pub(crate) const ANSWER: &[u8] = br#"{"content":[{"type":"text","text":"hello"}],"resultType":"complete"}"#;

/// Answers every line that has an id until stdin ends; the first is taken for the handshake.
pub(crate) fn echo() -> io::Result<()> {
    let (mut stdin, mut stdout) = (io::stdin().lock(), io::stdout().lock());
    let mut input = vec![0; 256 * 1024];
    let (mut filled, mut output, mut result) = (0, Vec::new(), WELCOME);
    loop {
        let read = stdin.read(&mut input[filled..])?;
        if read == 0 {
            return Ok(());
        }
        filled += read;
        let mut rest = &input[..filled];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            if answer(&rest[..end], result, &mut output) {
                output.push(b'\n');
                result = ANSWER;
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
