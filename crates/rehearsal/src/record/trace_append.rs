//! Appends a session to a trace, whole or not at all.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use super::journal::{SessionJournal, is_torn, private_file};

/// Number of bytes of a line that are read to find its session.
const HEAD: u64 = 4096;
/// Number of bytes that are read at once to find the beginning of the last line.
const BLOCK: u64 = 64 * 1024;

/// Appends the one line in `session` to a trace under its lock. If that fails, the trace is restored.
pub(super) fn append(trace: &Path, session: &mut File) -> io::Result<()> {
    let mut file = locked(trace)?;
    repair(trace, &mut file)?;
    let length = file.metadata()?.len();
    session.seek(SeekFrom::Start(0))?;
    io::copy(session, &mut file).map(drop).inspect_err(|_| {
        // If truncating fails too, the journal still exists, and the next recorder appends the session.
        let _ = file.set_len(length);
    })
}

/// Removes a line that a killed recorder did not finish. Returns whether there was one.
pub(super) fn repair_trace(trace: &Path) -> io::Result<bool> {
    // Most traces need no repair, and are not opened for writing.
    match is_torn(trace) {
        true => repair(trace, &mut locked(trace)?),
        false => Ok(false),
    }
}

/// Whether a session is in a trace, with its line end.
pub(super) fn contains(trace: &Path, session_id: &str) -> io::Result<bool> {
    let mut lines = BufReader::with_capacity(64 * 1024, File::open(trace)?);
    let mut head = Vec::new();
    loop {
        head.clear();
        if lines.by_ref().take(HEAD).read_until(b'\n', &mut head)? == 0 {
            return Ok(false);
        }
        let whole = head.ends_with(b"\n") || skip_line(&mut lines)?;
        if whole && of_session(&head).is_some_and(|found| found == session_id) {
            return Ok(true);
        }
    }
}

/// Opens a trace and locks it.
fn locked(trace: &Path) -> io::Result<File> {
    loop {
        let file = private_file().read(true).append(true).create(true).open(trace)?;
        file.lock()?;
        // Another process may have replaced the file while we waited for the lock.
        let (ours, theirs) = (file.metadata()?, std::fs::metadata(trace));
        if theirs.is_ok_and(|theirs| (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino())) {
            return Ok(file);
        }
    }
}

/// Repairs a last line without a line end. A line of a killed recorder is removed, because its journal has it. A line
/// of an editor gets its line end. Returns whether a line was removed.
fn repair(trace: &Path, file: &mut File) -> io::Result<bool> {
    let Some((start, torn)) = last_without_end(trace, file)? else { return Ok(false) };
    match torn {
        true => file.set_len(start)?,
        false => file.write_all(b"\n")?,
    }
    Ok(torn)
}

/// The offset of a last line that a killed recorder did not finish.
pub(super) fn torn_at(trace: &Path) -> io::Result<Option<u64>> {
    match is_torn(trace) {
        true => Ok(last_without_end(trace, &mut File::open(trace)?)?.and_then(|(start, torn)| torn.then_some(start))),
        false => Ok(None),
    }
}

/// The offset of a last line without a line end, and whether a killed recorder wrote it.
fn last_without_end(trace: &Path, file: &mut File) -> io::Result<Option<(u64, bool)>> {
    let length = file.metadata()?.len();
    let start = last_line(file, length)?;
    if start == length {
        return Ok(None);
    }
    let mut head = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    (&*file).take(HEAD).read_to_end(&mut head)?;
    // If the line ends before its session id, its beginning shows whether a recorder wrote it.
    let torn = match of_session(&head) {
        Some(session_id) => SessionJournal::path(trace, &session_id).exists(),
        None => b"{\"format\":".starts_with(&head) || head.starts_with(b"{\"format\":") && head.len() < 128,
    };
    Ok(Some((start, torn)))
}

/// The offset of the last line without a line end; the length if every line has one.
pub(crate) fn last_line(file: &File, length: u64) -> io::Result<u64> {
    let mut end = length;
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        block.resize(usize::try_from(end - start).map_err(io::Error::other)?, 0);
        file.read_exact_at(&mut block, start)?;
        if let Some(at) = memchr::memrchr(b'\n', &block) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Skips the rest of a line. Returns whether it has a line end.
fn skip_line(lines: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let chunk = lines.fill_buf()?;
        let (used, done) = match memchr::memchr(b'\n', chunk) {
            Some(end) => (end + 1, Some(true)),
            None => (chunk.len(), chunk.is_empty().then_some(false)),
        };
        lines.consume(used);
        if let Some(whole) = done {
            return Ok(whole);
        }
    }
}

/// The session id in a line of a trace. In lines of a recorder it is near the beginning.
fn of_session(head: &[u8]) -> Option<String> {
    let key = b"\"session_id\":\"";
    let at = memchr::memmem::find(head, key)? + key.len();
    let end = memchr::memchr(b'"', &head[at..])?;
    String::from_utf8(head[at..at + end].to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(text: &str) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[test]
    fn a_session_is_appended_after_whole_torn_and_unterminated_lines() {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("trace.jsonl");
        let ours = "{\"format\":1,\"session_id\":\"b\"}\n";
        let journal = SessionJournal::path(&trace, "a");
        std::fs::write(&journal, "").unwrap();
        let table = [
            ("", ours.to_owned()),
            ("{\"x\":1}\n", format!("{{\"x\":1}}\n{ours}")),
            // Without a line end, but whole: written by an editor.
            ("{\"x\":1}", format!("{{\"x\":1}}\n{ours}")),
            // Torn, and its journal exists.
            ("{}\n{\"format\":1,\"session_id\":\"a\",\"calls\":[{", format!("{{}}\n{ours}")),
            ("{}\n{\"form", format!("{{}}\n{ours}")),
            // Unfinished, but no journal has it.
            ("{\"format\":1,\"session_id\":\"z\",\"ca", format!("{{\"format\":1,\"session_id\":\"z\",\"ca\n{ours}")),
        ];
        for (before, expected) in table {
            std::fs::write(&trace, before).unwrap();
            append(&trace, &mut session(ours)).unwrap();
            assert_eq!(std::fs::read_to_string(&trace).unwrap(), expected, "{before:?}");
        }
    }

    #[test]
    fn a_session_is_found_only_where_its_line_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("trace.jsonl");
        let long = "x".repeat(100_000);
        let text = format!("{{\"session_id\":\"a\",\"x\":\"{long}\"}}\n{{\"session_id\":\"b\",\"x\":\"{long}\"");
        std::fs::write(&trace, text).unwrap();
        assert!(contains(&trace, "a").unwrap());
        assert!(!contains(&trace, "b").unwrap());
        assert!(!contains(&trace, "x").unwrap());
    }
}
