//! The terminal that data is shown on: its colours, its width, and texts that are safe and short enough for it.
//!
//! Control characters of a server become `�`: a server must not move our cursor, rename our window, or hide what it sent.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The styles of everything that is printed in colour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    /// The word `error`.
    pub(crate) error: Style,
    /// The word `hint`.
    pub(crate) hint: Style,
    /// The heading of a table.
    pub(crate) heading: Style,
    /// What one would type to use something: the name of a tool.
    pub(crate) name: Style,
    /// The mark in front of a line of the wire.
    pub(crate) mark: Style,
}

impl Palette {
    /// No colour at all.
    pub(crate) const PLAIN: Palette = Palette {
        error: Style::new(),
        hint: Style::new(),
        heading: Style::new(),
        name: Style::new(),
        mark: Style::new(),
    };

    /// For terminals.
    pub(crate) const COLOURED: Palette = Palette {
        error: AnsiColor::Red.on_default().bold(),
        hint: AnsiColor::Cyan.on_default().bold(),
        heading: Style::new().bold(),
        name: AnsiColor::Green.on_default(),
        mark: AnsiColor::Blue.on_default().bold(),
    };
}

/// The width of a terminal that reports none.
pub(crate) const USUAL_WIDTH: usize = 80;

/// How text is shown on a stream: its colours and its width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// In which colours.
    pub(crate) palette: Palette,
    /// How many columns a terminal has; `None` where it is not a terminal, and text stays as it is.
    pub(crate) width: Option<usize>,
}

const CONTROL_REPLACEMENT: char = '\u{fffd}';

/// A text that is to stay on one line.
pub(crate) fn sanitize_line(text: &str) -> Cow<'_, str> {
    replaced(text, char::is_control)
}

/// A text of many lines.
pub(super) fn lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

fn replaced(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.contains(&hidden) {
        Cow::Owned(text.chars().map(|c| if hidden(c) { CONTROL_REPLACEMENT } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Wraps words to as few lines as possible; a word that is wider than the room has its own line.
pub(super) fn wrapped<'a>(words: impl IntoIterator<Item = &'a str>, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Prose on at most `most` lines; `…` ends it where that is not all.
pub(super) fn shortened(text: &str, room: usize, most: usize) -> Vec<String> {
    let mut lines = wrapped(text.split_whitespace(), room);
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            last.push_str(" …");
        }
    }
    lines.iter().map(|line| cut(line, room)).collect()
}

/// As much of a text as fits, ended with `…` where that is not all.
pub(super) fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or_default();
        used <= room
    };
    let mut kept: String = text.chars().take_while(fits).collect();
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_ends_where_the_room_does() {
        let text = "Takes its time and tells how far it is";
        assert_eq!(shortened(text, 20, 3), ["Takes its time and", "tells how far it is"]);
        assert_eq!(shortened(text, 10, 2), ["Takes its", "time and …"]);
        assert_eq!(shortened("unbreakable", 6, 2), ["unbre…"]);
        assert_eq!(shortened("  ", 6, 2), Vec::<String>::new());
    }
}
