//! Writes parts as a file of any format that can be written.

use std::io::{self, Read, Seek, Write};

use super::super::{Entry, EntryBody, Format, Part, PlacedMessage, TraceWriter, write_entry, write_start};
use super::external_sort::{ExternalSorter, Sorted};
use super::har::HarArchive;
use super::python_log;
use super::python_trace::PythonWriter;
use super::session_info::{SessionInfo, messages, place};
use crate::exchange::Side;

/// Why a file could not be written.
#[derive(thiserror::Error)]
pub enum WriteError {
    /// A session without HTTP cannot be written to an HTTP archive.
    #[error("session {session_id} was not recorded over HTTP, so there is nothing to put into an HTTP archive")]
    NoHttp {
        /// The id of the session.
        session_id: String,
    },
    /// The file could not be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

debug_as_display!(WriteError);

/// Writes parts in any format that can be written, and keeps no session in memory.
///
/// Other formats than a trace have an order of their own, and some begin with values that are known only at the end. So
/// the pieces of each part are stored, and sorted when the session is over.
#[derive(Debug)]
pub struct RecordingWriter<W, S> {
    output: WriterTarget<W, S>,
}

#[derive(Debug)]
enum WriterTarget<W, S> {
    Trace(TraceWriter<W, S>),
    Other(Box<ForeignWriter<W, S>>),
}

#[derive(Debug)]
struct ForeignWriter<W, S> {
    out: W,
    form: Form,
    session: Option<SessionInfo>,
    pieces: ExternalSorter<S>,
}

/// The format that is written, with the state of the whole file.
#[derive(Debug)]
enum Form {
    Journal,
    PythonTrace(PythonWriter),
    PythonLog,
    Har(HarArchive),
}

impl<W: Write, S: Read + Write + Seek> RecordingWriter<W, S> {
    /// Writes to `out`. Pieces that have to wait are stored in `side`: a temporary file, or a `Cursor` if the sessions
    /// are small. `None` if the format can only be read.
    pub fn new(format: Format, out: W, side: S) -> Option<RecordingWriter<W, S>> {
        let form = match format {
            Format::Trace => return Some(RecordingWriter { output: WriterTarget::Trace(TraceWriter::new(out, side)) }),
            Format::Journal => Form::Journal,
            Format::PythonTrace => Form::PythonTrace(PythonWriter::default()),
            Format::PythonLog => Form::PythonLog,
            Format::Har => Form::Har(HarArchive::default()),
            Format::McpRecorder | Format::McpCassette | Format::Mcporter | Format::Mcptest => return None,
        };
        let other = ForeignWriter { out, form, session: None, pieces: ExternalSorter::new(side) };
        Some(RecordingWriter { output: WriterTarget::Other(Box::new(other)) })
    }

    /// Takes the next part.
    pub fn part(&mut self, part: &Part) -> Result<(), WriteError> {
        match &mut self.output {
            WriterTarget::Trace(writer) => Ok(writer.part(part)?),
            WriterTarget::Other(other) => other.part(part),
        }
    }

    /// Ends the open session, and returns `W`, flushed.
    pub fn finish(self) -> Result<W, WriteError> {
        match self.output {
            WriterTarget::Trace(writer) => Ok(writer.finish()?),
            WriterTarget::Other(mut other) => {
                other.end_session()?;
                if let Form::Har(archive) = &other.form {
                    archive.finish(&mut other.out)?;
                }
                other.out.flush()?;
                Ok(other.out)
            }
        }
    }
}

impl<W: Write, S: Read + Write + Seek> ForeignWriter<W, S> {
    fn part(&mut self, part: &Part) -> Result<(), WriteError> {
        if let Part::Start(start) = part {
            self.end_session()?;
            self.session = Some(SessionInfo::new(start.clone()));
            return Ok(());
        }
        let session = self.session.as_mut().ok_or_else(not_begun)?;
        session.learn(part);
        if let Part::Finish { .. } = part {
            return self.end_session();
        }
        Ok(queue_part(part, &mut self.form, session, &mut self.pieces)?)
    }

