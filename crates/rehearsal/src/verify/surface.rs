//! What a server says about itself, and what it lists.

use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::protocol::{Era, meta};
use rehearsal_core::report::Finding;
use rehearsal_core::trace::Call;
use serde_json::{Value, json};

use super::drift::differences;
use super::listed::Listing;
use super::plan::reply;
use super::verification::{Found, Verification, place, reply_of, with_reply};
use crate::client::{Client, ClientError, Protocol};

/// How many pages of a list are asked for.
const PAGES: usize = 1000;

impl Verification {
    /// What the server says about itself. Its own version may change, and that of the protocol where another one is asked for.
    pub(super) fn introduced(&self, call: &Call, client: &Client) -> Found {
        let Some(Reply::Result(result)) = reply(call) else {
            return Found::default();
        };
        let recorded = result.exact().unwrap_or_default();
        let is_modern = client.revision().era() == Era::Modern;
        let was_modern = call.request.message.method() == Some(&Method::DISCOVER);
        // It was asked for the version that it agreed to when this was recorded.
        let asked_for_the_same = self.protocol == Protocol::Auto && !is_modern && !was_modern;
        let mut live = recorded.clone();
        if let Some(object) = live.as_object_mut() {
            if asked_for_the_same {
                object.insert("protocolVersion".to_owned(), client.revision().as_str().into());
            }
            // Each era declares other things.
            if is_modern == was_modern {
                object.insert("capabilities".to_owned(), client.server_capabilities().clone());
            }
            match client.instructions() {
                Some(instructions) => drop(object.insert("instructions".to_owned(), instructions.into())),
                None => drop(object.shift_remove("instructions")),
            }
            match was_modern {
                true => drop(object.entry("_meta").or_insert_with(|| json!({}))),
                false => drop(object.insert("serverInfo".to_owned(), client.server_info().clone())),
            }
            if was_modern && let Some(about) = object.get_mut("_meta").and_then(Value::as_object_mut) {
                about.insert(meta::SERVER_INFO.to_owned(), client.server_info().clone());
            }
        }
        let updated = Reply::Result(RawJson::from_value(&self.passed_over.result(recorded.clone(), live.clone())));
        let spoken = self.spoken(client.revision());
        let mut findings = Vec::new();
        let view = |value: &Value| {
            let info = if was_modern { &value["_meta"][meta::SERVER_INFO] } else { &value["serverInfo"] };
            let mut view = match info.is_object() {
                true => json!({"serverInfo": {"name": info["name"]}}),
                false => json!({"serverInfo": info}),
            };
            if is_modern == was_modern {
                view["capabilities"] = spoken.known("ServerCapabilities", value["capabilities"].clone());
            }
            if asked_for_the_same {
                view["protocolVersion"] = value["protocolVersion"].clone();
            }
            if let Some(instructions) = value.get("instructions") {
                view["instructions"] = instructions.clone();
            }
            view
        };
        // Through the same places that are ignored in any other answer.
        let (mut before, mut after) = (self.viewed(call, view(&recorded)), self.viewed(call, view(&live)));
        self.secrets.take_out(&mut before, &mut after);
        findings.extend(differences(&before, &after, None, Some(&place(call))));
        let version = |value: &Value| match was_modern {
            true => value["_meta"][meta::SERVER_INFO]["version"].clone(),
            false => value["serverInfo"]["version"].clone(),
        };
        let (before, after) = (version(&recorded), version(&live));
        if before != after {
            let note = Finding::note(self.secrets.text(&format!("the server's version was {before} and is {after}")));
            findings.push(note.at(place(call)));
        }
        Found::of(findings, || vec![(call.clone(), updated)])
    }

    /// A result as the comparison sees it.
    fn viewed(&self, call: &Call, result: Value) -> Value {
        self.compare.view(&self.secrets.clean(&with_reply(call, &Reply::Result(RawJson::from_value(&result)))))
    }

    /// All pages of a list, compared element by element.
    pub(super) async fn listed(&self, method: &Method, pages: &[Call], client: &Client) -> Result<Found, ClientError> {
        let (Some(listing), Some(first)) = (Listing::of(method), pages.first()) else {
            return Ok(Found::default());
        };
        let mut live: Vec<Value> = Vec::new();
        let (mut result, mut cursor) = (json!({}), None);
        for _ in 0..PAGES {
            let params = cursor.take().map_or_else(|| json!({}), |cursor: Value| json!({"cursor": cursor}));
            let response = client.request(method.clone(), params).await?;
            if response.error().is_some() {
                return Ok(self.judged(first, first, &reply_of(&response)?, client));
            }
            let Reply::Result(page) = reply_of(&response)? else { break };
            let page = page.exact().unwrap_or_default();
            live.extend(page.get(listing.list).and_then(Value::as_array).into_iter().flatten().cloned());
            result = page.clone();
            cursor = page.get("nextCursor").filter(|cursor| !cursor.is_null()).cloned();
            if cursor.is_none() {
                break;
            }
        }
        let mut recorded = Vec::new();
        for page in pages {
            if let Some(Reply::Result(result)) = reply(page) {
                let result = result.exact().unwrap_or_default();
                recorded.extend(result.get(listing.list).and_then(Value::as_array).into_iter().flatten().cloned());
            }
        }
        let spoken = self.spoken(client.revision());
        let viewed = |items: &[Value]| {
            let all = spoken.shaped(&Reply::Result(RawJson::from_value(&json!({listing.list: items}))), method);
            let view = self.compare.view(&self.secrets.clean(&with_reply(first, &all)));
            view["result"][listing.list].as_array().cloned().unwrap_or_default()
        };
        let take_out = |before: &mut Value, after: &mut Value| self.secrets.take_out(before, after);
        let (before, mut after) = (viewed(&recorded), viewed(&live));
        let has_more = |page: &Call| match reply(page) {
            Some(Reply::Result(result)) => result.field("nextCursor").is_some_and(|cursor| cursor.as_str() != "null"),
            Some(Reply::Error(_)) | None => false,
        };
        if pages.last().is_some_and(has_more) {
            // Nobody knows what was on the pages that were never asked for.
            after.retain(|item| listing.has(&before, item));
        }
        let findings = listing.differences(&before, &after, take_out, &place(first));
        // The first page gets everything, so that the others have nothing left.
        let page_of = |at: usize| {
            let mut updated = result.clone();
            if let Some(object) = updated.as_object_mut() {
                object.shift_remove("nextCursor");
                object.insert(listing.list.to_owned(), if at == 0 { live.clone().into() } else { json!([]) });
            }
            let page = spoken.as_recorded(&Reply::Result(RawJson::from_value(&updated)), method, client.server_info());
            let was = listing.as_recorded(&recorded, &page);
            self.passed_over.kept(Some(&was), self.secrets.kept_out(Some(&was), page))
        };
        Ok(Found::of(findings, || pages.iter().enumerate().map(|(at, page)| (page.clone(), page_of(at))).collect()))
    }
}
