//! Opens the index of a trace, and builds it if none fits.

use std::fs::File;
use std::io;
use std::io::{BufRead, Seek};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rehearsal_core::trace::{Part, ReadError, RequestIdentity, RequestKey, TraceReader};
use serde_json::json;

use super::builder::IndexBuilder;
use super::event_digest::SessionDigests;
use super::lookup::Index;
use super::records::TraceFingerprint;
use super::writer::write;
use crate::replay::options::{IndexProgress, ReplayOptions};
use crate::replay::sidecar::{SidecarFile, create_temporary, install, remove_stale};
use crate::store::Recording;

/// How many bytes of each end of a trace are compared to recognize it.
const SAMPLE: u64 = 16 << 10;

/// Why there is no index.
#[derive(thiserror::Error)]
pub enum IndexError {
    /// The trace is broken.
    #[error(transparent)]
    Trace(#[from] ReadError),
    /// Something could not be read or written.
    #[error("cannot index the trace: {0}")]
    Io(#[from] io::Error),
}

debug_as_display!(IndexError);

/// What to do with an index that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replay) enum Existing {
    /// Use it, if it is of this trace.
    Use,
    /// Build another; this one is damaged.
    Replace,
}

/// The index of a trace: the file next to the trace, if it fits; otherwise a new one. That is written next to the
/// trace, or to a temporary file if no file may be created there.
pub(in crate::replay) fn open(
    recording: &Recording,
    path: Option<&Path>,
    options: &ReplayOptions,
    existing: Existing,
) -> Result<Index, IndexError> {
    let likeness = &options.likeness;
    let origin = origin(recording.file(), likeness)?;
    let beside = path.map(|path| SidecarFile::Index.path(path));
    beside.iter().for_each(|beside| remove_stale(beside));
    let found = beside.as_deref().filter(|_| existing == Existing::Use);
    if let Some(file) = found.and_then(|beside| File::open(beside).ok())
        // An index that cannot be read is built again.
        && let Some(index) = Index::read(file).ok().flatten().filter(|index| index.head().origin == origin)
    {
        return Ok(index);
    }
    let see = |bytes| options.on_index.report(IndexProgress { bytes, of: origin.length });
    let build = |file: &mut File| -> Result<(), IndexError> {
        let all = collect(recording.trace_reader(), likeness, see)?;
        write(file, all, origin)?;
        Ok(())
    };
    let file = match kept(beside.as_deref(), build) {
        Some(Ok(file)) => file,
        Some(Err(error @ IndexError::Trace(_))) => return Err(error),
        // The disk is full, or the folder is read-only.
        Some(Err(IndexError::Io(_))) | None => {
            let mut file = tempfile::tempfile()?;
            build(&mut file)?;
            file
        }
    };
    let index = Index::read(file)?;
    index.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "what was written cannot be read").into())
}

/// Builds a new index next to the trace; `None` if no file may be created there.
fn kept(
    beside: Option<&Path>,
    build: impl Fn(&mut File) -> Result<(), IndexError>,
) -> Option<Result<File, IndexError>> {
    let beside = beside?;
    let mut file = create_temporary(beside)?;
    let written = build(file.as_file_mut()).and_then(|()| {
        // After a power failure there is no partial index under this name.
        file.as_file().sync_all()?;
        Ok(file.as_file().try_clone()?)
    });
    if written.is_ok() {
        install(file, beside);
    }
    Some(written)
}

/// A number that changes with a file, with as much of it as is looked at.
pub(in crate::replay) fn fingerprint(file: &File) -> io::Result<u128> {
    let TraceFingerprint { length, changed, sample, .. } = origin(file, &RequestIdentity::default())?;
    Ok(RequestKey::from_view(&json!([length, changed.to_string(), sample.to_string()])).0)
}

/// What identifies a trace, and changes when the trace has grown.
fn origin(trace: &File, likeness: &RequestIdentity) -> io::Result<TraceFingerprint> {
    let metadata = trace.metadata()?;
    let length = metadata.len();
    let mut sample = vec![0; usize::try_from(length.min(SAMPLE)).unwrap_or_default()];
    trace.read_exact_at(&mut sample, 0)?;
    let mut text = String::from_utf8_lossy(&sample).into_owned();
    trace.read_exact_at(&mut sample, length - length.min(SAMPLE))?;
    text.push_str(&String::from_utf8_lossy(&sample));
    let seconds = u128::try_from(metadata.mtime()).unwrap_or_default();
    let changed = seconds * 1_000_000_000 + u128::try_from(metadata.mtime_nsec()).unwrap_or_default();
    let sample = RequestKey::from_view(&json!(text)).0;
    Ok(TraceFingerprint { length, changed, sample, likeness: likeness.fingerprint().0 })
}

/// Progress is reported after this many parts.
const PROGRESS_INTERVAL: usize = 4096;

