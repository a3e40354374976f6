//! What a server lists.

use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::trace::Call;
use serde_json::{Value, json};

use super::listed::Listing;
use super::plan::reply;
use super::verification::{Found, Verification, place, reply_of, with_reply};
use crate::client::{Client, ClientError};

/// How many pages of a list are asked for.
const PAGES: usize = 1000;

impl Verification {
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
