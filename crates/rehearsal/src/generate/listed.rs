//! What was listed of one kind, over all its pages and times.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rehearsal_core::protocol::Revision;
use serde_json::Value;

/// What was listed of one kind.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Whether the list was ever asked for.
    pub was_asked: bool,
    /// What was in it; of what was listed more than once, the last in the newest version.
    pub items: Vec<Value>,
    /// What was taken out of it while somebody looked.
    pub gone: Vec<Value>,
    /// The key of a result that has the list.
    list: &'static str,
    /// The key that names an item.
    key: &'static str,
    /// What was not in it every time.
    came_and_went: BTreeSet<String>,
    /// What was in it more than once at a time; the first counts.
    repeated: BTreeSet<String>,
    /// What was in it when it was last read to its end, in this session.
    seen: Option<HashSet<String>>,
    /// The pages of a list that goes on: what was on them, and the cursor for the next one.
    begun: Option<(Vec<String>, Value)>,
    /// How many items its pages have that are not the last.
    pages: BTreeSet<usize>,
    /// Whether it was ever read to its end.
    whole: bool,
    /// How each item was last listed in each version, by its name.
    heard: HashMap<String, BTreeMap<Revision, Value>>,
    /// Where each item stands, by its name.
    places: HashMap<String, usize>,
}

impl Listed {
    /// Nothing so far, of what stands under `list` and is named by `key`.
    pub(super) fn new(list: &'static str, key: &'static str) -> Listed {
        Listed {
            was_asked: false,
            items: Vec::new(),
            gone: Vec::new(),
            list,
            key,
            came_and_went: BTreeSet::new(),
            repeated: BTreeSet::new(),
            seen: None,
            begun: None,
            pages: BTreeSet::new(),
            whole: false,
            heard: HashMap::new(),
            places: HashMap::new(),
        }
    }

    /// Another session begins: what it does not list may be listed for others.
    pub(super) fn begin_session(&mut self) {
        (self.seen, self.begun) = (None, None);
    }

    /// Takes in the page for a cursor, in a version; what has the same name is replaced. What is lost by that is given back,
    /// in words.
    pub(super) fn take(&mut self, page: &Value, cursor: Option<&Value>, revision: Option<Revision>) -> Vec<String> {
        let (mut lost, mut names) = (Vec::new(), Vec::new());
        self.was_asked = true;
        let before = match (cursor, self.begun.take()) {
            (None, _) => Some(Vec::new()),
            (Some(cursor), Some((before, next))) if next == *cursor => Some(before),
            (Some(_), _) => None,
        };
        let mut here: HashSet<String> = before.iter().flatten().cloned().collect();
        for item in page.get(self.list).and_then(Value::as_array).into_iter().flatten() {
            let Some(name) = item.get(self.key).and_then(Value::as_str) else {
                lost.push(format!("what is in `{}` without a {}", self.list, self.key));
                continue;
            };
            if !here.insert(name.to_owned()) {
                self.repeated.insert(name.to_owned());
                continue;
            }
            names.push(name.to_owned());
            let known = self.places.get(name).and_then(|at| self.items.get_mut(*at));
            let heard = self.heard.entry(name.to_owned()).or_default();
            let last = revision.and_then(|revision| heard.insert(revision, item.clone()));
            let is_newest = revision.is_none_or(|revision| heard.keys().all(|other| *other <= revision));
            let changed = match (revision, &known) {
                (Some(_), _) => last.is_some_and(|last| last != *item),
                (None, known) => known.as_ref().is_some_and(|known| *known != item),
            };
            if changed {
                lost.push(format!("how {name} was listed before it changed"));
            }
            match known {
                Some(known) if is_newest => known.clone_from(item),
                Some(_) => {}
                None => {
                    if self.whole {
                        self.came_and_went.insert(name.to_owned());
                    }
                    self.places.insert(name.to_owned(), self.items.len());
                    self.items.push(item.clone());
                }
            }
        }
        let next = page.get("nextCursor").filter(|next| !next.is_null());
        self.pages.extend(next.map(|_| names.len()));
        match (before, next) {
            (Some(before), Some(next)) => self.begun = Some(([before, names].concat(), next.clone())),
            (Some(before), None) => self.read_to_its_end([before, names].concat()),
            // Somewhere in the midst of a list whose beginning is not known.
            (None, _) => {}
        }
        lost
    }