    /// Writes the stored pieces.
    fn end_session(&mut self) -> Result<(), WriteError> {
        let Some(session) = &self.session.take() else { return Ok(()) };
        let (out, pieces) = (&mut self.out, self.pieces.sorted()?);
        match &mut self.form {
            Form::PythonTrace(python) => python.write(session, pieces, out)?,
            Form::PythonLog => lines(pieces, out)?,
            Form::Har(archive) => {
                if !archive.write(session, pieces, out)? {
                    return Err(WriteError::NoHttp { session_id: session.start.session_id.clone() });
                }
            }
            Form::Journal => journal(session, pieces, out)?,
        }
        Ok(())
    }
}

fn not_begun() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "a call or an entry outside of a session")
}

/// Stores the pieces of a part.
fn queue_part<S: Read + Write + Seek>(
    part: &Part,
    form: &mut Form,
    session: &SessionInfo,
    pieces: &mut ExternalSorter<S>,
) -> io::Result<()> {
    match form {
        Form::PythonTrace(python) => python.part(part, session, pieces),
        Form::Har(archive) => archive.part(part, pieces),
        Form::PythonLog => messages(part).try_for_each(|message| {
            let line = python_log::line_of(&message, session.start.started_at);
            line.map_or(Ok(()), |line| pieces.push(message.key(), line.to_string()))
        }),
        Form::Journal => entries(part).try_for_each(|entry| {
            let mut text = Vec::new();
            write_entry(&mut text, &entry, None);
            text.pop();
            pieces.push(place(entry.seq, entry.item), text)
        }),
    }
}

