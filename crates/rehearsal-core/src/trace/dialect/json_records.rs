//! Reads files of JSON record by record: objects one after another, or one object with a long list in it.
//!
//! ```text
//! {"session_id": "a", "calls": [{…}, {…}], "metadata": {}}     ──► Head {session_id, calls: [], metadata}, Item, Item, End
//! {"type": "request", …}                                        ──► Item
//! ```

use std::io::{self, BufRead, Seek, SeekFrom};

use super::super::ReadError;
use super::json_tree::{JsonTree, TreeError};

/// One record of such a file.
#[derive(Debug, PartialEq)]
pub(super) enum Record {
    /// An object whose list is empty; its elements follow.
    Head(JsonTree),
    /// An element of the list; in a file without lists, an object.
    Item(JsonTree),
    /// The end of the object.
    End,
}

/// The records of a file. An object may be indented over several lines, and several objects may be in an array. But if
/// the first object is on one line, each of them must be: an object that continues on the next line was cut off.
#[derive(Debug)]
pub(super) struct Records<R> {
    input: R,
    /// The key of the list, in files whose objects have one.
    list: Option<&'static str>,
    state: State,
    line: u64,
    column: u64,
    limit: usize,
    buffer: Vec<u8>,
    /// Whether each object is on one line; known after the first object.
    one_line: Option<bool>,
    /// The line on which the current object began.
    began: Option<u64>,
    /// The member of a member that may be as long as the list, and is skipped.
    aside: Option<[&'static str; 2]>,
    /// The span of that member in the current object.
    passed: Option<ByteSpan>,
}

/// The position of a value, in bytes from the beginning of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteSpan {
    pub(super) from: u64,
    pub(super) to: u64,
}

/// A position to return to.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilePosition {
    position: u64,
    line: u64,
    column: u64,
    state: State,
    began: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Between,
    InList,
    Rest,
    Over,
}

impl<R: BufRead + Seek> Records<R> {
    /// Reads from the position of `input`.
    pub(super) fn new(input: R, list: Option<&'static str>, limit: usize) -> Records<R> {
        let (buffer, one_line, began, aside, passed) = (Vec::new(), None, None, None, None);
        let state = State::Between;
        Records { input, list, state, line: 1, column: 1, limit, buffer, one_line, began, aside, passed }
    }

