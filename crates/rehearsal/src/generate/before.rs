//! What a server said and asked before it answered.

use std::collections::BTreeSet;

use rehearsal_core::answer::{self, Logs};
use rehearsal_core::exchange::Side;
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Body, Method, Reply};
use rehearsal_core::protocol::{Era, Revision, meta};
use rehearsal_core::script::mock::LogLevel;
use rehearsal_core::trace::{Inside, What};
use serde_json::Value;

use super::fate::{Fate, beside};
use super::learned::{Before, Question};
use super::result::reply;

/// What a server said while it worked on an answer to `during`, to a client that wants these log messages;
/// `Err` where that is nothing that could be said again.
pub(super) fn said_before(inside: &Inside, during: &Method, logs: Logs) -> Result<Before, Fate> {
    let unreadable = |method: &Method| Fate::left_out(format!("{method}, whose params have too many levels"));
    match inside {
        Inside::Call(call) if call.asker == Side::Server => match call.request.message.method() {
            Some(method) if *method != Method::PING => {
                let params = stable(call.request.message.params()).ok_or_else(|| unreadable(method))?;
                let refused = !matches!(reply(call), Some(Reply::Result(_)));
                Ok(Before::Asked(vec![Question { name: String::new(), method: method.clone(), params, refused }]))
            }
            Some(_) | None => Err(beside(inside, Some(during))),
        },
        Inside::Entry(entry) => match &entry.what {
            What::Message { from: Side::Server, message, .. } => match message.body() {
                Body::Notification(told) => {
                    let params = stable(told.params.as_ref()).ok_or_else(|| unreadable(&told.method))?;
                    let unwanted = told.method == Method::LOG_MESSAGE
                        && LogLevel::of(&params).is_some_and(|level| !logs.include(Some(level)));
                    Ok(Before::Told { method: told.method.clone(), params, unwanted })
                }
                Body::Request(_) | Body::Response(_) | Body::Batch(_) | Body::Garbled(_) => {
                    Err(beside(inside, Some(during)))
                }
            },
            What::Message { .. }
            | What::Http { .. }
            | What::Event { .. }
            | What::ChannelEnded { .. }
            | What::Stderr { .. }
            | What::Piece { .. }
            | What::Ended(_) => Err(beside(inside, Some(during))),
        },
        Inside::Call(_) => Err(beside(inside, Some(during))),
    }
}

/// Before 2026-07-28 a server may tell of a resource that its client has not subscribed to.
pub(super) fn note_unsubscribed(before: &mut Before, revision: Option<Revision>, subscribed: &BTreeSet<String>) {
    if let Before::Told { method, params, unwanted } = before
        && *method == Method::RESOURCE_UPDATED
        && revision.is_none_or(|revision| revision.era() == Era::Legacy)
    {
        *unwanted = !params["uri"].as_str().is_some_and(|uri| subscribed.contains(uri));
    }
}

/// What is asked of a client that declared `declared`, and not this; nobody asks that again. In words.
///
/// ```text
/// that elicitation/create was asked of a client that had not declared it
/// ```
pub(super) fn undeclared(before: &Before, declared: &Value) -> Vec<String> {
    let Before::Asked(questions) = before else { return Vec::new() };
    let is_undeclared = |method: &&Method| answer::Question::needs(method).is_some_and(|it| declared.get(it).is_none());
    let methods = questions.iter().map(|question| &question.method).filter(is_undeclared);
    methods.map(|method| format!("that {method} was asked of a client that had not declared it")).collect()
}

/// Params without what is another one next time: the token, and the stream or task that it belongs to.
fn stable(params: Option<&RawJson>) -> Option<Value> {
    let mut params = params.map(RawJson::exact).transpose().ok()?.unwrap_or_default();
    if let Some(object) = params.as_object_mut() {
        object.shift_remove(meta::PROGRESS_TOKEN);
        if let Some(Value::Object(about)) = object.get_mut("_meta") {
            about.retain(|key, _| !key.starts_with("io.modelcontextprotocol/"));
            if about.is_empty() {
                object.shift_remove("_meta");
            }
        }
    }
    Some(params)
}

/// Before 2026-07-28 questions have no names; they get some.
pub(super) fn name_questions(before: &mut [Before]) {
    let questions = before.iter_mut().filter_map(|before| match before {
        Before::Asked(questions) => Some(questions),
        Before::Told { .. } | Before::SentAway => None,
    });
    let unnamed = questions.flatten().filter(|question| question.name.is_empty());
    (1..).zip(unnamed).for_each(|(number, question)| question.name = format!("question_{number}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_of_an_answer_has_a_name() {
        let asked = |names: &[&str]| {
            let question = |name: &&str| Question {
                name: (*name).to_owned(),
                method: Method::ELICITATION,
                params: Value::Null,
                refused: false,
            };
            Before::Asked(names.iter().map(question).collect())
        };
        let mut before = [asked(&["confirm", ""]), asked(&["confirm"]), asked(&["", "confirm"])];
        name_questions(&mut before);
        let names = before.iter().flat_map(|before| match before {
            Before::Asked(questions) => questions.iter().map(|question| question.name.as_str()).collect(),
            Before::Told { .. } | Before::SentAway => Vec::new(),
        });
        assert_eq!(names.collect::<Vec<_>>(), ["confirm", "question_1", "confirm", "question_2", "confirm"]);
    }
}
