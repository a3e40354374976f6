//! The terminal: its colours and width, and functions that make text safe and short enough for it.
//!
//! Control characters of a server become `�`: a server must not move the cursor, rename the window, or hide its output.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The styles of coloured text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    /// The word `error`.
    pub(crate) error: Style,
    /// The word `hint`.
    pub(crate) hint: Style,
    /// The heading of a table.
    pub(crate) heading: Style,
    /// The name of a tool, a prompt or a resource.
    pub(crate) name: Style,
    /// The mark in front of a message.
    pub(crate) mark: Style,
}

impl Palette {
    /// No colours.
    pub(crate) const PLAIN: Palette = Palette {
        error: Style::new(),
        hint: Style::new(),
        heading: Style::new(),
        name: Style::new(),
        mark: Style::new(),
    };

    /// Colours, for terminals.
    pub(crate) const COLOURED: Palette = Palette {
        error: AnsiColor::Red.on_default().bold(),
        hint: AnsiColor::Cyan.on_default().bold(),
        heading: Style::new().bold(),
        name: AnsiColor::Green.on_default(),
        mark: AnsiColor::Blue.on_default().bold(),
    };
}

/// The width of a terminal that does not report its width.
pub(crate) const USUAL_WIDTH: usize = 80;

/// How text is shown on a stream: its colours and its width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// The colours.
    pub(crate) palette: Palette,
    /// The number of columns; `None` if the stream is not a terminal and text is printed unchanged.
    pub(crate) width: Option<usize>,
}

const CONTROL_REPLACEMENT: char = '\u{fffd}';

/// Replaces control characters, for a text on one line.
pub(crate) fn sanitize_line(text: &str) -> Cow<'_, str> {
    replaced(text, char::is_control)
}

/// Replaces control characters except line ends and tabs. A carriage return without a line feed is no line end: the text
/// after it would overwrite the line.
pub(super) fn lines(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains('\r') {
        return replaced(text, hidden);
    }
    Cow::Owned(text.split("\r\n").map(|part| replaced(part, hidden)).collect::<Vec<_>>().join("\r\n"))
}

fn replaced(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.contains(&hidden) {
        Cow::Owned(text.chars().map(|c| if hidden(c) { CONTROL_REPLACEMENT } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Wraps words to as few lines as possible; a word that is too wide has its own line.
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

/// Wraps prose to at most `most` lines; `…` replaces the rest.
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

/// Cuts a text to a width; `…` replaces the rest.
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
    fn a_text_cannot_overwrite_its_line() {
        assert_eq!(lines("a\r\nb\n\tc"), "a\r\nb\n\tc");
        assert_eq!(lines("shown\rforged\x1b[2J\r"), "shown\u{fffd}forged\u{fffd}[2J\u{fffd}");
    }

    #[test]
    fn prose_is_cut_after_the_last_line() {
        let text = "Takes its time and reports its progress";
        assert_eq!(shortened(text, 20, 3), ["Takes its time and", "reports its progress"]);
        assert_eq!(shortened(text, 10, 2), ["Takes its", "time and …"]);
        assert_eq!(shortened("unbreakable", 6, 2), ["unbre…"]);
        assert_eq!(shortened("  ", 6, 2), Vec::<String>::new());
    }
}