    /// Skips the member `inner` of the member `outer`, and keeps its span.
    pub(super) fn skipping(self, [outer, inner]: [&'static str; 2]) -> Records<R> {
        Records { aside: Some([outer, inner]), ..self }
    }

    /// The span of the skipped member in the current object.
    pub(super) fn skipped_span(&self) -> Option<ByteSpan> {
        self.passed
    }

    /// The current position.
    pub(super) fn mark(&mut self) -> io::Result<FilePosition> {
        let position = self.input.stream_position()?;
        Ok(FilePosition { position, line: self.line, column: self.column, state: self.state, began: self.began })
    }

    /// Returns to a position.
    pub(super) fn go_to(&mut self, mark: FilePosition) -> io::Result<()> {
        let FilePosition { position, line, column, state, began } = mark;
        (self.line, self.column, self.state, self.began) = (line, column, state, began);
        self.input.seek(SeekFrom::Start(position)).map(drop)
    }

    /// Parses the value at a span.
    pub(super) fn value_at(&mut self, span: ByteSpan) -> Result<JsonTree, ReadError> {
        let back = self.mark()?;
        self.input.seek(SeekFrom::Start(span.from))?;
        let value = self.value();
        self.go_to(back)?;
        value
    }

    /// The file itself, to read another part of it.
    pub(super) fn input(&mut self) -> &mut R {
        &mut self.input
    }

    /// The line that is being read, from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Reads the next record.
    pub(super) fn next(&mut self) -> Result<Option<Record>, ReadError> {
        loop {
            match self.state {
                State::Over => return Ok(None),
                State::Between => match self.peek()? {
                    None => {
                        self.state = State::Over;
                        return Ok(None);
                    }
                    // Several objects may be in an array, or be separated as in one.
                    Some(b'[' | b',' | b']' | b';') => self.skip(1)?,
                    Some(0xef) => self.skip(3)?,
                    Some(b'{') => {
                        self.began = Some(self.line);
                        return match self.list {
                            None => {
                                let tree = self.value()?;
                                self.ended();
                                Ok(Some(Record::Item(tree)))
                            }
                            Some(list) => self.head(list).map(Some),
                        };
                    }
                    Some(_) => return Err(self.bad("`{`")),
                },
                State::InList => {
                    if self.peek()? == Some(b',') {
                        self.skip(1)?;
                    }
                    if self.peek()? == Some(b']') {
                        self.skip(1)?;
                        self.state = State::Rest;
                        continue;
                    }
                    return self.value().map(|tree| Some(Record::Item(tree)));
                }
                State::Rest => {
                    // The member at this position was read before the list.
                    while self.peek()? == Some(b',') {
                        self.skip(1)?;
                        self.key()?;
                        self.peek()?;
                        self.scan(KeepText::Nothing)?;
                    }
                    if self.peek()? != Some(b'}') {
                        return Err(self.bad("`,` or `}`"));
                    }
                    self.skip(1)?;
                    self.state = State::Between;
                    self.ended();
                    return Ok(Some(Record::End));
                }
            }
        }
    }

    /// Continues after the bad line.
    pub(super) fn skip_line(&mut self) -> io::Result<()> {
        (self.state, self.began) = (State::Between, None);
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                self.state = State::Over;
                return Ok(());
            }
            let found = chunk.iter().position(|byte| *byte == b'\n');
            let count = found.map_or(chunk.len(), |at| at + 1);
            self.input.consume(count);
            if found.is_some() {
                (self.line, self.column) = (self.line + 1, 1);
                return Ok(());
            }
        }
    }

    fn ended(&mut self) {
        let one_line = self.began.take() == Some(self.line);
        self.one_line.get_or_insert(one_line);
    }

    /// Whether a line break at this position cuts an object off.
    fn cuts(&self) -> bool {
        self.one_line == Some(true) && self.began.is_some()
    }

    /// Ends the reading.
    pub(super) fn stop(&mut self) {
        self.state = State::Over;
    }

    fn head(&mut self, list: &'static str) -> Result<Record, ReadError> {
        self.passed = None;
        self.skip(1)?;
        let mut head = JsonTree::Object(Vec::new());
        let mut place = None;
        loop {
            match self.peek()? {
                Some(b'}') => break,
                Some(b',') => self.skip(1)?,
                Some(b'"') => {}
                Some(_) | None => return Err(self.bad("a key")),
            }
            let key = self.key()?;
            if key == list && place.is_none() && self.peek()? == Some(b'[') {
                self.skip(1)?;
                place = Some((self.input.stream_position()?, self.line, self.column));
                self.pass()?;
                head.push(key, JsonTree::List(Vec::new()));
            } else {
                let inner = self.aside.filter(|[outer, _]| *outer == key).map(|[_, inner]| inner);
                let value = match inner {
                    Some(inner) if self.peek()? == Some(b'{') => self.object_without(inner)?,
                    Some(_) | None => self.value()?,
                };
                head.push(key, value);
            }
        }
        match place {
            Some((position, line, column)) => {
                self.input.seek(SeekFrom::Start(position))?;
                (self.line, self.column, self.state) = (line, column, State::InList);
            }
            // An object without its list ends here.
            None => self.state = State::Rest,
        }
        Ok(Record::Head(head))
    }

    fn key(&mut self) -> Result<String, ReadError> {
        match self.value()? {
            JsonTree::Leaf(quoted) if quoted.starts_with('"') => {
                let key = quoted[1..quoted.len() - 1].to_owned();
                self.colon()?;
                Ok(key)
            }
            JsonTree::Leaf(_) | JsonTree::List(_) | JsonTree::Object(_) => Err(self.bad("a key")),
        }
    }

    /// An object without its member of this name, which is skipped if it is an object.
    fn object_without(&mut self, inner: &str) -> Result<JsonTree, ReadError> {
        self.skip(1)?;
        let mut object = JsonTree::Object(Vec::new());
        loop {
            match self.peek()? {
                Some(b'}') => {
                    self.skip(1)?;
                    return Ok(object);
                }
                Some(b',') => self.skip(1)?,
                Some(b'"') => {}
                Some(_) | None => return Err(self.bad("a key")),
            }
            let key = self.key()?;
            if key == inner && self.peek()? == Some(b'{') {
                let from = self.input.stream_position()?;
                self.scan(KeepText::Nothing)?;
                self.passed = Some(ByteSpan { from, to: self.input.stream_position()? });
            } else {
                let value = self.value()?;
                object.push(key, value);
            }
        }
    }

    /// Skips the rest of a list.
    fn pass(&mut self) -> Result<(), ReadError> {
        loop {
            match self.peek()? {
                Some(b']') => return self.skip(1),
                Some(b',') => self.skip(1)?,
                Some(b'}' | b':') => return Err(self.bad("`,` or `]`")),
                Some(_) => self.scan(KeepText::Nothing)?,
                None => return Err(self.bad("the end of the list")),
            }
        }
    }

    fn colon(&mut self) -> Result<(), ReadError> {
        if self.peek()? != Some(b':') {
            return Err(self.bad("`:`"));
        }
        self.skip(1)
    }

    fn bad(&self, expected: &str) -> ReadError {
        ReadError::Bad { line: self.line, column: self.column, expected: expected.to_owned() }
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Result<Option<u8>, ReadError> {
        loop {
            let chunk = self.input.fill_buf()?;
            let Some(&byte) = chunk.first() else { return Ok(None) };
            match byte {
                b'\n' if self.cuts() => return Err(self.bad("the rest of the object instead of the end of the line")),
                b'\n' => (self.line, self.column) = (self.line + 1, 1),
                b' ' | b'\t' | b'\r' => self.column += 1,
                _ => return Ok(Some(byte)),
            }
            self.input.consume(1);
        }
    }

    fn skip(&mut self, count: usize) -> Result<(), ReadError> {
        self.input.consume(count);
        self.column += count as u64;
        Ok(())
    }

    /// Parses one value.
    fn value(&mut self) -> Result<JsonTree, ReadError> {
        self.peek()?;
        let (line, column) = (self.line, self.column);
        self.scan(KeepText::Text)?;
        let text = std::str::from_utf8(&self.buffer).map_err(|error| {
            place(&self.buffer, line, column, &TreeError { at: error.valid_up_to(), expected: "UTF-8" })
        })?;
        JsonTree::parse(text).map_err(|error| place(&self.buffer, line, column, &error))
    }

    /// Finds the end of the value that begins here.
    fn scan(&mut self, keep: KeepText) -> Result<(), ReadError> {
        let mut begun = false;
        self.buffer.clear();
        let (line, column) = (self.line, self.column);
        let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return if depth == 0 && !in_string && begun {
                    Ok(())
                } else {
                    Err(self.bad("the rest of the value instead of the end of the file"))
                };
            }
            let (mut over, mut cut) = (false, false);
            let mut used = 0;
            let cuts = self.one_line == Some(true) && self.began.is_some();
            for &byte in chunk {
                // No string continues on the next line.
                if byte == b'\n' && (in_string || (cuts && depth > 0)) {
                    cut = true;
                    break;
                }
                if depth == 0 && !in_string && matches!(byte, b',' | b':' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n')
                {
                    over = true;
                    break;
                }
                used += 1;
                if byte == b'\n' {
                    (self.line, self.column) = (self.line + 1, 1);
                } else {
                    self.column += 1;
                }
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if in_string => escaped = true,
                    b'"' => in_string = !in_string,
                    b'{' | b'[' if !in_string => depth += 1,
                    b'}' | b']' if !in_string => depth -= 1,
                    _ => {}
                }
                if depth == 0 && !in_string && matches!(byte, b'"' | b'}' | b']') {
                    over = true;
                    break;
                }
            }
            if keep == KeepText::Text {
                if self.buffer.len() + used > self.limit {
                    return Err(ReadError::TooLong { line, column, limit: self.limit });
                }
                self.buffer.extend_from_slice(&chunk[..used]);
            }
            begun |= used > 0;
            self.input.consume(used);
            if cut {
                return Err(self.bad("the rest of the value instead of the end of the line"));
            }
            if over {
                return Ok(());
            }
        }
    }
}

