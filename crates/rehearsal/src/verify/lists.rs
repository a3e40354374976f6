//! What a server offers, compared by name.

use rehearsal_core::json::{Path, RawJson, Segment};
use rehearsal_core::matcher::{DifferenceKind, differences};
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::report::{Finding, Location};
use rehearsal_core::trace::{CallComparison, RecordedCall};
use serde_json::{Value, json};

use super::compare::VersionPair;
use super::compare::{CheckResult, place, reply_of, with_reply};
use super::difference_report::{ReportedDifference, findings_of, only_ignored_left};
use super::plan::{params, reply};
use super::verification::Verification;
use crate::client::{Client, ClientError};

/// What is in a list, and what its elements are known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListFormat {
    /// The noun for an element.
    pub(super) what: &'static str,
    /// Where the list is in a result.
    pub(super) list: &'static str,
    key: &'static str,
}

impl ListFormat {
    /// The list that a method returns.
    pub(super) fn from_method(method: &Method) -> Option<ListFormat> {
        let listing = |what, list, key| Some(ListFormat { what, list, key });
        match method.as_str() {
            "tools/list" => listing("tool", "tools", "name"),
            "prompts/list" => listing("prompt", "prompts", "name"),
            "resources/list" => listing("resource", "resources", "uri"),
            "resources/templates/list" => listing("resource template", "resourceTemplates", "uriTemplate"),
            _ => None,
        }
    }

    /// A page that has something else in the place of a list, if there is one.
    pub(super) fn odd(self, pages: &[Value]) -> Option<&Value> {
        pages.iter().find(|page| !page.get(self.list).is_some_and(Value::is_array))
    }

    /// What is listed on all pages.
    pub(super) fn elements(self, pages: &[Value]) -> Vec<Value> {
        pages.iter().filter_map(|page| page.get(self.list)?.as_array()).flatten().cloned().collect()
    }

    /// What is listed now, page by page: each element where one of its name was recorded, and what is new on the last page.
    pub(super) fn spread(self, recorded: &[Value], now: &[Value]) -> Vec<Vec<Value>> {
        let known: Vec<Vec<Value>> = recorded.iter().map(|page| self.elements(std::slice::from_ref(page))).collect();
        let mut pages = vec![Vec::new(); known.len()];
        for item in now {
            let at =
                known.iter().position(|page| self.contains_name(page, item)).unwrap_or(known.len().saturating_sub(1));
            if let Some(page) = pages.get_mut(at) {
                page.push(item.clone());
            }
        }
        pages
    }

    /// The page without its list.
    pub(super) fn without_elements(self, page: &Value) -> Value {
        let mut page = page.clone();
        if let Some(page) = page.as_object_mut() {
            page.shift_remove(self.list);
            page.shift_remove("nextCursor");
        }
        page
    }

    fn name(self, item: &Value) -> &str {
        item.get(self.key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The title of an item in a finding: ``the tool `a` ``.
    fn title(self, name: &str) -> String {
        match name {
            "" => format!("a {} without a {}", self.what, self.key),
            name => format!("the {} `{name}`", self.what),
        }
    }

    /// Whether there is an element of the same name.
    pub(super) fn contains_name(self, items: &[Value], item: &Value) -> bool {
        items.iter().any(|known| self.name(known) == self.name(item))
    }

    /// The index of the first element of the same name, if there is one.
    pub(super) fn position(self, items: &[Value], item: &Value) -> Option<usize> {
        items.iter().position(|known| self.name(known) == self.name(item))
    }

    /// The first element of the same name; `null` without one.
    pub(super) fn like<'items>(self, items: &'items [Value], item: &Value) -> &'items Value {
        items.iter().find(|known| self.name(known) == self.name(item)).unwrap_or(&Value::Null)
    }

    /// The differences inside one element of a page, with paths relative to that element. With `None`: the differences
    /// outside of all elements.
    pub(super) fn within(self, found: &[ReportedDifference], element: Option<usize>) -> Vec<ReportedDifference> {
        let index = |path: &Path| match path.segments() {
            [Segment::Key(_), Segment::Key(list), Segment::Index(index), ..] if list == self.list => Some(*index),
            _ => None,
        };
        let of = found.iter().filter(|it| index(&it.difference.mismatch.path) == element).cloned();
        let relative = of.map(|it| {
            let mut inner = Path::root();
            it.difference.mismatch.path.segments().iter().skip(3).for_each(|segment| inner.push(segment.clone()));
            if element.is_some() { it.within(inner) } else { it }
        });
        relative.collect()
    }

