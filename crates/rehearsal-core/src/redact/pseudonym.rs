//! Pseudonyms, which take the place of secrets.

use std::ops::Range;

const OPEN: &str = "[redacted:";
const DIGITS: usize = 8;
/// The offset of pseudonyms for numbers. Real quantities hardly ever have this size, and a double holds it exactly.
const NUMBERS: u64 = 999_000_000_000_000;

/// The pseudonym of a secret text: `[redacted:3f9a2c1b]`.
///
/// It depends only on the secret, so equal secrets have equal pseudonyms in every run. It needs no escape in JSON, in a
/// header or in a URL's query. It has 32 bits: too few to recover a key, enough to distinguish secrets. A reader who
/// guesses a weak password can confirm the guess, so a trace with pseudonyms of weak passwords must not be published.
pub fn pseudonym(secret: &str) -> String {
    format!("{OPEN}{:08x}]", digest(secret))
}

/// The pseudonym of a secret number.
pub(super) fn number(secret: &str) -> String {
    (NUMBERS + u64::from(digest(secret))).to_string()
}

/// Whether a text is a pseudonym already, so that a second redaction changes nothing.
pub(super) fn is_pseudonym(text: &str) -> bool {
    length(text) == Some(text.len())
}

/// The length of the pseudonym that `text` begins with.
pub(super) fn length(text: &str) -> Option<usize> {
    let digits = text.strip_prefix(OPEN)?.as_bytes();
    let right = digits.get(..DIGITS)?.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (right && digits.get(DIGITS) == Some(&b']')).then_some(OPEN.len() + DIGITS + 1)
}

/// The ranges of the pseudonyms in a text.
pub(super) fn all(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices(OPEN).filter_map(|(at, _)| Some(at..at + length(&text[at..])?))
}

/// Whether a text, or JSON with texts and numbers, contains a pseudonym.
pub fn has_pseudonym(text: &str) -> bool {
    let is_word = |char: char| char.is_alphanumeric() || matches!(char, '.' | '+' | '-' | '_');
    all(text).next().is_some() || text.split(|char| !is_word(char)).any(is_number)
}

/// Whether this number is a pseudonym already.
pub(super) fn is_number(text: &str) -> bool {
    text.parse().is_ok_and(|number: u64| (NUMBERS..=NUMBERS + u64::from(u32::MAX)).contains(&number))
}

/// FNV-1a with a final mix, so that the upper half depends on every bit; the same on every machine and in every
/// version.
fn digest(secret: &str) -> u32 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = secret.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    u32::try_from(hash >> 32).expect("half of 64 bits are 32")
}

/// A range of a text and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) with: String,
}

/// The text with every range replaced.
pub(super) fn apply(text: &[u8], mut edits: Vec<Edit>) -> Vec<u8> {
    edits.sort_by_key(|edit| (edit.range.start, std::cmp::Reverse(edit.range.end)));
    let mut done = 0;
    let mut out = Vec::with_capacity(text.len());
    let mut edits = edits.into_iter().peekable();
    while let Some(mut edit) = edits.next() {
        // An edit inside another is replaced with it; overlapping edits are joined, so that nothing of a secret is
        // left.
        while let Some(other) = edits.next_if(|other| other.range.start < edit.range.end) {
            if other.range.end > edit.range.end {
                edit.range.end = other.range.end;
                edit.with = pseudonym(&String::from_utf8_lossy(&text[edit.range.clone()]));
            }
        }
        out.extend_from_slice(&text[done..edit.range.start]);
        out.extend_from_slice(edit.with.as_bytes());
        done = edit.range.end;
    }
    out.extend_from_slice(&text[done..]);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_redacted_text_is_recognized() {
        assert!(has_pseudonym(&format!(r#"{{"password":"Bearer {}"}}"#, pseudonym("hunter2"))));
        assert!(!has_pseudonym("[redacted:none]"));
        assert!(has_pseudonym(&format!(r#"{{"pin":{}}}"#, number("4711"))));
        assert!(has_pseudonym(&format!(r#"{{"text":"{{\"pin\":{}}}"}}"#, number("4711"))));
        assert!(!has_pseudonym(&format!(r#"{{"pin":4711,"at":{0}.5,"id":"a-{0}","more":1{0}}}"#, number("4711"))));
    }

    #[test]
    fn pseudonyms_are_stable_because_files_contain_them() {
        assert_eq!(pseudonym("hunter2"), "[redacted:2da4b396]");
        assert_eq!(pseudonym(""), "[redacted:efd01f60]");
        assert!(is_number(&number("1234")));
    }

    proptest! {
        #[test]
        fn a_pseudonym_is_recognized(secret: String, other: String) {
            prop_assert!(is_pseudonym(&pseudonym(&secret)));
            prop_assert!(is_number(&number(&secret)));
            prop_assert_eq!(pseudonym(&secret) == pseudonym(&other), secret == other);
        }
    }

    #[test]
    fn edits_that_overlap_leave_nothing_of_either() {
        let edit = |range: Range<usize>| Edit { range, with: "*".to_owned() };
        assert_eq!(apply(b"0123456789", vec![edit(7..8), edit(2..6), edit(3..4)]), b"01*6*89");
        let halves = apply(b"0123456789", vec![edit(2..6), edit(4..8)]);
        assert_eq!(halves, format!("01{}89", pseudonym("234567")).into_bytes());
    }
}
