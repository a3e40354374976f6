//! Lists: the nth list request of a conversation gets the nth recorded list, then the last, and the pages of one list stay
//! together. A list that was not recorded, or not to its end, is made of what was used.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use rehearsal_core::answer::{Answer, Asked, Recorded, adapted};
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::trace::{RequestKey, subject};
use serde_json::{Value, json};

use super::answers::LOOKED_AT;
use super::index::{about_key, method_key};
use super::options::Repeat;
use super::progress::Taken;
use super::replay::Shared;
use super::tape::request;

impl Shared {
    /// The recording that answers a request for a list. A list is never used up.
    pub(super) fn take_list(&self, key: RequestKey, asked: &Asked) -> io::Result<Option<Taken>> {
        let number = match self.next_page(key, asked)? {
            Some(page) => page,
            None => match self.take(key, asked, Repeat::Last)? {
                Some(Taken::Fresh(number) | Taken::Again(number)) => number,
                other => return Ok(other),
            },
        };
        let mut progress = self.progress();
        if is_first_page(asked) {
            progress.begin_list(asked.conversation, &asked.method, number);
        }
        Ok(Some(progress.list(asked.conversation, number)))
    }

    /// The recording of a later page, of the list of which a conversation was given the first page.
    fn next_page(&self, key: RequestKey, asked: &Asked) -> io::Result<Option<u32>> {
        if is_first_page(asked) {
            return Ok(None);
        }
        let Some(first) = self.progress().first_page(asked.conversation, &asked.method) else { return Ok(None) };
        let Some(pages) = self.tape.index.group(key)? else { return Ok(None) };
        for at in self.tape.place_of(pages, first)?..pages.count {
            let number = self.tape.index.member(pages, at)?;
            if self.suits(number)? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// A list that was never asked for, made of what was used: clients ask for every list that a server declares. A real
    /// server behind the recording knows better.
    pub(super) fn listed(&self, asked: &Asked) -> io::Result<Option<Answer>> {
        let (capability, used, list, name) = match asked.method.as_str() {
            "tools/list" => ("tools", Some(Method::TOOLS_CALL), "tools", "name"),
            "prompts/list" => ("prompts", Some(Method::PROMPTS_GET), "prompts", "name"),
            "resources/list" => ("resources", Some(Method::RESOURCES_READ), "resources", "uri"),
            "resources/templates/list" => ("resources", None, "resourceTemplates", "uriTemplate"),
            _ => return Ok(None),
        };
        if self.upstream.is_some() {
            return Ok(None);
        }
        if let Some(cursor) = asked.params.get("cursor").filter(|cursor| !cursor.is_null()) {
            if !self.gave(cursor, &asked.method)? {
                return Ok(None);
            }
            let remark = format!("the page {cursor} of {} was not recorded; the list ends before it", asked.method);
            return Ok(Some(self.made(asked, &json!({list: []}), remark)));
        }
        let Some(recorded) = self.firsts(used.as_ref(), &asked.method)? else { return Ok(None) };
        if recorded.is_empty() && !self.opening.capabilities.contains_key(capability) {
            return Ok(None);
        }
        let mut elements = Vec::new();
        for recorded in recorded {
            let Some(subject) = subject(request(&recorded)) else { continue };
            let mut element = json!({"name": &subject});
            element[name] = subject.into();
            if capability == "tools" {
                element["inputSchema"] = json!({"type": "object"});
            }
            let given = request(&recorded).params().and_then(|params| params.field("arguments")?.value().ok());
            if let Some(Value::Object(given)) = given.filter(|_| capability == "prompts") {
                element["arguments"] = given.keys().map(|name| json!({"name": name})).collect();
            }
            elements.push(element);
        }
        let remark = format!("{} was not recorded; it lists what was used", asked.method);
        Ok(Some(self.made(asked, &json!({list: elements}), remark)))
    }

    /// An answer that was not recorded, in the client's version.
    fn made(&self, asked: &Asked, result: &Value, remark: String) -> Answer {
        let reply = Reply::Result(RawJson::from_value(result));
        let info = &self.opening.info;
        let reply = adapted(&reply, &asked.method, None, asked.terms.revision, info);
        Answer { remarks: vec![remark], ..Answer::protocol(reply) }
    }

    /// Whether a recorded page says that this one comes next.
    fn gave(&self, cursor: &Value, list: &Method) -> io::Result<bool> {
        let Some(group) = self.tape.index.group(about_key(list, None))? else { return Ok(false) };
        for number in self.tape.members(group, group.count) {
            let recorded = self.tape.recorded(number?)?;
            if let Some(Reply::Result(result)) = recorded.reply()
                && result.field("nextCursor").and_then(|next| next.value().ok()).as_ref() == Some(cursor)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The first recording about each thing of a method, in the sessions that are answered from; `None` where `list` was
    /// recorded there.
    fn firsts(&self, used: Option<&Method>, list: &Method) -> io::Result<Option<Vec<Arc<Recorded>>>> {
        let Some(selected) = &self.selected else {
            let group = |method: &Method| self.tape.index.group(method_key(method.as_str()));
            if group(list)?.is_some() {
                return Ok(None);
            }
            let group = used.map(group).transpose()?.flatten();
            let members = group.into_iter().flat_map(|group| self.tape.members(group, group.count));
            return members.map(|number| self.tape.recorded(number?)).collect::<io::Result<_>>().map(Some);
        };
        let (mut firsts, mut known, mut looked_at) = (Vec::new(), HashSet::new(), 0);
        for session in (0..self.tape.index.sessions()).zip(selected).filter_map(|(at, is)| is.then_some(at)) {
            for number in self.tape.of_session(session)? {
                looked_at += 1;
                if looked_at > LOOKED_AT {
                    return Ok(Some(firsts));
                }
                let recorded = self.tape.recorded(number)?;
                let method = request(&recorded).method();
                if method == Some(list) {
                    return Ok(None);
                }
                if used.is_some() && method == used && known.insert(subject(request(&recorded))) {
                    firsts.push(recorded);
                }
            }
        }
        Ok(Some(firsts))
    }
}

fn is_first_page(asked: &Asked) -> bool {
    asked.params.get("cursor").is_none_or(Value::is_null)
}
