//! Who the server says it is.

use serde_json::Value;

use super::Call;
use crate::exchange::Side;
use crate::message::{Method, Reply};
use crate::protocol::meta;

/// The name, title and version of the server, where it introduces itself in the answer to this call: since 2026-07-28 it
/// may do so in any.
pub(super) fn identity(call: &Call) -> Option<Vec<(String, Value)>> {
    let method = call.request.message.method()?;
    let Reply::Result(result) = &call.response.as_ref()?.message.as_response()?.reply else { return None };
    let is_first = *method == Method::INITIALIZE || *method == Method::DISCOVER;
    let info = result.at(&["_meta", meta::SERVER_INFO]);
    let info = info.or_else(|| result.field("serverInfo").filter(|_| is_first));
    let info = info.filter(|_| call.asker == Side::Client)?;
    let mut facts = Vec::new();
    for name in ["name", "title", "version"] {
        if let Some(text) = info.field(name).and_then(|value| value.text()) {
            facts.push((name.to_owned(), Value::from(text)));
        }
    }
    (!facts.is_empty()).then_some(facts)
}
