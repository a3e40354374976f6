//! Names and string literals of TypeScript.

use std::fmt::Write;

/// A name of a member: quoted only if it is no identifier.
///
/// ```
/// # use rehearsal_core::schema::typescript::property_name;
/// assert_eq!(property_name("read_file"), "read_file");
/// assert_eq!(property_name("issue.get"), r#""issue.get""#);
/// ```
pub fn property_name(name: &str) -> String {
    let mut bytes = name.bytes();
    let begins = bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || b"_$".contains(&first));
    let is_identifier = begins && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_$".contains(&byte));
    // A method with the name `new` would be a constructor.
    if is_identifier && name != "new" { name.to_owned() } else { quoted(name) }
}

/// A string literal. Characters that an editor does not show, or shows in another order, are escaped.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            _ if is_invisible(character) => {
                write!(quoted, "\\u{:04x}", u32::from(character)).expect("a String accepts all text");
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether a character is a control character, a line separator, or changes the direction of text.
pub(super) fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A text as the name of a type: its words, each with a capital letter.
///
/// ```
/// # use rehearsal_core::schema::typescript::pascal_case;
/// assert_eq!(pascal_case("my-server.read_file"), "MyServerReadFile");
/// ```
pub fn pascal_case(text: &str) -> String {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let capitalized = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    words.map(capitalized).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_quoted_only_if_it_is_no_identifier() {
        for (name, written) in [
            ("a", "a"),
            ("_a$1", "_a$1"),
            ("delete", "delete"),
            ("constructor", "constructor"),
            ("new", "\"new\""),
            ("", "\"\""),
            ("1st", "\"1st\""),
            ("get-sum", "\"get-sum\""),
            ("größe", "\"größe\""),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("a\nb\u{2028}\u{202e}\u{7f}", r#""a\nb\u2028\u202e\u007f""#),
        ] {
            assert_eq!(property_name(name), written);
        }
    }
}
