//! What a server lists.

use rehearsal_core::json::RawJson;
use rehearsal_core::matcher::drifted;
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::trace::{Call, Compare};
use serde_json::{Value, json};

use super::drift::{Told, is_emptied, told};
use super::judged::{Found, place, reply_of, with_reply};
use super::listed::Listing;
use super::plan::{params, reply};
use super::spoken::Spoken;
use super::verification::Verification;
use crate::client::{Client, ClientError};

/// How many pages of a list are asked for.
const PAGES: usize = 1000;

impl Verification {
    /// All pages of a list, compared element by element; what else a page says, by its first.
    pub(super) async fn listed(&self, method: &Method, pages: &[Call], client: &Client) -> Result<Found, ClientError> {
        let (Some(listing), Some(first)) = (Listing::of(method), pages.first()) else {
            return Ok(Found::default());
        };
        let live = match self.pages(method, client).await? {
            Ok(pages) => pages,
            Err(refusal) => return Ok(self.judged(first, first, &refusal, client)),
        };
        let recorded: Vec<Value> = pages.iter().filter_map(result).collect();
        if let Some(odd) = listing.odd(&live).or_else(|| live.first().filter(|_| listing.odd(&recorded).is_some())) {
            // Where there are no elements, there is nothing to compare by name.
            return Ok(self.judged(first, first, &written(odd), client));
        }
        let spoken = self.spoken(client.revision());
        let rest = |pages: &[Value]| {
            let page = pages.first().map(|page| listing.without_elements(page)).unwrap_or_default();
            spoken.shaped(&written(&page), method)
        };
        let mut findings = self.compared(first, first, &rest(&recorded), &rest(&live));
        let (was, mut is) = (listing.elements(&recorded), listing.elements(&live));
        let is_some = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
        let begins_within = is_some(params(&first.request.message).get("cursor"));
        if begins_within || is_some(recorded.last().and_then(|page| page.get("nextCursor"))) {
            // Nobody knows what was on the pages that were never asked for.
            is.retain(|item| listing.has(&was, item));
        }
        let viewed = |compare: &Compare, items: &[Value]| self.viewed(compare, listing, items, first, spoken);
        let whole = (viewed(&self.stable, &was), viewed(&self.stable, &is));
        // Each as it was in the place that it has now, because the order does not count.
        let known: Vec<&Value> = whole.1.iter().map(|item| listing.like(&whole.0, item)).collect();
        let page = |items: Value| json!({"result": {listing.list: items}});
        let (mut known, mut now) = (page(json!(known)), page(json!(whole.1)));
        self.secrets.take_out(&mut known, &mut now);
        let unfit = Told::of(self.passed_over.unfit(&known, &now), &known, &now);
        findings.extend(told(&listing.within(&unfit, None), None, Some(&place(first))));
        let drift = |before: &Value, after: &Value| {
            let at = listing.position(&whole.1, after);
            let whole = (listing.like(&whole.0, before), listing.like(&whole.1, after));
            let (mut before, mut after) = (before.clone(), after.clone());
            self.secrets.take_out(&mut before, &mut after);
            let mut found = drifted(&before, &after);
            found.retain(|it| !is_emptied(it, (whole.0, &before), (whole.1, &after)));
            let unfit = at.map(|at| listing.within(&unfit, Some(at))).unwrap_or_default();
            Told::of(found, &before, &after).into_iter().chain(unfit).collect()
        };
        let (before, after) = (viewed(&self.compare, &was), viewed(&self.compare, &is));
        findings.extend(listing.differences(&before, &after, drift, &place(first)));
        let spread = listing.spread(&recorded, &is);
        let page_of = |at: usize| {
            let live = live.get(at).or(live.first());
            let mut updated = live.map(|page| listing.without_elements(page)).unwrap_or_default();
            if let Some(page) = updated.as_object_mut() {
                page.insert(listing.list.to_owned(), spread.get(at).cloned().unwrap_or_default().into());
                // The recorded request for the next page has the recorded cursor.
                let cursor = recorded.get(at).and_then(|page| page.get("nextCursor")).cloned();
                page.extend(cursor.map(|cursor| ("nextCursor".to_owned(), cursor)));
            }
            let recorded = pages.get(at).and_then(reply);
            let page = spoken.as_recorded(&written(&updated), recorded.as_ref(), method, client.server_info());
            let was = listing.as_recorded(&was, &page);
            self.passed_over.kept(Some(&was), self.secrets.kept_out(Some(&was), page))
        };
        Ok(Found::of(findings, || pages.iter().enumerate().map(|(at, page)| (page.clone(), page_of(at))).collect()))
    }

    /// All pages that the server has now; `Err` is its refusal.
    async fn pages(&self, method: &Method, client: &Client) -> Result<Result<Vec<Value>, Reply>, ClientError> {
        let (mut pages, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES {
            let params = cursor.take().map_or_else(|| json!({}), |cursor: Value| json!({"cursor": cursor}));
            let page = match reply_of(&client.request(method.clone(), params).await?)? {
                Reply::Result(page) => page.value().unwrap_or_default(),
                refusal @ Reply::Error(_) => return Ok(Err(refusal)),
            };
            cursor = page.get("nextCursor").filter(|cursor| !cursor.is_null()).cloned();
            pages.push(page);
            if cursor.is_none() {
                break;
            }
        }
        Ok(Ok(pages))
    }

    /// The elements of a list as the comparison sees them.
    fn viewed(&self, compare: &Compare, listing: Listing, items: &[Value], first: &Call, spoken: Spoken) -> Vec<Value> {
        let method = first.request.message.method().cloned().unwrap_or(Method::TOOLS_LIST);
        let all = spoken.shaped(&written(&json!({listing.list: items})), &method);
        let view = compare.view(&self.secrets.clean(&with_reply(first, &all)));
        view["result"][listing.list].as_array().cloned().unwrap_or_default()
    }
}

fn result(page: &Call) -> Option<Value> {
    match reply(page)? {
        Reply::Result(result) => result.value().ok(),
        Reply::Error(_) => None,
    }
}

fn written(result: &Value) -> Reply {
    Reply::Result(RawJson::from_value(result))
}
