//! What is said when no rule fits.

use std::sync::Arc;

use serde_json::json;

use crate::message::ErrorReply;
use crate::protocol::code;

/// Nothing fits; what came closest, and why it does not.
///
/// ```text
/// no answer for tool get_forecast; closest was `an object with {city: "Oslo"}`: $.city: expected "Oslo", got "Bergen"
/// ```
pub(super) fn nothing_fits(what: &str, closest: Option<(Arc<str>, Vec<String>)>) -> ErrorReply {
    let Some((rule, why)) = closest else {
        return ErrorReply::new(code::INTERNAL_ERROR, format!("no answer for {what}: the mock declares none"));
    };
    let message = format!("no answer for {what}; closest was `{rule}`: {}", why.join("; "));
    ErrorReply::new(code::INTERNAL_ERROR, message).with_data(&json!({"closest": {"rule": &*rule, "mismatches": why}}))
}