    fn read_to_its_end(&mut self, names: Vec<String>) {
        let key = self.key;
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (at, name) in names.iter().enumerate() {
            places.entry(name).or_insert(at);
        }
        let is_here = |item: &Value| places.contains_key(name_of(item, key));
        self.gone.retain(|item| !is_here(item));
        let missing = self.items.iter().filter(|item| !is_here(item));
        self.came_and_went.extend(missing.map(|item| name_of(item, key).to_owned()));
        if let Some(seen) = &self.seen {
            // Only what this session saw before can have been taken out.
            let (gone, kept) = std::mem::take(&mut self.items)
                .into_iter()
                .partition(|item| seen.contains(name_of(item, key)) && !is_here(item));
            self.items = kept;
            self.gone.extend::<Vec<_>>(gone);
        }
        self.items.sort_by_key(|item| places.get(name_of(item, key)).copied().unwrap_or(names.len()));
        self.seen = Some(names.into_iter().collect());
        self.whole = true;
        self.place();
    }

    /// Finds out where each item stands.
    fn place(&mut self) {
        let names = self.items.iter().map(|item| name_of(item, self.key).to_owned());
        self.places = names.enumerate().map(|(at, name)| (name, at)).collect();
    }

    /// Takes out items that are so; gives back what they are called.
    pub(super) fn take_out(&mut self, is_so: impl Fn(&Value) -> bool) -> Vec<String> {
        let mut names = Vec::new();
        for items in [&mut self.items, &mut self.gone] {
            names.extend(items.extract_if(.., |item| is_so(item)).map(|item| name_of(&item, self.key).to_owned()));
        }
        self.place();
        names
    }

    /// What of how it was listed cannot be told again, in words.
    ///
    /// ```text
    /// that b was not always in `tools`
    /// ```
    pub(super) fn left_out(&self) -> Vec<String> {
        let list = self.list;
        let mut words: Vec<_> =
            self.came_and_went.iter().map(|name| format!("that {name} was not always in `{list}`")).collect();
        words.extend(self.repeated.iter().map(|name| format!("that {name} is in `{list}` more than once")));
        let is_cut = self.was_asked && !self.whole;
        words.extend(is_cut.then(|| format!("the rest of `{list}`, which nobody asked for")));
        words
    }

    /// How many items its pages have that are not the last; nothing where it comes at once.
    pub(super) fn pages(&self) -> &BTreeSet<usize> {
        &self.pages
    }

    /// That it comes in pages, in words.
    pub(super) fn paged(&self) -> Option<String> {
        (!self.pages.is_empty()).then(|| format!("that `{}` comes in pages", self.list))
    }

    /// How the item of this name was last listed in each version.
    pub(super) fn heard(&self, name: &str) -> BTreeMap<Revision, Value> {
        self.heard.get(name).cloned().unwrap_or_default()
    }

    /// How items were listed in versions that are not the newest, in words.
    pub(super) fn otherwise(&self) -> Vec<String> {
        let mut words = Vec::new();
        for item in &self.items {
            let name = name_of(item, self.key);
            let heard = self.heard.get(name).into_iter().flatten().filter(|(_, was)| *was != item);
            words.extend(heard.map(|(revision, _)| format!("how {name} was listed in {revision}")));
        }
        words
    }

    /// The item of this name.
    pub fn find(&self, name: &str) -> Option<&Value> {
        self.items.get(*self.places.get(name)?)
    }

