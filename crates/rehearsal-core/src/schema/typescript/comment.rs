//! Descriptions as JSDoc comments.

use super::name::is_invisible;

/// Maximum width of a line of a comment, in characters.
const MAX_WIDTH: usize = 110;
/// Minimum width of a line of a comment, however deep it is indented.
const MIN_WIDTH: usize = 40;
/// Maximum number of lines of one comment; the rest of a longer description is cut.
const MAX_LINES: usize = 60;

/// A comment above a declaration, each line indented by `indent` spaces and ended by a line break; empty without text and tags.
///
/// The text is data of a server: it cannot end the comment, and none of its lines becomes a tag. `tags` are lines of our own.
///
/// ```
/// # use rehearsal_core::schema::typescript::doc_comment;
/// assert_eq!(doc_comment("Reads a file", &[], 2), "  /** Reads a file */\n");
/// assert_eq!(doc_comment("Files: src/*/a", &["@deprecated".to_owned()], 0), "/**\n * Files: src/*\\/a\n * @deprecated\n */\n");
/// ```
pub fn doc_comment(text: &str, tags: &[String], indent: usize) -> String {
    let width = MAX_WIDTH.saturating_sub(indent + 3).max(MIN_WIDTH);
    let mut lines = text_lines(text, width);
    if lines.len() > MAX_LINES {
        lines.truncate(MAX_LINES - 1);
        lines.push("…".to_owned());
    }
    lines.extend(tags.iter().map(|tag| clean(tag)));
    let margin = " ".repeat(indent);
    match &lines[..] {
        [] => String::new(),
        [line] if line.chars().count() < width => format!("{margin}/** {line} */\n"),
        lines => {
            let line =
                |line: &String| if line.is_empty() { format!("{margin} *\n") } else { format!("{margin} * {line}\n") };
            let lines: String = lines.iter().map(line).collect();
            format!("{margin}/**\n{lines}{margin} */\n")
        }
    }
}

/// The lines of a description, wrapped, without tags and empty lines at both ends.
fn text_lines(text: &str, width: usize) -> Vec<String> {
    let is_line_end =
        |character: char| matches!(character, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let text = text.replace("\r\n", "\n");
    let mut lines: Vec<String> = Vec::new();
    for line in text.split(is_line_end).map(clean) {
        let is_second_empty = line.is_empty() && lines.last().is_none_or(String::is_empty);
        if !is_second_empty {
            wrap(&line, width, &mut lines);
        }
        if lines.len() > MAX_LINES {
            break;
        }
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    for line in &mut lines {
        if line.trim_start().starts_with('@') {
            *line = line.replacen('@', "\\@", 1);
        }
    }
    lines
}

/// A line without what would end the comment, and without characters that an editor does not show.
fn clean(line: &str) -> String {
    let visible = line.chars().map(|character| if is_invisible(character) { ' ' } else { character });
    visible.collect::<String>().trim_end().replace("*/", "*\\/")
}

/// Adds a line in parts of at most `width` characters, broken at spaces if there are any.
fn wrap(line: &str, width: usize, lines: &mut Vec<String>) {
    let mut rest = line;
    while let Some((limit, _)) = rest.char_indices().nth(width) {
        let at = rest[..limit].trim_end().rfind(' ').filter(|at| !rest[..*at].trim().is_empty()).unwrap_or(limit);
        lines.push(rest[..at].trim_end().to_owned());
        rest = rest[at..].trim_start();
    }
    lines.push(rest.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comment(text: &str) -> String {
        doc_comment(text, &[], 0)
    }

    #[test]
    fn a_description_cannot_end_its_comment_or_become_a_tag() {
        assert_eq!(comment("*/ declare const x: any; /*"), "/** *\\/ declare const x: any; /* */\n");
        assert_eq!(
            comment("a\n@ts-ignore\n  @deprecated b@c"),
            "/**\n * a\n * \\@ts-ignore\n *   \\@deprecated b@c\n */\n"
        );
        assert_eq!(comment("a\u{2028}*/b\r\nc\u{1b}[31m\u{202e}"), "/**\n * a\n * *\\/b\n * c [31m\n */\n");
        assert_eq!(comment("**//"), "/** **\\// */\n");
    }

    #[test]
    fn long_descriptions_are_wrapped_and_cut() {
        let long = comment(&format!("{}\n{}", "word ".repeat(60), "x".repeat(300)));
        assert!(long.lines().all(|line| line.chars().count() <= MAX_WIDTH), "{long}");
        assert_eq!(long.matches("word").count(), 60);
        assert_eq!(long.matches('x').count(), 300);
        let cut = comment(&"line\n".repeat(1000));
        assert_eq!(cut.lines().count(), MAX_LINES + 2);
        assert!(cut.ends_with(" * …\n */\n"), "{cut}");
    }

    #[test]
    fn empty_lines_are_kept_only_between_paragraphs() {
        assert_eq!(comment("\n\n a\n\n\nb\n\n"), "/**\n *  a\n *\n * b\n */\n");
        assert_eq!(comment(" \n"), "");
        assert_eq!(doc_comment("", &["@default 1".to_owned()], 2), "  /** @default 1 */\n");
    }
}
