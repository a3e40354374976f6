//! Lists: the nth list request of a connection gets the nth recorded list, then the last one, and the pages of a list stay
//! together. A list that was not recorded, or not to its end, is inferred from the requests that were recorded.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use rehearsal_core::answer::{Answer, AnswerContext, IncomingRequest, RecordedExchange, WrittenFor};
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::trace::{RequestKey, subject};
use serde_json::{Value, json};

use super::index::{method_key, subject_key};
use super::indexed_trace::request as request_of;
use super::options::Repeat;
use super::recorded_source::MAX_SCANNED;
use super::replay::ReplayState;
use super::replay_position::{ConnectionPosition, NextRecording};

impl ReplayState {
    /// The recording that answers a list request. A list is never exhausted.
    pub(super) fn next_page_of(
        &self,
        key: RequestKey,
        request: &IncomingRequest,
        context: &mut AnswerContext<'_>,
    ) -> io::Result<Option<NextRecording>> {
        let number = match self.next_page(key, request, context)? {
            Some(page) => page,
            None => match self.take(key, context, Repeat::Last)? {
                Some(NextRecording::Fresh(number) | NextRecording::Again(number)) => number,
                other => return Ok(other),
            },
        };
        let position = context.memory::<ConnectionPosition>();
        if is_first_page(request) {
            position.begin_list(&request.method, number);
        }
        Ok(Some(position.list(number, &mut self.used())))
    }

    /// The recording of a later page, in the list of which the connection got the first page.
    fn next_page(
        &self,
        key: RequestKey,
        request: &IncomingRequest,
        context: &mut AnswerContext<'_>,
    ) -> io::Result<Option<u32>> {
        if is_first_page(request) {
            return Ok(None);
        }
        let Some(first) = context.memory::<ConnectionPosition>().first_page(&request.method) else { return Ok(None) };
        let Some(pages) = self.trace.index.group(key)? else { return Ok(None) };
        for at in self.trace.place_of(pages, first)?..pages.count {
            let number = self.trace.index.member(pages, at)?;
            if self.may_answer(number)? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// A list that was not recorded, inferred from the recorded requests: clients request every list that a server
    /// declares. `None` if an upstream can answer.
    pub(super) fn inferred_list(&self, request: &IncomingRequest) -> io::Result<Option<Answer>> {
        let (capability, used, list, name) = match request.method.as_str() {
            "tools/list" => ("tools", Some(Method::TOOLS_CALL), "tools", "name"),
            "prompts/list" => ("prompts", Some(Method::PROMPTS_GET), "prompts", "name"),
            "resources/list" => ("resources", Some(Method::RESOURCES_READ), "resources", "uri"),
            "resources/templates/list" => ("resources", None, "resourceTemplates", "uriTemplate"),
            _ => return Ok(None),
        };
        if self.is_forwarding {
            return Ok(None);
        }
        if let Some(cursor) = request.params.get("cursor").filter(|cursor| !cursor.is_null()) {
            if !self.names_next_page(cursor, &request.method)? {
                return Ok(None);
            }
            let remark = format!("the page {cursor} of {} was not recorded; the list ends before it", request.method);
            return Ok(Some(inferred(&json!({list: []}), remark)));
        }
        let Some(recorded) = self.firsts(used.as_ref(), &request.method)? else { return Ok(None) };
        if recorded.is_empty() && !self.introduction.capabilities.contains_key(capability) {
            return Ok(None);
        }
        let mut elements = Vec::new();
        for recorded in recorded {
            let Some(subject) = subject(request_of(&recorded)) else { continue };
            let mut element = json!({"name": &subject});
            element[name] = subject.into();
            if capability == "tools" {
                element["inputSchema"] = json!({"type": "object"});
            }
            let arguments = request_of(&recorded).params().and_then(|params| params.field("arguments")?.value().ok());
            if let Some(Value::Object(arguments)) = arguments.filter(|_| capability == "prompts") {
                element["arguments"] = arguments.keys().map(|name| json!({"name": name})).collect();
            }
            elements.push(element);
        }
        let remark = format!("{} was not recorded; it lists what was used", request.method);
        Ok(Some(inferred(&json!({list: elements}), remark)))
    }

    /// Whether a recorded page has this cursor as its `nextCursor`.
    fn names_next_page(&self, cursor: &Value, list: &Method) -> io::Result<bool> {
        let Some(group) = self.trace.index.group(subject_key(list, None))? else { return Ok(false) };
        for number in self.trace.members(group, group.count) {
            let recorded = self.trace.recorded(number?)?;
            if let Some(Reply::Result(result)) = recorded.reply()
                && result.field("nextCursor").and_then(|next| next.value().ok()).as_ref() == Some(cursor)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The first recording about each subject of a method, in the sessions that are answered from; `None` if `list` was
    /// recorded there.
    fn firsts(&self, used: Option<&Method>, list: &Method) -> io::Result<Option<Vec<Arc<RecordedExchange>>>> {
        let Some(selected) = &self.selected else {
            let group = |method: &Method| self.trace.index.group(method_key(method.as_str()));
            if group(list)?.is_some() {
                return Ok(None);
            }
            let group = used.map(group).transpose()?.flatten();
            let members = group.into_iter().flat_map(|group| self.trace.members(group, group.count));
            return members.map(|number| self.trace.recorded(number?)).collect::<io::Result<_>>().map(Some);
        };
        let (mut firsts, mut known, mut scanned) = (Vec::new(), HashSet::new(), 0);
        for session in (0..self.trace.index.sessions()).zip(selected).filter_map(|(at, is)| is.then_some(at)) {
            for number in self.trace.of_session(session)? {
                scanned += 1;
                if scanned > MAX_SCANNED {
                    return Ok(Some(firsts));
                }
                let recorded = self.trace.recorded(number)?;
                let method = request_of(&recorded).method();
                if method == Some(list) {
                    return Ok(None);
                }
                if used.is_some() && method == used && known.insert(subject(request_of(&recorded))) {
                    firsts.push(recorded);
                }
            }
        }
        Ok(Some(firsts))
    }
}

/// A list that was not recorded.
fn inferred(result: &Value, remark: String) -> Answer {
    let reply = Reply::Result(RawJson::from_value(result));
    Answer { written_for: WrittenFor::Recorded(None), remarks: vec![remark], ..Answer::protocol(reply) }
}

fn is_first_page(request: &IncomingRequest) -> bool {
    request.params.get("cursor").is_none_or(Value::is_null)
}