    /// The item of this name that is not in it any more.
    pub fn find_gone(&self, name: &str) -> Option<&Value> {
        self.gone.iter().find(|item| name_of(item, self.key) == name)
    }
}

fn name_of<'a>(item: &'a Value, key: &str) -> &'a str {
    item.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn page(names: &[&str], next: Option<&str>) -> Value {
        let tools: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
        let mut page = json!({"tools": tools});
        if let Some(next) = next {
            page["nextCursor"] = next.into();
        }
        page
    }

    fn names(items: &[Value]) -> Vec<&str> {
        items.iter().filter_map(|item| item["name"].as_str()).collect()
    }

    #[test]
    fn what_is_taken_out_of_a_list_is_gone_and_told() {
        let mut listed = Listed::new("tools", "name");
        listed.take(&page(&["a", "b"], Some("x")), None, None);
        listed.take(&page(&["c"], None), Some(&json!("x")), None);
        assert_eq!((names(&listed.items), listed.left_out()), (vec!["a", "b", "c"], vec![]));
        listed.take(&page(&["d", "c", "a"], None), None, None);
        assert_eq!((names(&listed.items), names(&listed.gone)), (vec!["d", "c", "a"], vec!["b"]));
        assert_eq!(listed.left_out(), ["that b was not always in `tools`", "that d was not always in `tools`"]);
    }

    #[test]
    fn what_another_session_does_not_list_is_told_and_stays() {
        let mut listed = Listed::new("tools", "name");
        listed.take(&page(&["a", "b"], None), None, None);
        listed.begin_session();
        listed.take(&page(&["b", "c"], None), None, None);
        assert_eq!((names(&listed.items), names(&listed.gone)), (vec!["b", "c", "a"], vec![]));
        assert_eq!(listed.left_out(), ["that a was not always in `tools`", "that c was not always in `tools`"]);
    }

    #[test]
    fn the_newest_version_counts_and_others_are_told() {
        let item = |title: &str| json!({"tools": [{"name": "a", "title": title}]});
        let mut listed = Listed::new("tools", "name");
        assert_eq!(listed.take(&item("new"), None, Some(Revision::V2025_11_25)), [""; 0]);
        listed.begin_session();
        assert_eq!(listed.take(&item("old"), None, Some(Revision::V2024_11_05)), [""; 0]);
        assert_eq!(listed.items, [json!({"name": "a", "title": "new"})]);
        assert_eq!(listed.otherwise(), ["how a was listed in 2024-11-05"]);
        let lost = listed.take(&item("older"), None, Some(Revision::V2024_11_05));
        assert_eq!(lost, ["how a was listed before it changed"]);
    }

    #[test]
    fn what_is_listed_more_than_once_is_told_and_has_not_changed() {
        let twice = json!({"tools": [{"name": "a"}, {"name": "b"}, {"name": "a", "title": "other"}]});
        let mut listed = Listed::new("tools", "name");
        for _ in 0..2 {
            assert_eq!(listed.take(&twice, None, Some(Revision::V2025_11_25)), [""; 0]);
        }
        assert_eq!(listed.items, [json!({"name": "a"}), json!({"name": "b"})]);
        listed.take(&page(&["a", "b"], Some("x")), None, None);
        listed.take(&page(&["b"], None), Some(&json!("x")), None);
        let told = ["that a is in `tools` more than once", "that b is in `tools` more than once"];
        assert_eq!(listed.left_out(), told);
    }

    #[test]
    fn a_list_that_nobody_read_to_its_end_takes_nothing_out() {
        let mut listed = Listed::new("tools", "name");
        listed.take(&page(&["a"], Some("x")), None, None);
        listed.take(&page(&["a"], Some("x")), None, None);
        listed.take(&page(&["z"], None), Some(&json!("elsewhere")), None);
        assert_eq!((names(&listed.items), names(&listed.gone)), (vec!["a", "z"], vec![]));
        assert_eq!(listed.left_out(), ["the rest of `tools`, which nobody asked for"]);
    }
}
