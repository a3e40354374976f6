//! The answer source of the protocol itself.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ListKind, invalid, text_param};
use crate::answer::answer::Answer;
use crate::answer::request_context::IncomingRequest;
use crate::answer::source::{AnswerContext, AnswerSource, MatchDepth, Miss, Offer};
use crate::answer::subscription::SubscriptionFilter;
use crate::answer::surface::Surface;
use crate::answer::task::{self, TaskRequest};
use crate::json::RawJson;
use crate::message::{ErrorReply, Method, Reply};
use crate::protocol::{Era, LogLevel, Revision};
use crate::suggest::closest;

/// Answers handshakes, `ping`, log levels, subscriptions, list requests and requests about tasks, from the combined
/// surface of the chain.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProtocolSource;

impl AnswerSource for ProtocolSource {
    fn begin(&self, request: &Arc<IncomingRequest>, context: &mut AnswerContext<'_>) -> Offer {
        let refused = |error| Offer::Answer(Answer::protocol(Reply::Error(error)));
        begin(request, context).unwrap_or_else(refused)
    }

    fn closest(&self, request: &IncomingRequest, context: &mut AnswerContext<'_>) -> Option<Miss> {
        let subscribes = request.method == Method::RESOURCES_SUBSCRIBE && request.context.era() == Era::Legacy;
        let uri = request.params.get("uri").and_then(Value::as_str).filter(|_| subscribes)?;
        Some(Miss { error: no_resource(request, uri, context.surface), is_remark: false })
    }
}

fn begin(request: &IncomingRequest, context: &mut AnswerContext<'_>) -> Result<Offer, ErrorReply> {
    let surface = context.surface;
    let empty = || Ok(Offer::Answer(Answer::protocol(Reply::Result(RawJson::from_value(&json!({}))))));
    match (request.context.era(), request.method.as_str()) {
        (Era::Legacy, "initialize") => {
            let reply = surface.introduction().initialize(request, context.legacy, surface.revisions())?;
            Ok(Offer::Answer(Answer::protocol(reply)))
        }
        (Era::Modern, "server/discover") => {
            Ok(Offer::Answer(Answer::protocol(surface.introduction().discover(request, surface.revisions()))))
        }
        (Era::Legacy, "ping") => empty(),
        (Era::Legacy, "logging/setLevel") => {
            let level = text_param(request, "level")?;
            LogLevel::named(level).ok_or_else(|| invalid(LogLevel::unknown(level)))?;
            empty()
        }
        // A live server behind the chain handles subscriptions to its own resources.
        (Era::Legacy, "resources/subscribe") => match context.own_surface.has_resource(text_param(request, "uri")?) {
            true => empty(),
            false => Ok(Offer::Pass(MatchDepth::Method)),
        },
        (Era::Legacy, "resources/unsubscribe") => {
            let uri = text_param(request, "uri")?;
            let is_live = !context.own_surface.has_resource(uri) && surface.has_resource(uri);
            if is_live { Ok(Offer::Pass(MatchDepth::Method)) } else { empty() }
        }
        (Era::Modern, "subscriptions/listen") => {
            let capabilities = &surface.introduction().capabilities;
            let is_known = |uri: &str| surface.has_resource(uri);
            let filter = SubscriptionFilter::new(capabilities, &is_known, surface.has_tasks, request)?;
            Ok(Offer::Listen(filter, None))
        }
        (era, method) if method.starts_with("tasks/") => task_request(request, era, surface),
        (_, method) => match ListKind::from_method(method).zip(surface.lists.as_ref()) {
            Some((kind, lists)) => {
                let page = lists.page(kind, request, surface)?;
                Ok(Offer::Answer(Answer::protocol(Reply::Result(page))))
            }
            None => Ok(Offer::Pass(MatchDepth::Nothing)),
        },
    }
}

fn task_request(request: &IncomingRequest, era: Era, surface: &Surface) -> Result<Offer, ErrorReply> {
    let method = request.method.as_str();
    let is_known = match era {
        Era::Legacy => {
            let methods = ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"];
            request.context.revision == Revision::V2025_11_25 && methods.contains(&method)
        }
        Era::Modern => ["tasks/get", "tasks/cancel", "tasks/update"].contains(&method),
    };
    if !surface.has_tasks || !is_known {
        return Ok(Offer::Pass(MatchDepth::Nothing));
    }
    if era == Era::Modern && !request.context.has_tasks_extension() {
        return Err(task::missing_extension());
    }
    let id = || text_param(request, "taskId").map(str::to_owned);
    Ok(Offer::Task(match method {
        "tasks/list" => TaskRequest::List,
        "tasks/get" => TaskRequest::Get(id()?),
        "tasks/result" => TaskRequest::Result(id()?),
        "tasks/update" => {
            let responses = request.params.get("inputResponses").and_then(Value::as_object);
            let responses =
                responses.ok_or_else(|| invalid("tasks/update needs an object `inputResponses`".to_owned()))?;
            TaskRequest::Update(id()?, responses.clone())
        }
        _ => TaskRequest::Cancel(id()?),
    }))
}

/// The error for a resource that no source offers, with the closest URI.
pub(in crate::answer) fn no_resource(request: &IncomingRequest, uri: &str, surface: &Surface) -> ErrorReply {
    let offered = surface.lists.iter().flat_map(|lists| lists.ids(ListKind::Resources));
    let hint = closest(uri, offered).map(|close| format!("; did you mean {close}?")).unwrap_or_default();
    let message = format!("there is no resource {uri}{hint}");
    ErrorReply::new(request.context.revision.resource_not_found(), message).with_data(&json!({"uri": uri}))
}