/// Builds everything that an index of this trace contains; `see` gets the byte offset of the reader.
pub(super) fn collect<R: BufRead + Seek>(
    mut reader: TraceReader<R>,
    likeness: &RequestIdentity,
    see: impl Fn(u64),
) -> Result<IndexBuilder, ReadError> {
    let (mut all, mut session) = (IndexBuilder::default(), SessionDigests::default());
    let mut parts = 0_usize;
    while let Some(part) = reader.next() {
        let span = reader.span();
        parts += 1;
        if parts.is_multiple_of(PROGRESS_INTERVAL) {
            see(span.offset);
        }
        match part? {
            Part::Start(start) => all.start(start),
            Part::Call(call) => session.calls.extend(all.digest(&call, span, likeness)),
            Part::Entry(entry) => session.entries.extend(all.digest_entry(&entry, span)),
            Part::Finish { .. } => all.finish(std::mem::take(&mut session)),
        }
    }
    Ok(all.in_order())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::{self, BufReader, Cursor, Read, SeekFrom};
    use std::rc::Rc;

    use super::*;

    const HEAD: &str = r#""format":1,"session_id":"s","server_info":{},"started_at":null,"metadata":{}"#;
    const CALLS: &str = r#""calls":[
        {"request":{"seq":0,"at_ms":0,"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":7}}},
         "response":{"seq":4,"at_ms":4,"success":true,"result":{}},"duration_ms":4},
        {"request":{"seq":2,"from":"server","at_ms":2,"id":9,"method":"roots/list"},
         "response":{"seq":3,"at_ms":3,"success":true,"result":{"roots":[]}},"duration_ms":1},
        {"request":{"seq":5,"at_ms":5,"id":2,"method":"tools/call","params":{"name":"b"}},
         "response":{"seq":7,"at_ms":7,"success":true,"result":{}},"duration_ms":2}]"#;
    const MESSAGES: &str = r#""messages":[
        {"seq":1,"at_ms":1,"type":"notification","from":"server","method":"notifications/progress","params":{"progressToken":7,"progress":1}},
        {"seq":6,"at_ms":6,"type":"notification","from":"server","method":"notifications/tools/list_changed"}]"#;

    /// Counts the bytes that are read, and refuses to seek back.
    struct Once {
        input: Cursor<Vec<u8>>,
        read: Rc<Cell<usize>>,
    }

    impl Read for Once {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.input.read(buffer)?;
            self.read.set(self.read.get() + count);
            Ok(count)
        }
    }

    impl Seek for Once {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            match to {
                SeekFrom::Current(0) => self.input.stream_position(),
                _ => Err(io::Error::other("it seeks back")),
            }
        }
    }

    /// The sequence numbers of the related events of each exchange.
    fn events(all: &IndexBuilder) -> Vec<Vec<u64>> {
        let of = |number: u32| all.events.iter().filter(move |(of, _)| *of == number).map(|(_, event)| event.seq);
        (0..all.exchanges.len() as u32).map(|number| of(number).collect()).collect()
    }

    fn trace(members: [&str; 3]) -> String {
        let line = format!("{{{},\"ended_at\":null,\"end\":null}}", members.join(",")).replace('\n', "");
        format!("{line}\n{line}\n")
    }

    #[test]
    fn the_trace_is_read_once() {
        let text = trace([HEAD, CALLS, MESSAGES]);
        let (length, read) = (text.len(), Rc::new(Cell::new(0)));
        let input = Once { input: Cursor::new(text.into_bytes()), read: read.clone() };
        let reader = TraceReader::new(BufReader::with_capacity(16, input));
        let all = collect(reader, &RequestIdentity::default(), |_| {}).unwrap();
        assert_eq!(read.get(), length);
        assert_eq!(events(&all), [vec![1, 2], vec![6], vec![1, 2], vec![6]]);
    }

    #[test]
    fn messages_may_precede_the_calls_of_a_line() {
        let text = trace([HEAD, MESSAGES, CALLS]);
        let all = collect(TraceReader::new(Cursor::new(text)), &RequestIdentity::default(), |_| {}).unwrap();
        assert_eq!(events(&all), [vec![1, 2], vec![6], vec![1, 2], vec![6]]);
    }

    /// A request on channel 2 that is answered on channel 1, with how its POST was replied to.
    fn answered_elsewhere(status: u16, kind: &str) -> String {
        let calls = r#""calls":[
            {"request":{"seq":1,"at_ms":1,"channel":2,"id":1,"method":"tools/call","params":{"name":"a"}},
             "response":{"seq":4,"at_ms":4,"channel":1,"success":true,"result":{}},"duration_ms":3}]"#;
        let messages = format!(
            r#""messages":[
            {{"type":"http","seq":0,"at_ms":0,"from":"client","channel":2,"http":{{"method":"POST","target":"/","headers":[]}}}},
            {{"type":"http","seq":2,"at_ms":2,"from":"server","channel":2,"http":{{"status":{status},"headers":[["Content-Type","{kind}"]]}}}},
            {{"type":"channel_ended","seq":3,"at_ms":3,"channel":2}}]"#
        );
        trace([HEAD, calls, &messages])
    }

    #[test]
    fn only_a_stream_can_be_closed_before_the_answer() {
        for (text, expected) in [
            (answered_elsewhere(200, "text/event-stream"), vec![3]),
            (answered_elsewhere(202, "text/plain"), vec![]),
            (answered_elsewhere(200, "text/plain"), vec![]),
        ] {
            let reader = TraceReader::new(Cursor::new(text.clone().into_bytes()));
            let all = collect(reader, &RequestIdentity::default(), |_| {}).unwrap();
            assert_eq!(events(&all), [expected.clone(), expected], "{text}");
        }
    }

    #[test]
    fn a_server_request_on_the_response_stream_belongs_to_the_call() {
        let calls = r#""calls":[
            {"request":{"seq":0,"at_ms":0,"channel":2,"id":1,"method":"tools/call","params":{"name":"a"}},
             "response":{"seq":3,"at_ms":3,"channel":1,"success":true,"result":{}},"duration_ms":3},
            {"request":{"seq":1,"from":"server","at_ms":1,"channel":1,"id":9,"method":"roots/list"},
             "response":{"seq":2,"at_ms":2,"channel":3,"success":true,"result":{"roots":[]}},"duration_ms":1}]"#;
        let text = trace([HEAD, calls, r#""messages":[]"#]);
        let all = collect(TraceReader::new(Cursor::new(text)), &RequestIdentity::default(), |_| {}).unwrap();
        assert_eq!(events(&all), [vec![1], vec![1]]);
    }
}
