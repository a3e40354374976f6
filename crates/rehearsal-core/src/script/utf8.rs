//! The text of a file, if it has one.

use super::{Problem, ScriptError, Span};

/// The bytes of a file as text; what is no UTF-8 is told with its place, which is the same in a lossy reading of them.
pub fn text(file: &str, bytes: Vec<u8>) -> Result<String, ScriptError> {
    String::from_utf8(bytes).map_err(|error| {
        let (valid, bad) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let before = String::from_utf8_lossy(valid);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let at = Span {
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
            start: before.len(),
            length: char::REPLACEMENT_CHARACTER.len_utf8(),
        };
        let byte = bad.first().copied().unwrap_or_default();
        let hint = match error.as_bytes() {
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "this looks like UTF-16; save the file as UTF-8",
            _ => "save the file as UTF-8",
        };
        let problem = Problem::new(at, format!("not UTF-8: the byte 0x{byte:02X} begins no character")).hint(hint);
        ScriptError { file: file.to_owned(), problems: vec![problem] }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_is_no_text_is_told_with_its_place() {
        let error = text("a.yaml", b"server: x\n# \xc3\xa4 caf\xe9\n".to_vec()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.yaml:2:8: not UTF-8: the byte 0xE9 begins no character; save the file as UTF-8"
        );
        let error = text("a.yaml", b"\xff\xfes\0".to_vec()).unwrap_err();
        assert!(error.to_string().ends_with("UTF-16; save the file as UTF-8"), "{error}");
        assert_eq!(text("a.yaml", b"x".to_vec()).unwrap(), "x");
    }
}
