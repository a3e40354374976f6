//! What a server offers, compared by name.

use rehearsal_core::json::{Path, RawJson, Segment};
use rehearsal_core::matcher::Drift;
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::report::{Finding, Place};
use serde_json::Value;

use super::drift::{Told, told};

/// What is in a list, and what its elements are known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listing {
    /// What an element is, in words.
    pub(super) what: &'static str,
    /// Where the list is in a result.
    pub(super) list: &'static str,
    key: &'static str,
}

impl Listing {
    /// The list that a method gives.
    pub(super) fn of(method: &Method) -> Option<Listing> {
        let listing = |what, list, key| Some(Listing { what, list, key });
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
            let at = known.iter().position(|page| self.has(page, item)).unwrap_or(known.len().saturating_sub(1));
            if let Some(page) = pages.get_mut(at) {
                page.push(item.clone());
            }
        }
        pages
    }

    /// What else a page says.
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

    /// What it is called in a finding: ``the tool `a` ``.
    fn called(self, name: &str) -> String {
        match name {
            "" => format!("a {} without a {}", self.what, self.key),
            name => format!("the {} `{name}`", self.what),
        }
    }

    /// Whether there is one of the same name.
    pub(super) fn has(self, items: &[Value], item: &Value) -> bool {
        items.iter().any(|known| self.name(known) == self.name(item))
    }

    /// Where the first one of the same name is, if there is one.
    pub(super) fn position(self, items: &[Value], item: &Value) -> Option<usize> {
        items.iter().position(|known| self.name(known) == self.name(item))
    }

    /// One of the same name, if there is one.
    pub(super) fn like<'items>(self, items: &'items [Value], item: &Value) -> &'items Value {
        items.iter().find(|known| self.name(known) == self.name(item)).unwrap_or(&Value::Null)
    }

    /// What of these differences is about an element of a page, each told where it is in the element; of `None`, what is
    /// about none.
    pub(super) fn within(self, told: &[Told], element: Option<usize>) -> Vec<Told> {
        let index = |path: &Path| match path.segments() {
            [Segment::Key(_), Segment::Key(list), Segment::Index(index), ..] if list == self.list => Some(*index),
            _ => None,
        };
        let of = told.iter().filter(|it| index(&it.drifted.mismatch.path) == element).cloned();
        let told = of.map(|it| {
            let mut inner = Path::root();
            it.drifted.mismatch.path.segments().iter().skip(3).for_each(|segment| inner.push(segment.clone()));
            if element.is_some() { it.within(inner) } else { it }
        });
        told.collect()
    }

    /// A page in which each element is as it was recorded, if it was.
    pub(super) fn as_recorded(self, recorded: &[Value], page: &Reply) -> Reply {
        let Reply::Result(result) = page else { return page.clone() };
        let mut result = result.value().unwrap_or_default();
        for item in result.get_mut(self.list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(known) = recorded.iter().find(|known| self.name(known) == self.name(item)) {
                *item = known.clone();
            }
        }
        Reply::Result(RawJson::from_value(&result))
    }

    /// What was added, removed or changed. The order does not count. `drift` says what differs between two elements of a name.
    pub(super) fn differences(
        self,
        before: &[Value],
        after: &[Value],
        drift: impl Fn(&Value, &Value) -> Vec<Told>,
        place: &Place,
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        let what = self.what;
        // One that is listed twice stands against another one of its name, if there is one.
        let like = |items: &[Value], name: &str, nth: usize| {
            items.iter().filter(|item| self.name(item) == name).nth(nth).cloned()
        };
        let earlier = |items: &[Value], name: &str| items.iter().filter(|item| self.name(item) == name).count();
        for (at, item) in before.iter().enumerate() {
            let name = self.name(item);
            let nth = earlier(&before[..at], name);
            match (like(after, name, nth), nth + 1) {
                (Some(other), _) => {
                    findings.extend(told(&drift(item, &other), Some(&self.called(name)), Some(place)));
                }
                (None, 1) => {
                    let finding = Finding::error(format!("removed: {} is no longer listed", self.called(name)));
                    findings.push(finding.of_kind(Drift::Removed).at(place.clone()));
                }
                (None, times) => {
                    let finding = format!("removed: {} is no longer listed {times} times", self.called(name));
                    findings.push(Finding::error(finding).of_kind(Drift::Removed).at(place.clone()));
                }
            }
        }
        for (at, item) in after.iter().enumerate() {
            let name = self.name(item);
            let nth = earlier(&after[..at], name);
            let finding = match (like(before, name, nth), nth + 1) {
                (Some(_), _) => continue,
                (None, 1) => Finding::error(format!("added: {} was not listed before", self.called(name))),
                (None, times) => Finding::error(format!("added: {} is listed {times} times", self.called(name)))
                    .hint(format!("clients know a {what} by its {}, and take one of them or refuse both", self.key)),
            };
            findings.push(finding.of_kind(Drift::Added).at(place.clone()));
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearsal_core::matcher::drifted;
    use serde_json::json;

    fn drift(before: &Value, after: &Value) -> Vec<Told> {
        Told::of(drifted(before, after), before, after)
    }

    #[test]
    fn the_order_of_a_list_does_not_count_but_what_is_in_it_does() {
        let before = [json!({"name": "a", "description": "x"}), json!({"name": "b"}), json!({"name": "c"})];
        let after = [json!({"name": "c"}), json!({"name": "a", "description": "y"}), json!({"name": "d"})];
        let listing = Listing::of(&Method::TOOLS_LIST).unwrap();
        let found = listing.differences(&before, &after, drift, &Place::Message { sequence: 3 });
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
    fn what_is_listed_twice_is_told_unless_it_was() {
        let (once, twice) = ([json!({"name": "a"})], [json!({"name": "a"}), json!({"name": "a", "title": "A"})]);
        let listing = Listing::of(&Method::TOOLS_LIST).unwrap();
        let messages = |before: &[Value], after: &[Value]| -> Vec<String> {
            let found = listing.differences(before, after, drift, &Place::Message { sequence: 3 });
            found.into_iter().map(|finding| finding.message).collect()
        };
        assert_eq!(messages(&once, &twice), ["added: the tool `a` is listed 2 times"]);
        assert_eq!(messages(&twice, &once), ["removed: the tool `a` is no longer listed 2 times"]);
        assert!(messages(&twice, &twice).is_empty());
    }
}
