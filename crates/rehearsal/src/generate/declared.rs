//! What a server declares that it can do.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use rehearsal_core::protocol::{Era, Revision};
use serde_json::{Map, Value};

/// The capabilities of a server, of all sessions together, apart for each era: many servers declare other ones in
/// `server/discover` than in `initialize`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declared {
    legacy: Option<Map<String, Value>>,
    modern: Option<Map<String, Value>>,
    /// The same of each version.
    by_version: BTreeMap<Revision, Map<String, Value>>,
    /// What some sessions of an era declared otherwise.
    changing: BTreeSet<String>,
    /// What some sessions of one version declared otherwise.
    unstable: BTreeSet<String>,
}

impl Declared {
    /// Takes in what is declared in a session.
    pub(super) fn take(&mut self, revision: Revision, declared: &Map<String, Value>) {
        let known = match revision.era() {
            Era::Legacy => &mut self.legacy,
            Era::Modern => &mut self.modern,
        };
        match known {
            None => *known = Some(declared.clone()),
            Some(all) => {
                self.changing.extend(different(all, declared));
                merge(all, declared);
            }
        }
        match self.by_version.entry(revision) {
            Entry::Vacant(unknown) => drop(unknown.insert(declared.clone())),
            Entry::Occupied(mut known) => {
                self.unstable.extend(different(known.get(), declared));
                merge(known.get_mut(), declared);
            }
        }
    }

    /// What is declared in each version that was spoken.
    pub(super) fn by_version(&self) -> impl Iterator<Item = (Revision, &Map<String, Value>)> {
        self.by_version.iter().map(|(revision, declared)| (*revision, declared))
    }

    /// What is declared in an era; what is in the other, where nobody asked in this one. `None` where nobody ever did.
    pub fn of(&self, era: Era) -> Option<&Map<String, Value>> {
        match era {
            Era::Legacy => self.legacy.as_ref().or(self.modern.as_ref()),
            Era::Modern => self.modern.as_ref().or(self.legacy.as_ref()),
        }
    }

    /// What is declared in any session; `None` where nobody asked.
    pub fn all(&self) -> Option<Map<String, Value>> {
        let mut all = self.of(Era::Legacy)?.clone();
        if let Some(modern) = &self.modern {
            merge(&mut all, modern);
        }
        Some(all)
    }

    /// The capabilities that some sessions of an era declared otherwise than others.
    pub(super) fn changing(&self) -> impl Iterator<Item = &String> {
        self.changing.iter()
    }

    /// The capabilities that some sessions of one version declared otherwise than others.
    pub(super) fn unstable(&self) -> impl Iterator<Item = &String> {
        self.unstable.iter()
    }

    /// The capabilities that are declared otherwise in one era than in the other.
    pub(super) fn differing(&self) -> BTreeSet<String> {
        match (&self.legacy, &self.modern) {
            (Some(legacy), Some(modern)) => different(legacy, modern),
            (Some(_) | None, None) | (None, Some(_)) => BTreeSet::new(),
        }
    }
}

fn different(one: &Map<String, Value>, other: &Map<String, Value>) -> BTreeSet<String> {
    one.keys().chain(other.keys()).filter(|key| one.get(*key) != other.get(*key)).cloned().collect()
}

fn merge(all: &mut Map<String, Value>, declared: &Map<String, Value>) {
    for (key, value) in declared {
        match (all.get_mut(key), value) {
            (Some(Value::Object(parts)), Value::Object(more)) => {
                parts.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            (Some(_) | None, _) => drop(all.insert(key.clone(), value.clone())),
        }
    }
}

/// That a capability is declared as it was in some sessions and not in others, in words.
pub(super) fn not_always(capability: &str) -> String {
    format!("that the capability `{capability}` was not always declared like that")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn declared(sessions: &[(Revision, Value)]) -> Declared {
        let mut declared = Declared::default();
        for (revision, capabilities) in sessions {
            declared.take(*revision, capabilities.as_object().unwrap());
        }
        declared
    }

    #[test]
    fn each_era_declares_what_it_did_and_a_mock_all_of_it() {
        let old = json!({"tools": {"listChanged": false}, "logging": {}});
        let new = json!({"tools": {"listChanged": true}, "extensions": {}});
        let both = declared(&[(Revision::V2026_07_28, new.clone()), (Revision::V2025_11_25, old.clone())]);
        assert_eq!(both.of(Era::Legacy), old.as_object());
        assert_eq!(both.of(Era::Modern), new.as_object());
        let all = json!({"tools": {"listChanged": true}, "logging": {}, "extensions": {}});
        assert_eq!(both.all().as_ref(), all.as_object());
        assert_eq!(both.changing().count(), 0);
        assert!(both.differing().into_iter().eq(["extensions", "logging", "tools"]));
    }

    #[test]
    fn an_era_in_which_nobody_asked_declares_what_the_other_does() {
        let more = json!({"tools": {}, "prompts": {}});
        let old = Revision::V2024_11_05;
        let known = declared(&[(old, json!({"tools": {}})), (old, more.clone())]);
        assert!(known.unstable().eq(["prompts"]));
        let known = declared(&[(old, json!({"tools": {}})), (Revision::V2025_06_18, more.clone())]);
        assert_eq!(known.unstable().count(), 0);
        assert_eq!(known.of(Era::Modern), more.as_object());
        assert!(known.changing().eq(["prompts"]));
        assert!(known.differing().is_empty());
        assert_eq!(declared(&[]).all(), None);
    }
}
