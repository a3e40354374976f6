//! What is said when no rule fits.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::matcher::{MAX_MISMATCHES, first_mismatches};
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
    let message = format!("no answer for {what}; closest was `{rule}`: {}", first_mismatches(&why).join("; "));
    let data = json!({"closest": with_mismatches(json!({"rule": &*rule}), &why)});
    ErrorReply::new(code::INTERNAL_ERROR, message).with_data(&data)
}

/// The first mismatches as members of an error's data, and how many others there are.
///
/// ```text
/// {"recording":"session a, call 3","mismatches":[{"path":"$.params.arguments.city",…},…],"more":49900}
/// ```
pub(super) fn with_mismatches(mut data: Value, mismatches: &[impl Serialize]) -> Value {
    let (first, others) = mismatches.split_at(mismatches.len().min(MAX_MISMATCHES));
    data["mismatches"] = json!(first);
    if !others.is_empty() {
        data["more"] = others.len().into();
    }
    data
}
