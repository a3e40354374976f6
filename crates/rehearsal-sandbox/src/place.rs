//! Where something is in the user's source, and the way there from a position in the worker.
//!
//! ```text
//! worker position          line 1-based, column in UTF-8 bytes, one line of wrapper above the code
//!   ─► generated code      line 0-based, column in UTF-16 units         (source map)
//!   ─► edited source       byte offset                                  (edits)
//!   ─► user's source       line and column, both 1-based, column in characters
//! ```

use serde::{Deserialize, Serialize};

use crate::compile::calls::CallIndex;
use crate::compile::edits::Edits;

/// A place in the user's source; lines and columns begin at 1, and a column counts characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcePlace {
    /// The line.
    pub line: u32,
    /// The column, if it is known exactly.
    pub column: Option<u32>,
    /// The callers, innermost first: line and column of each call that led here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<(u32, u32)>,
}

impl std::fmt::Display for SourcePlace {
    /// Prints `5:17`, or `5` if the column is unknown.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.column {
            Some(column) => write!(formatter, "{}:{column}", self.line),
            None => write!(formatter, "{}", self.line),
        }
    }
}

/// Text with the offsets at which its lines begin.
#[derive(Debug, Clone)]
pub(crate) struct LineIndex {
    text: String,
    starts: Vec<u32>,
}

impl LineIndex {
    /// Indexes `text`; a line ends at `\n`, `\r`, `\r\n`, U+2028 or U+2029, as in JavaScript.
    pub(crate) fn new(text: &str) -> LineIndex {
        let mut starts = vec![0];
        let mut characters = text.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            let followed = matches!(characters.peek(), Some((_, '\n')));
            if matches!(character, '\n' | '\u{2028}' | '\u{2029}') || character == '\r' && !followed {
                starts.push((at + character.len_utf8()) as u32);
            }
        }
        LineIndex { text: text.to_owned(), starts }
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Line `line` (0-based) with its line break; empty behind the end.
    fn line(&self, line: u32) -> &str {
        let Some(start) = self.starts.get(line as usize) else { return "" };
        let end = self.starts.get(line as usize + 1).copied().unwrap_or(self.text.len() as u32);
        &self.text[*start as usize..end as usize]
    }

    /// The line (1-based) without its line break.
    pub(crate) fn line_text(&self, line: u32) -> &str {
        self.line(line.saturating_sub(1)).trim_end_matches(['\n', '\r', '\u{2028}', '\u{2029}'])
    }

    /// Line and column of a byte offset, both 1-based, the column in characters.
    pub(crate) fn position(&self, offset: u32) -> (u32, u32) {
        let mut offset = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|start| *start as usize <= offset) - 1;
        // Editors do not show a byte order mark.
        let before = self.text[self.starts[line] as usize..offset].trim_start_matches('\u{feff}');
        let column = before.chars().count();
        (line as u32 + 1, column as u32 + 1)
    }

    /// The place of a byte offset, without callers.
    pub(crate) fn place(&self, offset: u32) -> SourcePlace {
        let (line, column) = self.position(offset);
        SourcePlace { line, column: Some(column), via: Vec::new() }
    }

    /// The byte offset of a 0-based line and a column in UTF-16 units.
    fn offset_of_utf16(&self, line: u32, column: u32) -> Option<u32> {
        let start = *self.starts.get(line as usize)?;
        let mut units = 0;
        for (at, character) in self.line(line).char_indices() {
            if units >= column {
                return Some(start + at as u32);
            }
            units += character.len_utf16() as u32;
        }
        Some(start + self.line(line).len() as u32)
    }
}

/// A position as the worker reports it: both 1-based, the column in UTF-8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkerPosition {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// Reads the positions of a stack as the prelude writes them: `3:14,8:2`.
pub(crate) fn read_positions(text: &str) -> Vec<WorkerPosition> {
    let position = |part: &str| {
        let (line, column) = part.split_once(':')?;
        Some(WorkerPosition { line: line.parse().ok()?, column: column.parse().ok()? })
    };
    text.split(',').map_while(position).collect()
}

/// Reads the positions in the `stack` of an exception: `    at f (plan.ts:3:14)`.
pub(crate) fn read_stack(stack: &str) -> Vec<WorkerPosition> {
    let position = |line: &str| {
        let (_, rest) = line.rsplit_once(crate::protocol::PLAN_FILE)?;
        read_positions(rest.strip_prefix(':')?.trim_end_matches(')')).first().copied()
    };
    stack.lines().filter_map(position).take(8).collect()
}

/// One token of the source map: where it is in the generated code and in the edited source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MapToken {
    pub(crate) generated: (u32, u32),
    pub(crate) source: (u32, u32),
}

