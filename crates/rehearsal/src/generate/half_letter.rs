//! Letters of which only a half was recorded.

use rehearsal_core::message::Message;
use rehearsal_core::trace::{Call, Inside, What};

/// Whether a call, or something that happened meanwhile, has half a letter in it: JSON can say one half of a pair of
/// surrogates (`\ud83d`), and no text of what is generated can.
pub(super) fn has_half_letter(call: &Call, inside: &[Inside]) -> bool {
    let in_call = |call: &Call| {
        let mut messages = [Some(&call.request.message), call.response.as_ref().map(|it| &it.message)].into_iter();
        messages.any(|message| message.is_some_and(in_message))
    };
    let in_thing = |thing: &Inside| match thing {
        Inside::Call(call) => in_call(call),
        Inside::Entry(entry) => matches!(&entry.what, What::Message { message, .. } if in_message(message)),
    };
    in_call(call) || inside.iter().any(in_thing)
}

fn in_message(message: &Message) -> bool {
    std::str::from_utf8(message.raw()).is_ok_and(in_json)
}

fn in_json(mut text: &str) -> bool {
    while let Some(at) = text.find('\\') {
        let escape = &text[at..];
        let read = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => return true,
            (Some(_), _) => 6,
            (None, _) => 2,
        };
        text = escape.get(read..).unwrap_or_default();
    }
    false
}

/// The number of an escape `\u0000` at the beginning of a text.
fn unit(text: &str) -> Option<u32> {
    u32::from_str_radix(text.get(..6)?.strip_prefix("\\u")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_letter_is_found_and_nothing_else() {
        let halves = [r#""\ud83d""#, r#""a\\\uDE00""#, r#""\ud83d\ud83d\ude00""#, r#""\ud83d \ude00""#, r#""\ud83dé""#];
        for text in halves {
            assert!(in_json(text), "{text}");
        }
        for text in [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\u00e9 \n \\""#, "\"😀\"", r#""\\\\ud83d""#] {
            assert!(!in_json(text), "{text}");
        }
    }
}
