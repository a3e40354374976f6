//! Text on lines that fit.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Words on as few lines as they need; a word that is wider than the room has a line of its own.
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