/// The way from positions in the worker to places in the user's source.
#[derive(Debug, Clone)]
pub(crate) struct PlaceMap {
    pub(crate) source: LineIndex,
    pub(crate) edited: LineIndex,
    pub(crate) generated: LineIndex,
    pub(crate) tokens: Vec<MapToken>,
    pub(crate) edits: Edits,
    pub(crate) calls: CallIndex,
}

impl PlaceMap {
    /// The user's source.
    pub(crate) fn source(&self) -> &str {
        self.source.text()
    }

    /// Line `line` (1-based) of the user's source, for a message that shows it.
    pub(crate) fn source_line(&self, line: u32) -> &str {
        self.source.line_text(line)
    }

    /// The offset in the user's source that belongs to a position in the worker.
    pub(crate) fn offset(&self, position: WorkerPosition) -> Option<u32> {
        // The first line is the wrapper, and lines begin at 1.
        let line = position.line.checked_sub(2)?;
        let text = self.generated.line(line);
        let bytes = (position.column.checked_sub(1)? as usize).min(text.len());
        let before = text.char_indices().take_while(|(at, _)| *at < bytes);
        let column: u32 = before.map(|(_, character)| character.len_utf16() as u32).sum();
        let after = self.tokens.partition_point(|token| token.generated <= (line, column));
        let token = self.tokens.get(after.checked_sub(1)?)?;
        if token.generated.0 != line {
            return None;
        }
        let edited = self.edited.offset_of_utf16(token.source.0, token.source.1)?;
        Some(self.edits.original(edited))
    }

    /// The place of an exception: the innermost frame, with the callers behind it.
    pub(crate) fn stack_place(&self, stack: &[WorkerPosition]) -> Option<SourcePlace> {
        let first = self.offset(*stack.first()?)?;
        let place = self.source.place(first);
        Some(SourcePlace { via: self.callers(first, &stack[1..]), ..place })
    }

    /// The place of a call, by the two-places method.
    ///
    /// `member` is the stack in which the plan read the tool from its server. If that member is the callee of a call,
    /// the call is found exactly. Otherwise (an alias, a callback) `call` decides: the stack inside the call, whose
    /// position is the call or something in its arguments.
    pub(crate) fn call_place(
        &self,
        server: &str,
        tool: &str,
        member: &[WorkerPosition],
        call: &[WorkerPosition],
    ) -> Option<SourcePlace> {
        let member_offset = member.first().and_then(|position| self.offset(*position));
        if let Some(offset) = member_offset
            && let Some(start) = self.calls.with_callee_at(offset, tool)
        {
            let place = self.source.place(start);
            return Some(SourcePlace { via: self.callers(offset, &member[1..]), ..place });
        }
        let offset = call.first().and_then(|position| self.offset(*position))?;
        let via = self.callers(offset, &call[1..]);
        let place = match self.calls.calling(offset, server, tool) {
            Some(start) => self.source.place(start),
            None => match member_offset.and_then(|member| self.calls.tool_as_argument(member, offset)) {
                Some(start) => self.source.place(start),
                None => {
                    let start = self.calls.enclosing(offset).unwrap_or(offset);
                    SourcePlace { column: None, ..self.source.place(start) }
                }
            },
        };
        Some(SourcePlace { via, ..place })
    }

    /// The calls that led to the frame at `inner`, innermost first.
    fn callers(&self, inner: u32, frames: &[WorkerPosition]) -> Vec<(u32, u32)> {
        let mut inner = inner;
        let mut via = Vec::new();
        for offset in frames.iter().map_while(|frame| self.offset(*frame)) {
            via.push(self.source.position(self.calls.caller(offset, inner).unwrap_or(offset)));
            inner = offset;
        }
        via
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_every_line_break_of_javascript_counts() {
        let index = LineIndex::new("é😀ß = 1\r\nb\u{2028}c\rd");
        assert_eq!(index.position(0), (1, 1));
        assert_eq!(index.position("é😀".len() as u32), (1, 3));
        assert_eq!(index.position(index.text().find('b').unwrap() as u32), (2, 1));
        assert_eq!(index.position(index.text().find('c').unwrap() as u32), (3, 1));
        assert_eq!(index.position(index.text().find('d').unwrap() as u32), (4, 1));
        assert_eq!(index.line_text(1), "é😀ß = 1");
        assert_eq!(LineIndex::new("\u{feff}a").position(3), (1, 1));
        assert_eq!(index.offset_of_utf16(0, 3), Some("é😀".len() as u32));
    }

    #[test]
    fn a_stack_is_read_by_the_name_of_the_plan() {
        let positions = read_stack("    at f (plan.ts:3:14)\n    at map (native)\n    at <anonymous> (plan.ts:8:2)\n");
        assert_eq!(positions, [WorkerPosition { line: 3, column: 14 }, WorkerPosition { line: 8, column: 2 }]);
        assert_eq!(read_positions("3:14,8:2,x"), positions);
        assert_eq!(read_positions(""), []);
    }
}