    /// The page, in which recorded elements replace those of the same name.
    pub(super) fn with_recorded_items(self, recorded: &[Value], page: &Reply) -> Reply {
        let Reply::Result(result) = page else { return page.clone() };
        let mut result = result.value().unwrap_or_default();
        for item in result.get_mut(self.list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(known) = recorded.iter().find(|known| self.name(known) == self.name(item)) {
                *item = known.clone();
            }
        }
        Reply::Result(RawJson::from_value(&result))
    }

    /// The elements that were added, removed or changed; the order is ignored. `drift` compares two elements of the
    /// same name.
    pub(super) fn differences(
        self,
        before: &[Value],
        after: &[Value],
        drift: impl Fn(&Value, &Value) -> Vec<ReportedDifference>,
        place: &Location,
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        let what = self.what;
        // The nth element of a name is compared with the nth one of that name on the other side.
        let like = |items: &[Value], name: &str, nth: usize| {
            items.iter().filter(|item| self.name(item) == name).nth(nth).cloned()
        };
        let earlier = |items: &[Value], name: &str| items.iter().filter(|item| self.name(item) == name).count();
        for (at, item) in before.iter().enumerate() {
            let name = self.name(item);
            let nth = earlier(&before[..at], name);
            match (like(after, name, nth), nth + 1) {
                (Some(other), _) => {
                    findings.extend(findings_of(&drift(item, &other), Some(&self.title(name)), Some(place)));
                }
                (None, 1) => {
                    let finding = Finding::error(format!("removed: {} is no longer listed", self.title(name)));
                    findings.push(finding.of_kind(DifferenceKind::Removed).at(place.clone()));
                }
                (None, times) => {
                    let finding = format!("removed: {} is no longer listed {times} times", self.title(name));
                    findings.push(Finding::error(finding).of_kind(DifferenceKind::Removed).at(place.clone()));
                }
            }
        }
        for (at, item) in after.iter().enumerate() {
            let name = self.name(item);
            let nth = earlier(&after[..at], name);
            let finding = match (like(before, name, nth), nth + 1) {
                (Some(_), _) => continue,
                (None, 1) => Finding::error(format!("added: {} was not listed before", self.title(name))),
                (None, times) => Finding::error(format!("added: {} is listed {times} times", self.title(name)))
                    .hint(format!("clients identify a {what} by its {}, and use one of them or refuse both", self.key)),
            };
            findings.push(finding.of_kind(DifferenceKind::Added).at(place.clone()));
        }
        findings
    }
}

/// At most this many pages of a list are requested.
const MAX_PAGES: usize = 1000;

impl Verification {
    /// Compares all pages of a list, element by element. The other members are those of the first page.
    pub(super) async fn listed(
        &self,
        method: &Method,
        pages: &[RecordedCall],
        client: &Client,
    ) -> Result<CheckResult, ClientError> {
        let (Some(listing), Some(first)) = (ListFormat::from_method(method), pages.first()) else {
            return Ok(CheckResult::default());
        };
        let live = match self.pages(method, client).await? {
            Ok(pages) => pages,
            Err(refusal) => return Ok(self.check_reply(first, first, &refusal, client)),
        };
        let recorded: Vec<Value> = pages.iter().filter_map(result).collect();
        if let Some(odd) = listing.odd(&live).or_else(|| live.first().filter(|_| listing.odd(&recorded).is_some())) {
            // Pages without a list cannot be compared by name.
            return Ok(self.check_reply(first, first, &written(odd), client));
        }
        let versions = self.version_pair(client.revision());
        let rest = |pages: &[Value]| {
            let page = pages.first().map(|page| listing.without_elements(page)).unwrap_or_default();
            versions.to_common_version(&written(&page), method)
        };
        let mut findings = self.compared(first, first, &rest(&recorded), &rest(&live));
        let (was, mut is) = (listing.elements(&recorded), listing.elements(&live));
        let is_some = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
        let begins_within = is_some(params(&first.request.message).get("cursor"));
        if begins_within || is_some(recorded.last().and_then(|page| page.get("nextCursor"))) {
            // The content of the pages that were not requested is unknown, so only the recorded elements are compared.
            is.retain(|item| listing.contains_name(&was, item));
        }
        let viewed = |compare: &CallComparison, items: &[Value]| self.viewed(compare, listing, items, first, versions);
        let whole = (viewed(&self.stable, &was), viewed(&self.stable, &is));
        // Recorded elements in live order, because the order is ignored.
        let known: Vec<&Value> = whole.1.iter().map(|item| listing.like(&whole.0, item)).collect();
        let page = |items: Value| json!({"result": {listing.list: items}});
        let (mut known, mut now) = (page(json!(known)), page(json!(whole.1)));
        self.secrets.redact_both(&mut known, &mut now);
        let mismatches =
            ReportedDifference::from_differences(self.ignored_paths.mismatches(&known, &now), &known, &now);
        findings.extend(findings_of(&listing.within(&mismatches, None), None, Some(&place(first))));
        let drift = |before: &Value, after: &Value| {
            let at = listing.position(&whole.1, after);
            let whole = (listing.like(&whole.0, before), listing.like(&whole.1, after));
            let (mut before, mut after) = (before.clone(), after.clone());
            self.secrets.redact_both(&mut before, &mut after);
            let mut found = differences(&before, &after);
            found.retain(|it| !only_ignored_left(it, (whole.0, &before), (whole.1, &after)));
            let mismatches = at.map(|at| listing.within(&mismatches, Some(at))).unwrap_or_default();
            ReportedDifference::from_differences(found, &before, &after).into_iter().chain(mismatches).collect()
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
            let page =
                versions.to_recorded_version(&written(&updated), recorded.as_ref(), method, client.server_info());
            let was = listing.with_recorded_items(&was, &page);
            self.ignored_paths.keep_recorded(Some(&was), self.secrets.redact_live(Some(&was), page))
        };
        Ok(CheckResult::from_findings(findings, || {
            pages.iter().enumerate().map(|(at, page)| (page.clone(), page_of(at))).collect()
        }))
    }

