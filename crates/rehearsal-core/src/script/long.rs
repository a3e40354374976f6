//! Numbers in a file that a value cannot hold.
//!
//! The reader of YAML gives the nearest float and not the text. So the beginning of such a number is written as another
//! character of the same length, which makes it a text and leaves every place where it is; what reads the value knows it.

use super::tree::{Node, Tree};
use super::{Located, Span};
use crate::json::is_long;

/// What a number is written with.
const LETTERS: &[u8; 15] = b"0123456789+-.eE";
/// Where Unicode has no characters of its own, each of three bytes.
const FIRST: u32 = 0xe000;
/// How much of a number one of them stands for.
const HEAD: usize = 3;

/// How many numbers that are beyond any float a file may have: the reader stops at each.
const BEYOND: usize = 100;

/// The text with its long numbers disguised; `None` if it has none.
pub(super) fn disguised(text: &str) -> Option<String> {
    let is_used = |c: char| (FIRST..=0xf8ff).contains(&u32::from(c));
    if !may_have(text) || text.contains(is_used) {
        return None;
    }
    let mut disguised = text.to_owned();
    for _ in 0..BEYOND {
        match Tree::of(&disguised) {
            Ok(tree) => {
                let mut places = Vec::new();
                numbers(&tree.0, &mut |at| places.push(at));
                places.into_iter().for_each(|at| disguise(&mut disguised, at));
                break;
            }
            Err(error) => {
                let before = disguised.clone();
                disguise(&mut disguised, error.location().map_or(Span::START, Span::of));
                if disguised == before {
                    break;
                }
            }
        }
    }
    (disguised != text).then_some(disguised)
}

/// Disguises what stands at a place, if it is a long number.
fn disguise(text: &mut String, at: Span) {
    let Some(digits) = text.get(at.start..at.start.saturating_add(at.length)).filter(|digits| is_long(digits)) else {
        return;
    };
    let head = digits.bytes().take(HEAD).filter_map(|byte| LETTERS.iter().position(|letter| *letter == byte));
    let head = head.fold(0, |sum, letter| sum * LETTERS.len() + letter);
    let stand_in = u32::try_from(head).ok().and_then(|head| char::from_u32(FIRST + head));
    if let Some(stand_in) = stand_in {
        text.replace_range(at.start..at.start + HEAD, stand_in.encode_utf8(&mut [0; HEAD]));
    }
}

/// The number that a text is in disguise.
pub(super) fn unmasked(text: &str) -> Option<String> {
    let first = text.chars().next()?;
    let mut head = usize::try_from(u32::from(first).checked_sub(FIRST)?).ok()?;
    let mut letters = [0; HEAD];
    for letter in letters.iter_mut().rev() {
        *letter = LETTERS[head % LETTERS.len()];
        head /= LETTERS.len();
    }
    let digits = format!("{}{}", std::str::from_utf8(&letters).ok()?, &text[first.len_utf8()..]);
    (head == 0 && is_long(&digits)).then_some(digits)
}

/// A quick look: whether something is as long as a long number, or has an exponent of three digits.
fn may_have(text: &str) -> bool {
    let pieces = text.split(|c: char| !c.is_ascii() || !LETTERS.contains(&(c as u8)));
    let large = |piece: &str| piece.split(['e', 'E']).nth(1).is_some_and(|power| power.len() > 2);
    pieces.into_iter().any(|piece| piece.len() > 15 || large(piece))
}

fn numbers(node: &Located<Node>, found: &mut impl FnMut(Span)) {
    match &node.value {
        Node::Leaf => {}
        Node::Float => found(node.at),
        Node::List(items) => items.iter().for_each(|item| numbers(item, found)),
        Node::Keys(keys) => keys.iter().for_each(|(_, value)| numbers(value, found)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::json::{RawJson, to_json};
    use crate::script::read;

    #[test]
    fn a_file_keeps_the_digits_of_its_numbers() {
        let file = "a: 12345678901234567890123\nb: [-1e400, 1.5, 0.12345678901234567890, é]\nc: {d: 1, e: 12345678901234567890124} # 12345678901234567890123\nf: \"12345678901234567890123\"\ng: |-\n  12345678901234567890123\nh: &x 98765432109876543210987\ni: *x\n";
        let value: Value = read("m.yaml", file).unwrap();
        let text = "12345678901234567890123";
        assert_eq!(
            to_json(&value),
            format!(
                r#"{{"a":{text},"b":[-1e400,1.5,0.12345678901234567890,"é"],"c":{{"d":1,"e":12345678901234567890124}},"f":"{text}","g":"{text}","h":98765432109876543210987,"i":98765432109876543210987}}"#
            )
        );
        assert_eq!(value["f"], json!(text));
    }

    #[test]
    fn a_long_number_is_no_text() {
        let error =
            read::<std::collections::BTreeMap<String, String>>("m.yaml", "a: 12345678901234567890123\n").unwrap_err();
        assert_eq!(error.problems[0].message, "expected text, got the number `12345678901234567890123`");
        assert_eq!((error.problems[0].at.line, error.problems[0].at.column), (1, 4));
    }

    #[test]
    fn what_is_written_is_read() {
        let value =
            RawJson::parse(br#"{"a":[12345678901234567890123,1e400,"12345678901234567890123"],"b":1.5}"#).unwrap();
        let value = value.exact().unwrap();
        let file = super::super::page::written(&[super::super::page::Key::new("v", value.clone())]);
        let again: Value = read("m.yaml", &file).unwrap();
        assert_eq!(again, json!({ "v": value }), "{file}");
    }
}
