//! What a server says about itself.

use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::protocol::{Era, meta};
use rehearsal_core::report::Finding;
use rehearsal_core::trace::Call;
use serde_json::{Map, Value, json};

use super::judged::{Found, place};
use super::plan::reply;
use super::verification::Verification;
use crate::client::{Client, Protocol};

impl Verification {
    /// The live answer to a recorded `server/discover` or `initialize`; `None` if the session began with the other one.
    pub(super) fn introduction<'a>(&self, call: &Call, client: &'a Client) -> Option<&'a Reply> {
        let is_same = is_modern(call) == speaks_modern(client) || self.protocol != Protocol::Auto;
        client.introduction().filter(|_| is_same)
    }

    /// Compares what the server says about itself. Its own version may change, and that of the protocol where another one is
    /// asked for.
    pub(super) fn introduced(&self, call: &Call, live: &Reply, client: &Client) -> Found {
        let (Some(Reply::Result(before)), Reply::Result(after)) = (reply(call), live) else {
            return self.judged(call, call, live, client);
        };
        let (before, after) = (before.value().unwrap_or_default(), after.value().unwrap_or_default());
        let (Value::Object(before), Value::Object(after)) = (before, after) else {
            return self.judged(call, call, live, client);
        };
        let spoken = self.spoken(client.revision());
        let after = if spoken.is_same() { after } else { self.said_otherwise(call, &before, client) };
        let view = |said: &Map<String, Value>| Reply::Result(RawJson::from_value(&self.view(call, said, client)));
        let updated = Reply::Result(RawJson::from_value(&Value::Object(after.clone())));
        let mut findings = self.compared(call, call, &view(&before), &view(&after));
        let version = |said: &Map<String, Value>| who(said).get("version").map(Value::to_string);
        let (was, is) = (version(&before), version(&after));
        if was != is {
            let (was, is) = (was.as_deref().unwrap_or("not told"), is.as_deref().unwrap_or("no longer told"));
            let note = Finding::note(self.secrets.text(&format!("the server's version was {was} and is {is}")));
            findings.push(note.at(place(call)));
        }
        let recorded = reply(call);
        let updated = self.secrets.kept_out(recorded.as_ref(), updated);
        Found::of(findings, || vec![(call.clone(), self.passed_over.kept(recorded.as_ref(), updated))])
    }

    /// What is compared of it: `_meta` is not, so who it is gets a place of its own.
    fn view(&self, call: &Call, said: &Map<String, Value>, client: &Client) -> Value {
        let spoken = self.spoken(client.revision());
        let mut view = said.clone();
        let mut who = spoken.known("Implementation", who(said).clone());
        if let Some(who) = who.as_object_mut() {
            who.shift_remove("version");
        }
        if !who.is_null() {
            view.insert("serverInfo".to_owned(), who);
        }
        if !spoken.is_same() {
            view.retain(|key, _| ["serverInfo", "instructions", "capabilities"].contains(&key.as_str()));
            let can = view.shift_remove("capabilities").filter(|_| is_modern(call) == speaks_modern(client));
            view.extend(can.map(|can| ("capabilities".to_owned(), spoken.known("ServerCapabilities", can))));
        }
        view.into()
    }

    /// What was recorded, with what the server says now in a version that was asked for.
    fn said_otherwise(&self, call: &Call, before: &Map<String, Value>, client: &Client) -> Map<String, Value> {
        let mut said = before.clone();
        // Each era declares other things.
        if is_modern(call) == speaks_modern(client) {
            said.insert("capabilities".to_owned(), client.server_capabilities().clone());
        }
        match client.instructions() {
            Some(instructions) => drop(said.insert("instructions".to_owned(), instructions.into())),
            None => drop(said.shift_remove("instructions")),
        }
        let info = client.server_info().clone();
        // Only before 2026-07-28 a server has to say who it is.
        if is_modern(call) != speaks_modern(client) && (info.is_null() || who(before).is_null()) {
            return said;
        }
        if !is_modern(call) {
            said.insert("serverInfo".to_owned(), info);
        } else if let Value::Object(about) = said.entry("_meta").or_insert_with(|| json!({})) {
            about.insert(meta::SERVER_INFO.to_owned(), info);
        }
        said
    }
}

fn is_modern(call: &Call) -> bool {
    call.request.message.method() == Some(&Method::DISCOVER)
}

fn speaks_modern(client: &Client) -> bool {
    client.revision().era() == Era::Modern
}

/// Who the server says it is: in `_meta` since 2026-07-28, and in the body before.
fn who(said: &Map<String, Value>) -> &Value {
    let about = said.get("_meta").and_then(|about| about.get(meta::SERVER_INFO));
    about.or_else(|| said.get("serverInfo")).unwrap_or(&Value::Null)
}