/// Pieces, each on a line of its own.
fn lines<S: Read + Seek>(mut pieces: Sorted<'_, S>, out: &mut impl Write) -> io::Result<()> {
    while let Some(piece) = pieces.next()? {
        out.write_all(&piece.text)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// The entries of a part in a journal.
fn entries(part: &Part) -> impl Iterator<Item = Entry> {
    let message = |placed: &PlacedMessage, from: Side| {
        let (message, event_id) = (placed.message.clone(), placed.event_id.clone());
        let what = EntryBody::Message { from, channel: placed.channel, message, event_id };
        Entry { seq: placed.seq, item: placed.item, at: placed.at, what }
    };
    let (first, second) = match part {
        Part::Call(call) => {
            let answer = call.response.as_ref().map(|response| message(response, call.asker.other()));
            (Some(message(&call.request, call.asker)), answer)
        }
        Part::Entry(entry) => (Some(entry.clone()), None),
        Part::Start(_) | Part::Finish { .. } => (None, None),
    };
    first.into_iter().chain(second)
}

/// The lines of a journal, in order.
fn journal<S: Read + Seek>(session: &SessionInfo, mut pieces: Sorted<'_, S>, out: &mut impl Write) -> io::Result<()> {
    let mut text = Vec::new();
    write_start(&mut text, &session.start);
    out.write_all(&text)?;
    let mut next = 0;
    while let Some(piece) = pieces.next()? {
        next = piece.key[0] + 1;
        out.write_all(&piece.text)?;
        out.write_all(b"\n")?;
    }
    if let Some(end) = &session.end {
        let ended = session.ended_at.zip(session.start.started_at);
        let at = ended.and_then(|(ended, started)| ended.duration_since(started).try_into().ok());
        text.clear();
        write_entry(&mut text, &Entry::new(next, at.unwrap_or(session.last), EntryBody::Ended(end.clone())), None);
        out.write_all(&text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::detect;
    use super::super::RecordingReader;
    use super::super::json_tree::JsonTree;
    use super::super::patch::difference;
    use super::*;
    use std::io::Cursor;

    fn read(format: Format, text: &[u8]) -> Vec<Part> {
        let parts: Result<Vec<Part>, _> = RecordingReader::new(format, Cursor::new(text)).unwrap().collect();
        let mut parts = parts.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(text)));
        // In a trace all calls come before all entries; other formats have them in recorded order.
        for session in parts.split_mut(|part| matches!(part, Part::Finish { .. })) {
            session.sort_by_key(|part| matches!(part, Part::Entry(_)));
        }
        parts
    }

    fn write(format: Format, parts: &[Part]) -> String {
        let mut writer = RecordingWriter::new(format, Vec::new(), Cursor::new(Vec::new())).unwrap();
        parts.iter().for_each(|part| writer.part(part).unwrap());
        String::from_utf8(writer.finish().unwrap()).unwrap()
    }

    /// Every JSON document of a text.
    fn documents(text: &str) -> Vec<JsonTree> {
        let text = text.trim_start_matches('\u{feff}');
        match JsonTree::parse(text) {
            Ok(JsonTree::List(documents)) => documents,
            Ok(document) => vec![document],
            Err(_) => {
                text.lines().filter(|line| !line.trim().is_empty()).map(|line| JsonTree::parse(line).unwrap()).collect()
            }
        }
    }

    /// Asserts that a file is unchanged after a conversion to a trace and back, and to a trace inside a file and back.
    #[track_caller]
    fn comes_back(format: Format, text: &str) -> Vec<Part> {
        assert_eq!(detect(text.as_bytes()), Some(format), "{text}");
        let parts = read(format, text.as_bytes());
        let ours = write(Format::Trace, &parts);
        let again = read(Format::Trace, ours.as_bytes());
        assert_eq!(again, parts, "{ours}");
        let (back, original) = (documents(&write(format, &again)), documents(text));
        assert_eq!(back.len(), original.len());
        for (back, original) in back.iter().zip(&original) {
            let patch = difference(back, original);
            assert!(patch.is_none(), "{back}\n{original}\n{}", patch.unwrap());
        }
        parts
    }

    const SEED: &str = r#"{"session_id": "550e8400-e29b-41d4-a716-446655440000", "server_info": {"url": "https://example.com/mcp", "name": "example-server"}, "calls": [{"request": {"method": "call_tool", "args": ["tool_name"], "kwargs": {"arguments": {"param": "value"}}, "timestamp": "2025-10-30T10:30:45.123456"}, "response": {"success": true, "result": {"_type": "CallToolResult", "content": [{"type": "text", "text": "result"}]}, "error": null, "timestamp": "2025-10-30T10:30:45.234567"}, "duration_ms": 111.234}], "started_at": "2025-10-30T10:30:45.000000", "ended_at": "2025-10-30T10:31:00.000000", "metadata": {}}"#;

    #[test]
    fn the_example_of_the_python_interceptor_is_a_tool_call() {
        let parts = comes_back(Format::PythonTrace, SEED);
        let [Part::Start(start), Part::Call(call), Part::Finish { ended_at, .. }] = &parts[..] else {
            panic!("{parts:?}")
        };
        assert_eq!(start.session_id, "550e8400-e29b-41d4-a716-446655440000");
        assert_eq!(start.started_at.unwrap().to_string(), "2025-10-30T10:30:45Z");
        assert_eq!(ended_at.unwrap().to_string(), "2025-10-30T10:31:00Z");
        let request = call.request.message.as_request().unwrap();
        assert_eq!(request.method, "tools/call");
        assert_eq!(request.params.as_ref().unwrap().as_str(), r#"{"name":"tool_name","arguments":{"param":"value"}}"#);
        assert_eq!(call.request.at.as_micros(), 123_456);
        let response = call.response.as_ref().unwrap();
        assert_eq!(
            response.message.text(),
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"result"}]}}"#
        );
    }

    /// The wire form of the only call of a session.
    fn wire(request: &str, response: &str) -> (String, String) {
        let text = format!(r#"{{"session_id":"s","calls":[{{"request":{request},"response":{response}}}]}}"#);
        let parts = comes_back(Format::PythonTrace, &text);
        let Part::Call(call) = &parts[1] else { panic!() };
        let request = call.request.message.as_request().unwrap();
        let params = request.params.as_ref().map_or(String::new(), |params| params.as_str().to_owned());
        let reply = call.response.as_ref().map_or(String::new(), |response| response.message.text().into_owned());
        (format!("{} {params}", request.method), reply.replacen(r#"{"jsonrpc":"2.0","id":1,"#, "", 1))
    }

    #[test]
    fn arguments_are_found_at_every_place_that_python_uses() {
        let expected = r#"tools/call {"name":"t","arguments":{"a":1}}"#;
        for request in [
            r#"{"method":"call_tool","args":["t"],"kwargs":{"arguments":{"a":1}}}"#,
            r#"{"method":"call_tool","args":["t",{"a":1}],"kwargs":{}}"#,
            r#"{"method":"call_tool","args":["t",{"a":1}]}"#,
            r#"{"method":"call_tool","args":[],"kwargs":{"name":"t","arguments":{"a":1}}}"#,
            r#"{"method":"call_tool","args":null,"kwargs":{"name":"t","arguments":{"a":1},"read_timeout_seconds":null}}"#,
            r#"{"method":"call_tool","kwargs":{"name":"t","arguments":{"a":1},"progress_callback":"<function f at 0x7f>"}}"#,
            r#"{"method":"call_tool","args":{"name":"t","arguments":{"a":1}},"kwargs":null}"#,
            r#"{"method":"call_tool","name":"t","arguments":{"a":1},"timestamp":null}"#,
            r#"{"method":"call_tool","params":{"name":"t","arguments":{"a":1}}}"#,
            r#"{"method":"tools/call","params":{"name":"t","arguments":{"a":1}},"id":7,"extra":[1.50]}"#,
            r#"{"method":"call_tool","args":["t"],"kwargs":{"arguments":{"a":1},"read_timeout_seconds":{"_type":"timedelta","seconds":5}}}"#,
        ] {
            assert_eq!(wire(request, "null").0, expected, "{request}");
        }
        for (request, expected) in [
            (r#"{"method":"list_tools","args":[],"kwargs":{}}"#, "tools/list "),
            (r#"{"method":"list_tools","args":["abc"]}"#, r#"tools/list {"cursor":"abc"}"#),
            (r#"{"method":"list_tools","kwargs":{"cursor":null}}"#, "tools/list "),
            (
                r#"{"method":"list_tools","kwargs":{"params":{"_type":"PaginatedRequestParams","cursor":"c","meta":null}}}"#,
                r#"tools/list {"cursor":"c"}"#,
            ),
            (r#"{"method":"initialize","args":[],"kwargs":{}}"#, "initialize {}"),
            (r#"{"method":"read_resource","args":["file:///a"]}"#, r#"resources/read {"uri":"file:///a"}"#),
            (
                r#"{"method":"read_resource","args":[{"_type":"AnyUrl","_url":"file:///a"}]}"#,
                r#"resources/read {"uri":"file:///a"}"#,
            ),
            (r#"{"method":"get_prompt","args":["p",{"x":"y"}]}"#, r#"prompts/get {"name":"p","arguments":{"x":"y"}}"#),
            (r#"{"method":"get_prompt","args":["p",null]}"#, r#"prompts/get {"name":"p"}"#),
            (
                r#"{"method":"complete","args":[{"type":"ref/prompt","name":"p"},{"name":"a","value":"b"}]}"#,
                r#"completion/complete {"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b"}}"#,
            ),
            (r#"{"method":"set_logging_level","args":["debug"]}"#, r#"logging/setLevel {"level":"debug"}"#),
            (r#"{"method":"send_ping","args":[],"kwargs":{}}"#, "ping "),
            (r#"{"method":"my_own","args":[1,2],"kwargs":{"k":null}}"#, r#"my_own {"args":[1,2],"k":null}"#),
            (
                r#"{"method":"call_tool","args":["t"],"kwargs":{"arguments":null,"meta":{"x":1}}}"#,
                r#"tools/call {"name":"t","_meta":{"x":1}}"#,
            ),
            (r#"{}"#, "unknown "),
            ("null", "unknown "),
        ] {
            assert_eq!(wire(request, "null").0, expected, "{request}");
        }
    }

    #[test]
    fn results_and_errors_may_look_as_python_makes_them() {
        let request = r#"{"method":"call_tool","args":["t"],"kwargs":{"arguments":{}}}"#;
        for (response, expected) in [
            (
                r#"{"success":true,"result":{"_type":"CallToolResult","meta":null,"content":[{"_type":"TextContent","type":"text","text":"é","annotations":null,"meta":null}],"structuredContent":null,"isError":false},"error":null}"#,
                r#""result":{"content":[{"type":"text","text":"é"}],"isError":false}}"#,
            ),
            (
                r#"{"success":true,"result":{"content":[{"type":"image","data":"aGk=","mime_type":"image/png"}],"is_error":true,"structured_content":{"is_error":null}}}"#,
                r#""result":{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}],"isError":true,"structuredContent":{"is_error":null}}}"#,
            ),
            (r#"{"success":true,"result":"plain"}"#, r#""result":{"content":[{"type":"text","text":"plain"}]}}"#),
            (
                r#"{"success":true,"result":[{"type":"text","text":"x"}]}"#,
                r#""result":{"content":[{"type":"text","text":"x"}]}}"#,
            ),
            (
                r#"{"success":true,"result":{"prompts":[{"name":"p","title":null,"arguments":[{"_type":"PromptArgument","name":"a","description":null,"required":null}]}]}}"#,
                r#""result":{"prompts":[{"name":"p","arguments":[{"name":"a"}]}]}}"#,
            ),
            (
                r#"{"success":true,"result":{"content":[{"type":"tool_use","arguments":{"a":null}}]}}"#,
                r#""result":{"content":[{"type":"tool_use","arguments":{"a":null}}]}}"#,
            ),
            (r#"{"success":true,"result":null,"error":null}"#, r#""result":{"content":[]}}"#),
            (r#"{"result":{"content":[]}}"#, r#""result":{"content":[]}}"#),
            (
                r#"{"success":false,"result":null,"error":"Tool \"x\" not found"}"#,
                r#""error":{"code":-32603,"message":"Tool \"x\" not found"}}"#,
            ),
            (
                r#"{"success":false,"error":{"type":"McpError","message":"gone","code":-32001,"data":{"a":1e400}}}"#,
                r#""error":{"code":-32001,"message":"gone","data":{"a":1e400}}}"#,
            ),
            (
                r#"{"success":false,"error":{"type":"TimeoutError","message":""}}"#,
                r#""error":{"code":-32603,"message":""}}"#,
            ),
            (
                r#"{"success":false,"error":null}"#,
                r#""error":{"code":-32603,"message":"the call failed; nothing else is known"}}"#,
            ),
            (r#"{"error":"no success member"}"#, r#""error":{"code":-32603,"message":"no success member"}}"#),
            (
                r#"{"success":true,"result":{"value":NaN,"list":[Infinity,-Infinity],"n":12345678901234567890123}}"#,
                r#""result":{"value":"NaN","list":["Infinity","-Infinity"],"n":12345678901234567890123}}"#,
            ),
            (
                r#"{"success":true,"result":{"content":[{"type":"text","text":"\ud83d\ude00 \ud800"}]}}"#,
                r#""result":{"content":[{"type":"text","text":"\ud83d\ude00 \ud800"}]}}"#,
            ),
        ] {
            assert_eq!(wire(request, response).1, expected, "{response}");
        }
        assert_eq!(
            wire(
                r#"{"method":"list_tools"}"#,
                r#"{"success":true,"result":[{"name":"a","input_schema":{"type":"object","x_y":null}}]}"#
            )
            .1,
            r#""result":{"tools":[{"name":"a","inputSchema":{"type":"object","x_y":null}}]}}"#
        );
    }

    #[test]
    fn a_converted_session_is_read_back() {
        for text in [
            r#"{"session_id":"a","calls":[]}"#,
            r#"{"session_id":"a","calls":null,"ended_at":null}"#,
            r#"{"session_id":"a"}"#,
            r#"{"session_id":7,"server_info":null,"calls":[null,"odd",{"request":null,"response":"x"},{"request":{"method":"ping"},"extra":{"deep":[1.50,NaN]}}],"metadata":null,"more":{"x":1e500}}"#,
            r#"{"calls":[{"request":{"method":"list_tools","timestamp":"2025-10-30T10:30:45+02:00"},"response":{"success":true,"result":{"tools":[]},"timestamp":"2025-10-30T10:30:46.5Z"},"duration_ms":null}],"session_id":"a","started_at":"2025-10-30 10:30:45","metadata":{"n":12345678901234567890123,"_imported":"mine"}}"#,
            r#"{"session_id":"a","started_at":"not a time","calls":[{"request":{"method":"list_tools","timestamp":1761820245.5},"response":{"success":true,"result":{},"timestamp":"2024-01-01T00:00:00"},"duration_ms":"12"}]}"#,
        ] {
            comes_back(Format::PythonTrace, text);
        }
        let two = format!("{SEED}\n{SEED}\n");
        assert_eq!(comes_back(Format::PythonTrace, &two).len(), 6);
        let mut pretty = String::new();
        JsonTree::known(SEED).pretty(&mut pretty, 0);
        comes_back(Format::PythonTrace, &pretty);
    }

    #[test]
    fn notifications_of_the_python_client_are_no_calls() {
        let notification_of = |request: &str| {
            let answered = r#""response":{"success":true,"result":null,"error":null},"duration_ms":0.5"#;
            let list = r#"{"request":{"method":"list_tools","args":[],"kwargs":{}},"response":{"success":true,"result":{"tools":[]}}}"#;
            let text = format!(r#"{{"session_id":"s","calls":[{{"request":{request},{answered}}},{list}]}}"#);
            let parts = comes_back(Format::PythonTrace, &text);
            // Our files have it behind the calls, Python's in recorded order.
            let Part::Entry(Entry { what: EntryBody::Message { from: Side::Client, message, .. }, .. }) = &parts[2]
            else {
                panic!("{parts:?}")
            };
            let notification = message.as_notification().unwrap();
            format!("{} {}", notification.method, notification.params.as_ref().map_or("", |params| params.as_str()))
        };
        let progress = r#"notifications/progress {"progressToken":"t","progress":0.5,"total":1.0}"#;
        for request in [
            r#"{"method":"send_progress_notification","args":["t",0.5,1.0],"kwargs":{}}"#,
            r#"{"method":"send_progress_notification","args":["t"],"kwargs":{"progress":0.5,"total":1.0,"message":null}}"#,
            r#"{"method":"send_progress_notification","kwargs":{"progress_token":"t","progress":0.5,"total":1.0}}"#,
            r#"{"method":"send_notification","args":[{"_type":"ClientNotification","root":{"_type":"ProgressNotification","method":"notifications/progress","params":{"progressToken":"t","progress":0.5,"total":1.0,"meta":null}}}]}"#,
        ] {
            assert_eq!(notification_of(request), progress);
        }
        let changed = r#"{"method":"send_roots_list_changed","args":[],"kwargs":{}}"#;
        assert_eq!(notification_of(changed), "notifications/roots/list_changed ");
    }

    #[test]
    fn the_log_of_the_python_interceptor_is_written_back() {
        let log = concat!(
            r#"{"type": "request", "timestamp": "2025-10-30T10:30:45.100000", "method": "call_tool", "args": ["a"], "kwargs": {"arguments": {"x": 1}}}"#,
            "\n",
            r#"{"type": "request", "timestamp": "2025-10-30T10:30:45.150000", "method": "list_tools", "args": [], "kwargs": {}}"#,
            "\n",
            r#"{"type": "response", "timestamp": "2025-10-30T10:30:45.200000", "method": "call_tool", "result": {"_type": "CallToolResult", "content": []}}"#,
            "\n",
            r#"{"type": "response", "timestamp": "2025-10-30T10:30:45.300000", "method": "list_tools", "error": "gone", "extra": NaN}"#,
            "\n",
            r#"{"type": "request", "timestamp": "2025-10-30T10:30:46", "method": "send_ping", "args": [], "kwargs": {}}"#,
            "\n",
            r#"{"type": "response", "timestamp": "2025-10-30T10:30:47", "method": "never_asked", "result": 1}"#,
            "\n",
            r#"{"type": "note", "text": "hello"}"#,
            "\n",
        );
        let parts = comes_back(Format::PythonLog, log);
        let calls = parts.iter().filter(|part| matches!(part, Part::Call(_))).count();
        assert_eq!((calls, parts.len()), (3, 7));
    }

    fn fixture(name: &str) -> String {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/traces/");
        std::fs::read_to_string(format!("{path}{name}")).unwrap()
    }

    #[test]
    fn recordings_of_other_tools_are_read() {
        for (format, name, calls) in [
            (Format::McpRecorder, "mcp-recorder-0.5.json", 5),
            (Format::McpCassette, "mcp-cassette-0.4.json", 5),
            (Format::Mcporter, "mcporter-0.12.ndjson", 2),
            (Format::Mcptest, "mcptest-1.3.json", 5),
        ] {
            assert_eq!(detect(fixture(name).as_bytes()), Some(format), "{name}");
            let parts = read(format, fixture(name).as_bytes());
            assert_eq!(read(Format::Trace, write(Format::Trace, &parts).as_bytes()), parts, "{name}");
            assert!(RecordingWriter::new(format, Vec::new(), Cursor::new(Vec::new())).is_none(), "{name}");
            let found = parts.iter().filter(|part| matches!(part, Part::Call(call) if call.response.is_some())).count();
            assert_eq!(found, calls, "{name}");
        }
    }

    /// Byte order marks, line ends of Windows, indented sessions and sessions in an array, escapes, digits beyond every
    /// type, `NaN`, members that are absent, unknown, `null`, of another type or duplicated, errors and times of every
    /// form.
    #[test]
    fn edited_files_are_written_back() {
        for (name, calls) in [
            ("../python.jsonl", 4),
            ("../python.log", 2),
            ("bom-and-crlf.jsonl", 1),
            ("escapes-and-digits.jsonl", 1),
            ("errors.jsonl", 19),
            ("results.jsonl", 7),
            ("times.jsonl", 17),
            ("laid-out.json", 2),
            ("missing-and-more.jsonl", 1),
            ("methods.jsonl", 13),
            ("rounds.jsonl", 10),
            ("same-names.jsonl", 1),
            ("spaces.jsonl", 1),
            ("order.jsonl", 1),
            ("bom-and-crlf.log", 2),
            ("sessions.log", 2),
            ("ids.log", 2),
            ("strays.log", 1),
            ("kinds.log", 1),
        ] {
            let format = if name.ends_with(".log") { Format::PythonLog } else { Format::PythonTrace };
            let parts = comes_back(format, &fixture(&format!("python/{name}")));
            let found = parts.iter().filter(|part| matches!(part, Part::Call(call) if call.response.is_some())).count();
            assert_eq!(found, calls, "{name}");
        }
    }

    #[test]
    fn responses_in_a_log_are_paired_by_any_shared_id() {
        for (name, expected) in
            [("sessions.log", [("b", "of b"), ("a", "of a")]), ("ids.log", [("b", "2"), ("a", "1")])]
        {
            let parts = read(Format::PythonLog, fixture(&format!("python/{name}")).as_bytes());
            let calls = parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None });
            for (call, (tool, answer)) in calls.zip(expected) {
                assert!(call.request.message.text().contains(&format!(r#""name":"{tool}""#)), "{name}: {call:?}");
                assert!(call.response.as_ref().unwrap().message.text().contains(answer), "{name}: {call:?}");
            }
        }
    }

    #[test]
    fn client_only_methods_are_server_requests() {
        let line =
            |kind: &str, method: &str| format!(r#"{{"type":"{kind}","method":"{method}","result":{{}}}}"#) + "\n";
        let log =
            ["tools/call", "roots/list"].map(|method| line("request", method) + &line("response", method)).concat();
        let parts = read(Format::PythonLog, (log + &line("request", "sampling/createMessage")).as_bytes());
        let askers = parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call.asker) } else { None });
        assert_eq!(askers.collect::<Vec<_>>(), [Side::Client, Side::Server, Side::Server]);
    }

    #[test]
    fn an_error_is_found_at_every_place_in_an_exception() {
        let parts = read(Format::PythonTrace, fixture("python/errors.jsonl").as_bytes());
        let calls = parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None });
        let replies: Vec<String> = calls
            .filter_map(|call| Some(call.response.as_ref()?.message.text().split_once(r#","error":"#)?.1.to_owned()))
            .collect();
        for expected in [
            r#"{"code":-32000,"message":"inner"}"#,
            r#"{"code":-32603,"message":"boom"}"#,
            r#"{"code":-32602,"message":"bad","data":{"x":1}}"#,
        ] {
            assert!(replies.iter().any(|reply| reply.starts_with(expected)), "{expected}: {replies:#?}");
        }
    }

    #[test]
    fn requests_of_2026_07_28_contain_only_what_was_on_the_wire() {
        let parts = read(Format::PythonTrace, fixture("python/rounds.jsonl").as_bytes());
        let calls = parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None });
        let calls: Vec<&crate::trace::RecordedCall> = calls.map(AsRef::as_ref).collect();
        let request_of = |call: &&crate::trace::RecordedCall| {
            let request = call.request.message.as_request().unwrap();
            let params = request.params.as_ref().map_or_else(String::new, |params| format!(" {}", params.as_str()));
            format!("{}{params}", request.method)
        };
        let requests: Vec<String> = calls.iter().map(request_of).collect();
        insta::assert_snapshot!(requests.join("\n"), @r#"
        server/discover {"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}
        server/discover
        tools/list
        tools/call {"name":"a","arguments":{"x":1}}
        tools/call {"name":"a","arguments":{"x":1},"inputResponses":{"mime_type":{"action":"accept","content":{"is_error":"bob"}},"say":{"role":"assistant","content":{"type":"text","text":"hello"},"model":"m","stopReason":"endTurn"}},"requestState":"S1"}
        resources/read {"uri":"r://1"}
        tools/call {"name":"a","arguments":{"x":2}}
        prompts/get {"name":"p","arguments":{"q":"1"}}
        completion/complete {"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"q","value":"1"},"context":{"arguments":{"r":"2"}}}
        tools/call {"name":"a","arguments":{"is_error":null}}
        "#);
        let answered = calls[3].response.as_ref().unwrap().message.text().into_owned();
        insta::assert_snapshot!(answered, @r#"{"jsonrpc":"2.0","id":4,"result":{"resultType":"input_required","inputRequests":{"mime_type":{"method":"elicitation/create","params":{"mode":"form","message":"Name?","requestedSchema":{"type":"object","properties":{"is_error":{"type":"string"}}}}},"say":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":9,"systemPrompt":"brief","modelPreferences":{"costPriority":0.5}}}},"requestState":"S1"}}"#);
    }

    #[test]
    fn a_result_is_usable_by_clients_or_an_error() {
        let parts = read(Format::PythonTrace, fixture("python/results.jsonl").as_bytes());
        let calls = parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None });
        let reply_of = |call: &crate::trace::RecordedCall| {
            let text = call.response.as_ref().unwrap().message.text().into_owned();
            text.split_once(r#""id":"#).unwrap().1.split_once(',').unwrap().1.to_owned()
        };
        let (calls, replies): (Vec<_>, Vec<_>) = calls.map(|call| (call, reply_of(call))).unzip();
        assert_eq!(
            replies,
            [
                r#""result":{"content":[{"type":"text","text":"no such city"}],"isError":true}}"#,
                r#""result":{"isError":false,"content":[]}}"#,
                r#""result":{"content":[{"type":"text","text":"5"}]}}"#,
                r#""result":{"task":{"taskId":"1","status":"working"}}}"#,
                r#""result":{"messages":[{"role":"user","content":{"type":"text","text":"just text"}}]}}"#,
                r#""error":{"code":-32603,"message":"the recorded value is no result: \"just text\""}}"#,
                r#""error":{"code":-32603,"message":"the recorded value is no result: true"}}"#,
            ]
        );
        assert_eq!(calls[5].request.message.params().unwrap().at(&["uri"]).unwrap().as_str(), r#""file:///c""#);
    }

    #[test]
    fn a_session_is_converted_without_loss_to_formats_that_support_it() {
        let cassette = fixture("mcp-cassette-0.4.json");
        let ours = read(Format::McpCassette, cassette.as_bytes());
        for format in [Format::Trace, Format::Journal, Format::PythonTrace] {
            let text = write(format, &ours);
            assert_eq!(read(format, text.as_bytes()), ours, "{text}");
        }
    }

    #[test]
    fn edits_of_a_python_file_override_our_metadata() {
        let ours = read(Format::McpCassette, fixture("mcp-cassette-0.4.json").as_bytes());
        let text = write(Format::PythonTrace, &ours).replacen("12:30", "13:30", 1);
        let parts = read(Format::PythonTrace, text.as_bytes());
        assert_ne!(parts, ours);
        assert!(format!("{parts:?}").contains("13:30"));
    }

    #[test]
    fn an_archive_of_what_was_not_over_http_is_refused() {
        let mut writer = RecordingWriter::new(Format::Har, Vec::new(), Cursor::new(Vec::new())).unwrap();
        let parts = read(Format::PythonTrace, SEED.as_bytes());
        let failed = parts.iter().find_map(|part| writer.part(part).err()).unwrap();
        let expected = "session 550e8400-e29b-41d4-a716-446655440000 was not recorded over HTTP, so there is nothing to put into an HTTP archive";
        assert_eq!(failed.to_string(), expected);
        assert!(RecordingReader::new(Format::Har, Cursor::new(b"")).is_none());
    }

    #[test]
    fn bad_lines_are_reported_or_skipped() {
        let text = format!("{SEED}\n{{\"session_id\": nonsense}}\n{SEED}\n");
        let results = |skip| -> Vec<String> {
            let reader = RecordingReader::skipping(Format::PythonTrace, Cursor::new(text.clone()), skip).unwrap();
            reader.map(|part| part.map_or_else(|error| error.to_string(), |_| "part".to_owned())).collect()
        };
        let bad = "line 2, column 16: expected a value";
        assert_eq!(results(false), ["part", "part", "part", bad]);
        assert_eq!(results(true), ["part", "part", "part", bad, "part", "part", "part"]);
        let torn = format!("{SEED}\n{}\n{SEED}\n", &SEED[..300]);
        let reader = RecordingReader::skipping(Format::PythonTrace, Cursor::new(torn), true).unwrap();
        assert_eq!(reader.filter(Result::is_ok).count(), 6);
    }
}
