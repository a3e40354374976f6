//! JSON for users and for programs.

use std::io::{self, Write};

use rehearsal::client::ServerResponse;
use rehearsal::core::json::RawJson;

use super::terminal::Terminal;
use super::terminal::lines;

/// Prints the result, or the error, exactly as the server wrote it.
pub(crate) fn raw_json(answer: &ServerResponse, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", substance(answer).as_ref().map_or("null", RawJson::as_str))
}

/// Prints the result with one member a line; numbers and strings keep their text.
pub(crate) fn pretty_json(answer: &ServerResponse, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    let pretty = substance(answer).as_ref().map_or("null".to_owned(), |json| indented(json.as_str()));
    match terminal.width {
        Some(_) => writeln!(out, "{}", lines(&pretty)),
        None => writeln!(out, "{pretty}"),
    }
}

fn substance(answer: &ServerResponse) -> Option<RawJson> {
    let key = if answer.error().is_some() { "error" } else { "result" };
    RawJson::parse(answer.bytes()).ok()?.field(key)
}

/// Indents JSON without reading it into anything that could round a number.
fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let (mut quoted, mut escaped) = (false, false);
    let mut rest = json.chars().peekable();
    while let Some(c) = rest.next() {
        if quoted {
            out.push(c);
            (quoted, escaped) = (escaped || c != '"', !escaped && c == '\\');
            continue;
        }
        match c {
            ' ' | '\t' | '\r' | '\n' => {}
            '{' | '[' => {
                while rest.next_if(|c| c.is_ascii_whitespace()).is_some() {}
                out.push(c);
                if let Some(end) = rest.next_if(|c| matches!(c, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                break_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c => {
                quoted = c == '"';
                out.push(c);
            }
        }
    }
    out
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_and_not_a_digit_is_changed() {
        let json = r#"{"n":1.10,"big":123456789012345678901234567890,"s":"a\"{b, c}\\","e":[],"o":{ },"l":[1,[true]]}"#;
        let expected = r#"{
  "n": 1.10,
  "big": 123456789012345678901234567890,
  "s": "a\"{b, c}\\",
  "e": [],
  "o": {},
  "l": [
    1,
    [
      true
    ]
  ]
}"#;
        assert_eq!(indented(json), expected);
        assert_eq!(indented(expected), expected);
        assert_eq!(indented(" null "), "null");
    }
}
