//! Text that comes from a server, made safe to look at.
//!
//! Control characters become `�`: a server must not move our cursor, rename our window, or hide what it said.

use std::borrow::Cow;

const INSTEAD: char = '\u{fffd}';

/// A text that is to stay on one line.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    replaced(text, char::is_control)
}

/// A text of many lines.
pub(super) fn lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

fn replaced(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.contains(&hidden) {
        Cow::Owned(text.chars().map(|c| if hidden(c) { INSTEAD } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}