    /// All pages of the live list; `Err` is the refusal of the server.
    async fn pages(&self, method: &Method, client: &Client) -> Result<Result<Vec<Value>, Reply>, ClientError> {
        let (mut pages, mut cursor) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
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
    fn viewed(
        &self,
        compare: &CallComparison,
        listing: ListFormat,
        items: &[Value],
        first: &RecordedCall,
        versions: VersionPair,
    ) -> Vec<Value> {
        let method = first.request.message.method().cloned().unwrap_or(Method::TOOLS_LIST);
        let all = versions.to_common_version(&written(&json!({listing.list: items})), &method);
        let view = compare.view(&self.secrets.redact_call(&with_reply(first, &all)));
        view["result"][listing.list].as_array().cloned().unwrap_or_default()
    }
}

fn result(page: &RecordedCall) -> Option<Value> {
    match reply(page)? {
        Reply::Result(result) => result.value().ok(),
        Reply::Error(_) => None,
    }
}

fn written(result: &Value) -> Reply {
    Reply::Result(RawJson::from_value(result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearsal_core::matcher::differences;
    use serde_json::json;

    fn drift(before: &Value, after: &Value) -> Vec<ReportedDifference> {
        ReportedDifference::from_differences(differences(before, after), before, after)
    }

    #[test]
    fn the_order_of_a_list_is_ignored_and_its_items_are_compared() {
        let before = [json!({"name": "a", "description": "x"}), json!({"name": "b"}), json!({"name": "c"})];
        let after = [json!({"name": "c"}), json!({"name": "a", "description": "y"}), json!({"name": "d"})];
        let listing = ListFormat::from_method(&Method::TOOLS_LIST).unwrap();
        let found = listing.differences(&before, &after, drift, &Location::Message { sequence: 3 });
        let shown: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "error: changed: the tool `a` (message 3)\n  $.description: expected \"x\", got \"y\"",
                "error: removed: the tool `b` is no longer listed (message 3)",
                "error: added: the tool `d` was not listed before (message 3)",
            ]
        );
    }

    #[test]
    fn a_duplicate_item_is_reported_unless_it_wwith_recorded_items() {
        let (once, twice) = ([json!({"name": "a"})], [json!({"name": "a"}), json!({"name": "a", "title": "A"})]);
        let listing = ListFormat::from_method(&Method::TOOLS_LIST).unwrap();
        let messages = |before: &[Value], after: &[Value]| -> Vec<String> {
            let found = listing.differences(before, after, drift, &Location::Message { sequence: 3 });
            found.into_iter().map(|finding| finding.message).collect()
        };
        assert_eq!(messages(&once, &twice), ["added: the tool `a` is listed 2 times"]);
        assert_eq!(messages(&twice, &once), ["removed: the tool `a` is no longer listed 2 times"]);
        assert!(messages(&twice, &twice).is_empty());
    }
}