/// Whether the text of a value is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeepText {
    Text,
    Nothing,
}

impl<R> Records<R> {
    /// Lends the file to another reader; reading continues at `back`.
    pub(super) fn lend(self, back: FilePosition) -> (R, SuspendedRecords) {
        let Records { input, list, limit, one_line, aside, .. } = self;
        (input, SuspendedRecords { back, list, limit, one_line, aside })
    }
}

/// The state that is needed to continue after the file was lent.
#[derive(Debug)]
pub(super) struct SuspendedRecords {
    back: FilePosition,
    list: Option<&'static str>,
    limit: usize,
    one_line: Option<bool>,
    aside: Option<[&'static str; 2]>,
}

impl SuspendedRecords {
    /// Takes the file back.
    pub(super) fn resume<R: BufRead + Seek>(self, input: R) -> io::Result<Records<R>> {
        let SuspendedRecords { back, list, limit, one_line, aside } = self;
        let mut records = Records { one_line, aside, ..Records::new(input, list, limit) };
        records.go_to(back)?;
        Ok(records)
    }
}

/// The position of an error in a value, as a position in the file.
fn place(text: &[u8], line: u64, column: u64, error: &TreeError) -> ReadError {
    let before = &text[..error.at.min(text.len())];
    let breaks = before.iter().filter(|byte| **byte == b'\n').count() as u64;
    let column = match before.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => (before.len() - at) as u64,
        None => column + before.len() as u64,
    };
    ReadError::Bad { line: line + breaks, column, expected: error.expected.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Cursor};

