//! Changes to a text, applied at the end so that everything else keeps its bytes.

use std::ops::Range;

use super::pseudonym::pseudonym;

/// A piece of a text and what takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) with: String,
}

/// The text with every piece replaced.
pub(super) fn apply(text: &[u8], mut edits: Vec<Edit>) -> Vec<u8> {
    edits.sort_by_key(|edit| (edit.range.start, std::cmp::Reverse(edit.range.end)));
    let mut done = 0;
    let mut out = Vec::with_capacity(text.len());
    let mut edits = edits.into_iter().peekable();
    while let Some(mut edit) = edits.next() {
        // What lies in another is replaced with it; of two that overlap by halves nothing must be left over.
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
    use super::*;

    #[test]
    fn edits_that_overlap_leave_nothing_of_either() {
        let edit = |range: Range<usize>| Edit { range, with: "*".to_owned() };
        assert_eq!(apply(b"0123456789", vec![edit(7..8), edit(2..6), edit(3..4)]), b"01*6*89");
        let halves = apply(b"0123456789", vec![edit(2..6), edit(4..8)]);
        assert_eq!(halves, format!("01{}89", pseudonym("234567")).into_bytes());
    }
}
