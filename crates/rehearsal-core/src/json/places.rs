//! Places that do not count.

use serde_json::Value;
use serde_json_path::JsonPath;

/// Places that do not count, each a JSONPath such as `$.result.content[*].text` or `$..timestamp`.
#[derive(Clone, Debug, Default)]
pub struct Places {
    paths: Vec<(String, JsonPath)>,
}

impl Places {
    /// These and one more. `Err` says what is wrong with it.
    pub fn and(mut self, path: &str) -> Result<Places, String> {
        let parsed = JsonPath::parse(path).map_err(|error| error.to_string())?;
        self.paths.push((path.to_owned(), parsed));
        Ok(self)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// The paths as they were written.
    pub fn written(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(|(written, _)| written.as_str())
    }

    /// Takes out of a value what is at these places.
    pub fn take_out(&self, value: &mut Value) {
        for (_, path) in &self.paths {
            let places: Vec<String> =
                path.query_located(value).locations().map(|place| place.to_json_pointer()).collect();
            // From the back, so that the indexes of what is still to go stay right.
            places.iter().rev().for_each(|place| remove(value, place));
        }
    }
}

/// Takes out what a JSON pointer names.
fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, last)) = pointer.rsplit_once('/') else {
        *value = Value::Null;
        return;
    };
    let key = last.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent) {
        Some(Value::Object(object)) => drop(object.shift_remove(&key)),
        Some(Value::Array(array)) => {
            if let Some(index) = key.parse().ok().filter(|index| *index < array.len()) {
                array.remove(index);
            }
        }
        Some(_) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_in_a_list_is_taken_out_from_the_back() {
        let places = Places::default().and("$.list[0,1,3]").unwrap().and("$..t").unwrap();
        let mut value = json!({"list": [0, 1, 2, 3, {"t": 1}], "t": 2, "a/b": 1});
        places.take_out(&mut value);
        assert_eq!(value, json!({"list": [2, {}], "a/b": 1}));
        assert!(Places::default().and("t").is_err());
    }
}
