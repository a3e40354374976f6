//! What was said in one version, said in another.

use serde_json::{Map, Value};

use crate::answer::listing::List;
use crate::answer::shape::{self, ResultType};
use crate::json::RawJson;
use crate::message::{ErrorReply, Method, Reply};
use crate::protocol::{Era, Revision, code, meta};

/// A recorded answer in the version that a client speaks; where that is the one that it was recorded in, as it was.
pub fn adapted(reply: &Reply, method: &Method, from: Option<Revision>, to: Revision, info: &Value) -> Reply {
    if from == Some(to) {
        return reply.clone();
    }
    match reply {
        Reply::Error(error) => Reply::Error(refused(error, to)),
        Reply::Result(raw) => match raw.value() {
            Ok(Value::Object(object)) => {
                let result = completed(object, method.as_str(), from, to, info);
                Reply::Result(RawJson::from_value(&result))
            }
            Ok(_) | Err(_) => reply.clone(),
        },
    }
}

/// A resource that is not there is another error since 2026-07-28.
fn refused(error: &ErrorReply, to: Revision) -> ErrorReply {
    let names_uri = || error.data.as_ref().is_some_and(|data| data.field("uri").is_some());
    let is_missing = error.code == code::RESOURCE_NOT_FOUND || error.code == code::INVALID_PARAMS && names_uri();
    match is_missing {
        true => ErrorReply { code: to.resource_not_found(), ..error.clone() },
        false => error.clone(),
    }
}

fn completed(
    mut object: Map<String, Value>,
    method: &str,
    from: Option<Revision>,
    to: Revision,
    info: &Value,
) -> Value {
    if to.era() == Era::Legacy {
        strip(&mut object, from);
    }
    let list = match method {
        "tools/list" => Some(List::Tools),
        "prompts/list" => Some(List::Prompts),
        "resources/list" => Some(List::Resources),
        "resources/templates/list" => Some(List::ResourceTemplates),
        _ => None,
    };
    if let Some(list) = list
        && let Some(Value::Array(elements)) = object.get_mut(list.key())
    {
        elements.iter_mut().for_each(|element| *element = shape::listed(list, element.take(), to));
    }
    let mut result = Value::Object(object);
    match method {
        "tools/call" if result.get("content").is_some() || result.get("structuredContent").is_some() => {
            shape::called(&mut result, to);
        }
        "prompts/get" => shape::phrased(&mut result, to),
        "resources/read" => shape::read(&mut result, to),
        _ => {}
    }
    shape::envelope(&mut result, ResultType::Complete, method, to, info);
    result
}

/// Without what results carry since 2026-07-28.
fn strip(object: &mut Map<String, Value>, from: Option<Revision>) {
    if from.is_some_and(|from| from.era() == Era::Legacy) {
        return;
    }
    for key in ["resultType", "ttlMs", "cacheScope"] {
        object.shift_remove(key);
    }
    if let Some(Value::Object(meta)) = object.get_mut("_meta") {
        meta.shift_remove(meta::SERVER_INFO);
        if meta.is_empty() {
            object.shift_remove("_meta");
        }
    }
}
