//! What was said in one version, said in another.
//!
//! What a version has is in the table of shapes: methods, error codes and fields. What it does not have is left out, or said in its way.

use serde_json::Value;

use crate::answer::shape::{self, ResultType};
use crate::message::{ErrorReply, Method, Reply};
use crate::protocol::{Era, Revision, code};
use crate::shape::{forget_in_notification, forget_in_result, has_code, may_be_said};

/// A recorded answer in the version that a client speaks; where that is the one that it was recorded in, as it was.
pub fn adapted(reply: &Reply, method: &Method, from: Option<Revision>, to: Revision, info: &Value) -> Reply {
    if from == Some(to) {
        return reply.clone();
    }
    match reply {
        Reply::Error(error) => Reply::Error(refused(error, method, from, to)),
        Reply::Result(raw) => {
            let result = raw.edit(|result| complete(result, method.as_str(), from, to, info));
            Reply::Result(result.unwrap_or_else(|_| raw.clone()))
        }
    }
}

/// A recorded notification in the version that a client speaks; `None` where that has no such thing.
pub fn adapted_notification(method: &Method, mut params: Value, from: Option<Revision>, to: Revision) -> Option<Value> {
    if from != Some(to) {
        if !may_be_said(method.as_str(), to) {
            return None;
        }
        forget_in_notification(method.as_str(), &mut params, to);
    }
    Some(params)
}

/// An error with the code that a version has for it: a resource that is not there is another one since 2026-07-28, and
/// what the version has no code for is just an error.
fn refused(error: &ErrorReply, method: &Method, from: Option<Revision>, to: Revision) -> ErrorReply {
    let other_era = from.is_none_or(|from| from.era() != to.era());
    let names_uri = || error.data.as_ref().is_some_and(|data| data.field("uri").is_some());
    let is_about_one = || method.as_str().starts_with("resources/") && names_uri();
    let is_missing = error.code == code::RESOURCE_NOT_FOUND || error.code == code::INVALID_PARAMS && is_about_one();
    let code = match (is_missing && other_era, has_code(error.code, to)) {
        (true, _) => to.resource_not_found(),
        // It is about the version of whoever was refused.
        (false, true) if error.code == code::UNSUPPORTED_VERSION => code::INTERNAL_ERROR,
        (false, true) => error.code,
        (false, false) => code::INTERNAL_ERROR,
    };
    ErrorReply { code, ..error.clone() }
}

fn complete(result: &mut Value, method: &str, from: Option<Revision>, to: Revision, info: &Value) {
    if !result.is_object() {
        return;
    }
    let was_legacy = from.is_some_and(|from| from.era() == Era::Legacy);
    if to.era() == Era::Legacy && !was_legacy {
        shape::unwrapped(result);
    }
    match method {
        "tools/call" if result.get("content").is_some() || result.get("structuredContent").is_some() => {
            shape::called(result, to);
        }
        "prompts/get" => shape::phrased(result, to),
        _ => {}
    }
    shape::envelope(result, ResultType::Complete, method, to, info);
    forget_in_result(method, result, to);
}