    fn read(text: &str, list: Option<&'static str>) -> Vec<Result<Record, String>> {
        // Two bytes at a time: the result may not depend on the buffer.
        let mut records = Records::new(BufReader::with_capacity(2, Cursor::new(text.to_owned())), list, 1 << 20);
        let mut found = Vec::new();
        loop {
            match records.next() {
                Ok(Some(record)) => found.push(Ok(record)),
                Ok(None) => return found,
                Err(error) => {
                    found.push(Err(error.to_string()));
                    return found;
                }
            }
        }
    }

    #[test]
    fn an_unterminated_list_is_an_error() {
        for text in [r#"{"l":[{}}"#, r#"{"l":[}"#, r#"{"l":[{}:1]}"#, r#"{"l":[{}"#, r#"{"l":["#] {
            assert!(matches!(&read(text, Some("l"))[..], [Err(_)]), "{text}");
        }
    }

    #[test]
    fn the_list_may_be_at_any_position_in_its_object() {
        let head = |text: &str| Ok(Record::Head(JsonTree::known(text)));
        let item = |text: &str| Ok(Record::Item(JsonTree::known(text)));
        for text in [
            r#"{"a":1,"b":"]","l":[{},[2]]}"#,
            r#"{"l":[{},[2]],"a":1,"b":"]"}"#,
            "{\n \"a\": 1,\n \"l\": [\n  {},\n  [2]\n ],\n \"b\": \"]\"\n}\n",
            r#"[{"a":1,"l":[{},[2]],"b":"]"}]"#,
        ] {
            let found = read(text, Some("l"));
            let Ok(Record::Head(first)) = &found[0] else { panic!("{found:?}") };
            let expected = JsonTree::known(r#"{"a":1,"b":"]","l":[]}"#);
            assert_eq!(first.members().len(), 3);
            assert!(expected.members().iter().all(|(key, value)| first.get(key) == Some(value)), "{first}");
            assert_eq!(found[1..], [item("{}"), item("[2]"), Ok(Record::End)], "{text}");
        }
        assert_eq!(read("{\"a\":1}", Some("l")), [head(r#"{"a":1}"#), Ok(Record::End)]);
        assert_eq!(read("{\"l\":null}", Some("l"))[0], Ok(Record::Head(JsonTree::known(r#"{"l":null}"#))));
        assert_eq!(read("{} \n{}", None).len(), 2);
    }

    #[test]
    fn an_error_has_its_position() {
        assert_eq!(read("{\"a\":1}\n{\"a\" 1}", None)[1], Err("line 2, column 6: expected `:`".into()));
        assert_eq!(read("{\n\"a\": nan}", None)[0], Err("line 2, column 6: expected a value".into()));
        let cut = "line 1, column 8: expected the rest of the value instead of the end of the file";
        assert_eq!(read("{\"a\":[1", None)[0], Err(cut.into()));
        let torn = "{}\n{\"a\":[\n{}";
        let found = read(torn, None);
        assert_eq!(
            found[1],
            Err("line 2, column 7: expected the rest of the value instead of the end of the line".into())
        );
        let torn = read("{\"l\":[]}\n{\"l\":[{},\n{\"l\":[]}", Some("l"));
        assert_eq!(
            torn[2],
            Err("line 2, column 10: expected the rest of the object instead of the end of the line".into())
        );
        assert_eq!(read("hello", None)[0], Err("line 1, column 1: expected `{`".into()));
    }
}
