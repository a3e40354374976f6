//! Ignored paths.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::{Path, PathQuery, Segment};

/// Ignored paths, each a JSONPath such as `$.result.content[*].text` or `$..timestamp`.
#[derive(Clone, Debug, Default)]
pub struct PathSet {
    paths: Vec<Ignored>,
}

/// One path; its copies share whether it has matched anything.
#[derive(Clone, Debug)]
struct Ignored {
    path: PathQuery,
    is_met: Arc<AtomicBool>,
}

impl PathSet {
    /// Adds a path. `Err` describes new is wrong with it.
    pub fn and(mut self, path: &str) -> Result<PathSet, String> {
        let path = PathQuery::parse(path).map_err(|error| error.to_string())?;
        self.paths.push(Ignored { path, is_met: Arc::default() });
        Ok(self)
    }

    /// The paths that have matched nothing so far, as the user wrote them.
    pub fn unmatched(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().filter(|path| !path.is_met.load(Ordering::Relaxed)).map(|it| it.path.as_str())
    }

    /// Whether there are no paths.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// The paths as the user wrote them.
    pub fn written(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(|it| it.path.as_str())
    }

    /// Removes the values at these paths.
    pub fn remove_from(&self, value: &mut Value) {
        for path in &self.paths {
            // From the last to the first, so that the other indexes stay valid.
            path.find_all(value).into_iter().rev().for_each(|place| remove(value, place));
        }
    }

    /// Removes the members of objects at these paths; elements of arrays stay, so that indexes do not change.
    pub fn remove_members_from(&self, value: &mut Value) {
        for path in &self.paths {
            let is_element = |place: &Path| matches!(place.segments().last(), Some(Segment::Index(_)));
            let members = path.find_all(value).into_iter().rev().filter(|place| !is_element(place));
            members.for_each(|place| remove(value, place));
        }
    }

    /// Finds the paths of the matched values.
    pub fn find_all(&self, value: &Value) -> Vec<Path> {
        self.paths.iter().flat_map(|path| path.find_all(value)).collect()
    }

    /// Copies the values at these paths from another value, and removes those that the other does not have. If the
    /// arrays around a path differ in length, an index does not identify an element: then a value that both have stays.
    pub fn copy_values(&self, from: &Value, to: &mut Value) {
        for path in &self.paths {
            let new: Vec<Path> = path.find_all(to).into_iter().filter(|it| it.lookup(from).is_none()).collect();
            new.into_iter().rev().for_each(|place| remove(to, place));
            for place in path.find_all(from) {
                if let Some(value) = place.lookup(from)
                    && (place.lookup(to).is_none() || !is_moved(from, to, &place))
                {
                    put(to, place, value.clone());
                }
            }
        }
    }
}

impl Ignored {
    fn find_all(&self, value: &Value) -> Vec<Path> {
        let places = self.path.find_all(value);
        if !places.is_empty() {
            self.is_met.store(true, Ordering::Relaxed);
        }
        places
    }
}

/// Whether a path is in an array that has different lengths in both values.
fn is_moved(one: &Value, other: &Value, place: &Path) -> bool {
    let mut parent = place.clone();
    parent.pop();
    let length = |value: &Value| parent.lookup(value).and_then(Value::as_array).map(Vec::len);
    length(one) != length(other)
}

/// Removes the value at a path.
fn remove(value: &mut Value, mut place: Path) {
    let Some(last) = place.pop() else {
        *value = Value::Null;
        return;
    };
    match (place.lookup_mut(value), last) {
        (Some(Value::Object(object)), Segment::Key(key)) => drop(object.shift_remove(&key)),
        (Some(Value::Array(array)), Segment::Index(index)) if index < array.len() => drop(array.remove(index)),
        (Some(_) | None, _) => {}
    }
}

/// Sets the value at a path, if its parent exists.
fn put(value: &mut Value, mut place: Path, new: Value) {
    let Some(last) = place.pop() else {
        *value = new;
        return;
    };
    match (place.lookup_mut(value), last) {
        (Some(Value::Object(object)), Segment::Key(key)) => drop(object.insert(key, new)),
        (Some(Value::Array(array)), Segment::Index(index)) => match array.get_mut(index) {
            Some(element) => *element = new,
            None => array.push(new),
        },
        (Some(_) | None, _) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn remove_from_removes_array_elements_from_the_end() {
        let places = PathSet::default().and("$.list[0,1,3]").unwrap().and("$..t").unwrap();
        let mut value = json!({"list": [0, 1, 2, 3, {"t": 1}], "t": 2, "a/b": 1});
        places.remove_from(&mut value);
        assert_eq!(value, json!({"list": [2, {}], "a/b": 1}));
        assert!(PathSet::default().and("t").is_err());
    }

    #[test]
    fn copy_values_changes_only_the_values_at_the_paths() {
        let places = PathSet::default().and("$..t").unwrap().and("$.list[2]").unwrap().and("$.more[1]").unwrap();
        let from = json!({"list": [{"t": 1}, 2, 3], "gone": {"t": 1}, "a": {"t": 5}, "more": [1]});
        let mut to = json!({"list": [{"t": 9, "x": 9}, 9], "b": {"t": 9}, "a": {}, "more": [8, 9]});
        places.copy_values(&from, &mut to);
        assert_eq!(to, json!({"list": [{"t": 1, "x": 9}, 9, 3], "b": {}, "a": {"t": 5}, "more": [8]}));
    }

    #[test]
    fn unmatched_lists_the_paths_that_matched_nothing() {
        let places = PathSet::default().and("$.a").unwrap().and("$.b").unwrap();
        assert_eq!(places.unmatched().collect::<Vec<_>>(), ["$.a", "$.b"]);
        places.clone().remove_from(&mut json!({"b": 1}));
        assert_eq!(places.unmatched().collect::<Vec<_>>(), ["$.a"]);
    }

    #[test]
    fn remove_members_from_keeps_array_elements() {
        let places = PathSet::default().and("$.list[0]").unwrap().and("$..t").unwrap();
        let mut value = json!({"list": [{"t": 1, "u": 2}, 3], "t": 2});
        let find_all: Vec<_> = places.find_all(&value).iter().map(ToString::to_string).collect();
        assert_eq!(find_all, ["$.list[0]", "$.t", "$.list[0].t"]);
        places.remove_members_from(&mut value);
        assert_eq!(value, json!({"list": [{"u": 2}, 3]}));
        let mut moved = json!({"list": [8, 9, 3]});
        places.copy_values(&json!({"list": [9, 3]}), &mut moved);
        assert_eq!(moved, json!({"list": [8, 9, 3]}));
    }
}
