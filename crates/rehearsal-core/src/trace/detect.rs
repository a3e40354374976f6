//! Detects the format of a recording by its first bytes.

use std::collections::BTreeSet;
use std::io::Cursor;

use super::json_line_reader::JsonLineReader;

/// The format of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our trace: one session per line.
    Trace,
    /// Our journal: one message per line, as it happened.
    Journal,
    /// The Python interceptor's sessions, one per line: `args`, `kwargs`, `_type`.
    PythonTrace,
    /// The Python interceptor's log: one request or response per line.
    PythonLog,
    /// A cassette of `mcp-recorder` 0.5: one JSON document with `interactions`.
    McpRecorder,
    /// A cassette of `mcp-cassette` 0.4: one JSON document with `messages`.
    McpCassette,
    /// A recording of `mcporter` 0.12: one message a line, with `_meta.dir`.
    Mcporter,
    /// A cassette of `mcptest` 1.3: one JSON document with `exchanges`.
    Mcptest,
    /// An HTTP archive; it can only be written.
    Har,
}

impl Format {
    /// The formats that can be read.
    pub const READ: [Format; 8] = [
        Format::Trace,
        Format::Journal,
        Format::PythonTrace,
        Format::PythonLog,
        Format::McpRecorder,
        Format::McpCassette,
        Format::Mcporter,
        Format::Mcptest,
    ];

    /// The formats that can be written.
    pub const WRITTEN: [Format; 5] =
        [Format::Trace, Format::Journal, Format::PythonTrace, Format::PythonLog, Format::Har];

    /// The name of the format on the command line: `python-log`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Trace => "trace",
            Format::Journal => "journal",
            Format::PythonTrace => "python",
            Format::PythonLog => "python-log",
            Format::McpRecorder => "mcp-recorder",
            Format::McpCassette => "mcp-cassette",
            Format::Mcporter => "mcporter",
            Format::Mcptest => "mcptest",
            Format::Har => "har",
        }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Number of bytes that suffice to detect the format.
pub const DETECT_BYTES: usize = 64 << 10;

/// The format of a file that begins with these bytes; `None` if it is unknown.
pub fn detect(first: &[u8]) -> Option<Format> {
    // An indented file has line breaks anywhere but in strings; several sessions may be in an array.
    let mut first: Vec<u8> =
        first.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    if first.trim_ascii_start().starts_with(b"[") {
        let open = first.len() - first.trim_ascii_start().len();
        first[open] = b' ';
    }
    let seen = FirstKeys::read(&first);
    let has = |key: &str| seen.keys.contains(key);
    if has("interactions") {
        return Some(Format::McpRecorder);
    }
    if has("exchanges") {
        return Some(Format::Mcptest);
    }
    if has("format_version") || (has("recorded_at") && has("messages")) {
        return Some(Format::McpCassette);
    }
    if has("_meta") && (has("jsonrpc") || has("method")) {
        return Some(Format::Mcporter);
    }
    if has("type") {
        return Some(if has("seq") || has("format") { Format::Journal } else { Format::PythonLog });
    }
    if has("format") || seen.request.contains("seq") {
        return Some(Format::Trace);
    }
    (has("calls") || has("session_id")).then_some(Format::PythonTrace)
}

/// The keys found in the first line.
#[derive(Debug, Default)]
struct FirstKeys {
    keys: BTreeSet<String>,
    /// The keys of the first request in `calls`.
    request: BTreeSet<String>,
}

impl FirstKeys {
    fn read(first: &[u8]) -> FirstKeys {
        let mut seen = FirstKeys::default();
        let mut pull = JsonLineReader::new(Cursor::new(first), first.len());
        // The bytes may end in the middle of a value; the keys found until then suffice.
        let _ = pull.next_line();
        let _: Option<()> = each_key(&mut pull, &mut |pull, key| {
            let is_calls = key == "calls";
            seen.keys.insert(key);
            if !is_calls {
                return pull.value(None).ok();
            }
            pull.take(b"[", "").ok()?;
            each_key(pull, &mut |pull, key| {
                if key != "request" {
                    return pull.value(None).ok();
                }
                each_key(pull, &mut |pull, key| {
                    seen.request.insert(key);
                    pull.value(None).ok()
                })
            })?;
            // One call is enough; the end of the list is not needed.
            while pull.take(b",", "").is_ok() {
                pull.value(None).ok()?;
            }
            pull.take(b"]", "").ok().map(drop)
        });
        seen
    }
}

type Bytes<'a> = JsonLineReader<Cursor<&'a [u8]>>;

/// Visits each key of the object that begins here; `None` if the text ends or is no JSON.
fn each_key<'a>(pull: &mut Bytes<'a>, visit: &mut dyn FnMut(&mut Bytes<'a>, String) -> Option<()>) -> Option<()> {
    let mut buffer = Vec::new();
    pull.take(b"{", "").ok()?;
    loop {
        let key = pull.key(&mut buffer).ok()?;
        visit(pull, key)?;
        if pull.take(b",}", "").ok()? == b'}' {
            return Some(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_detected_by_its_first_line() {
        let table = [
            (r#"{"format":1,"session_id":"a","server_info":{"#, Some(Format::Trace)),
            (r#"{"calls":[{"duration_ms":1,"request":{"at_ms":1,"seq":0,"#, Some(Format::Trace)),
            ("\n\u{feff}", None),
            ("\u{feff}{\"format\":1}", Some(Format::Trace)),
            (r#"{"type":"start","format":1,"session_id":"#, Some(Format::Journal)),
            (r#"{"type":"request","timestamp":"x","session_id":"a","seq":0}"#, Some(Format::Journal)),
            (
                r#"{"session_id": "a", "server_info": {}, "calls": [{"request": {"method": "call_tool", "args": []"#,
                Some(Format::PythonTrace),
            ),
            (r#"{"session_id": "a", "calls": [], "started_at": "2025-10-30T10:30:45"}"#, Some(Format::PythonTrace)),
            (r#"{"type": "request", "timestamp": "x", "method": "call_tool", "args": []}"#, Some(Format::PythonLog)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, None),
            (r#"{"jsonrpc":"2.0","method":"$transport/start","_meta":{"dir":"lifecycle""#, Some(Format::Mcporter)),
            ("{\n  \"version\": \"1.0\",\n  \"metadata\": {},\n  \"interactions\": [", Some(Format::McpRecorder)),
            ("{\r\n  \"version\": \"1\",\n  \"meta\": {},\n  \"exchanges\": [", Some(Format::Mcptest)),
            ("{\n  \"format_version\": 3,\n  \"recorded_at\": \"2026", Some(Format::McpCassette)),
            ("[\n {\n  \"session_id\": \"a\",\n \"calls\": [", Some(Format::PythonTrace)),
            ("", None),
            ("hello", None),
            ("[1,2]", None),
        ];
        for (text, format) in table {
            assert_eq!(detect(text.as_bytes()), format, "{text}");
        }
    }
}
