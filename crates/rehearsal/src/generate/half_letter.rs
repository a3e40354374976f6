//! Letters of which only a half was recorded.

use rehearsal_core::json;
use rehearsal_core::trace::{Call, Inside, What};

/// Whether a call, or something that happened meanwhile, has half a letter in it: JSON can say one half of a pair of
/// surrogates (`\ud83d`), and no text of what is generated can.
pub(super) fn has_half_letter(call: &Call, inside: &[Inside]) -> bool {
    let in_call = |call: &Call| {
        let mut messages = [Some(&call.request.message), call.response.as_ref().map(|it| &it.message)].into_iter();
        messages.any(|message| message.is_some_and(|it| json::has_half_letter(it.raw())))
    };
    let in_thing = |thing: &Inside| match thing {
        Inside::Call(call) => in_call(call),
        Inside::Entry(entry) => {
            matches!(&entry.what, What::Message { message, .. } if json::has_half_letter(message.raw()))
        }
    };
    in_call(call) || inside.iter().any(in_thing)
}
