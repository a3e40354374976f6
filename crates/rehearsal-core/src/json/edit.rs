//! A value that was changed here and there, written with everything else as it was.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::long::{exact, to_json};
use super::raw::RawJson;

impl RawJson {
    /// The same after a change; whatever did not change is written as it is here.
    pub fn edit(&self, change: impl FnOnce(&mut Value)) -> Result<RawJson, serde_json::Error> {
        let mut value = self.exact()?;
        // Where this is written as we write, so is what is left of it; nearly everything is, and that costs no second look.
        let is_plain = to_json(&value) == self.as_str();
        change(&mut value);
        Ok(if is_plain { RawJson::from_value(&value) } else { self.edited(&value) })
    }

    /// `value` as text, in which whatever is the same here is written as it is here: how somebody wrote a number or escaped a
    /// letter is part of what was said, and a [`Value`] does not hold all of it.
    ///
    /// ```text
    /// here  {"a": -0, "b": "\ud800", "c": 1}      value  {"a": -0.0, "b": "\ufffd", "d": 2}
    ///                                             text   {"a":-0,"b":"\ud800","d":2}
    /// ```
    pub fn edited(&self, value: &Value) -> RawJson {
        let Ok(here) = self.read::<&RawValue>() else { return RawJson::from_value(value) };
        let mut text = String::with_capacity(self.as_str().len());
        write(here, value, &mut text);
        RawJson::written(text.into())
    }
}

fn is(here: &RawValue, value: &Value) -> bool {
    exact(here.get().as_bytes()).is_ok_and(|here| here == *value)
}

fn write(here: &RawValue, value: &Value, text: &mut String) {
    match value {
        _ if is(here, value) => text.push_str(here.get()),
        Value::Object(fields) => {
            let known: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(here.get()).unwrap_or_default();
            let fields = fields.iter().map(|(key, value)| (Some(key), known.get(&**key).copied(), value));
            write_all(['{', '}'], fields, text);
        }
        Value::Array(items) => {
            let known: Vec<&RawValue> = serde_json::from_str(here.get()).unwrap_or_default();
            let pairs = known_as(&known, items).into_iter().zip(items);
            write_all(['[', ']'], pairs.map(|(here, item)| (None, here, item)), text);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => text.push_str(&to_json(value)),
    }
}

/// What each item was: where some were taken out or added, what is the same.
fn known_as<'a>(known: &[&'a RawValue], items: &[Value]) -> Vec<Option<&'a RawValue>> {
    if known.len() == items.len() {
        return known.iter().copied().map(Some).collect();
    }
    let read = |here: &'a RawValue| Some((to_json(&exact(here.get().as_bytes()).ok()?), here));
    let same: HashMap<String, &RawValue> = known.iter().filter_map(|here| read(here)).collect();
    items.iter().map(|item| same.get(&to_json(item)).copied()).collect()
}

fn write_all<'a>(
    [open, close]: [char; 2],
    all: impl Iterator<Item = (Option<&'a String>, Option<&'a RawValue>, &'a Value)>,
    text: &mut String,
) {
    text.push(open);
    for (at, (key, here, value)) in all.enumerate() {
        if at > 0 {
            text.push(',');
        }
        if let Some(key) = key {
            text.push_str(&Value::from(key.as_str()).to_string());
            text.push(':');
        }
        match here {
            Some(here) => write(here, value, text),
            None => text.push_str(&to_json(value)),
        }
    }
    text.push(close);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn edited(text: &str, edit: impl Fn(&mut Value)) -> String {
        let raw = RawJson::parse(text.as_bytes()).unwrap();
        let mut value = raw.exact().unwrap();
        edit(&mut value);
        let edited = raw.edited(&value);
        assert_eq!(raw.edit(edit).unwrap().as_str(), edited.as_str());
        edited.to_string()
    }

    #[test]
    fn what_is_not_edited_is_written_as_it_was() {
        let text = r#"{"a": [-0, 1.50, 1E2], "b": {"c": "\ud800", "d": "\u00e9\/"}, "e": 1}"#;
        assert_eq!(edited(text, |_| ()), text);
        assert_eq!(
            edited(text, |value| drop(value.as_object_mut().unwrap().shift_remove("e"))),
            r#"{"a":[-0, 1.50, 1E2],"b":{"c": "\ud800", "d": "\u00e9\/"}}"#
        );
        assert_eq!(
            edited(text, |value| value["b"]["d"] = json!(12)),
            r#"{"a":[-0, 1.50, 1E2],"b":{"c":"\ud800","d":12},"e":1}"#
        );
        assert_eq!(
            edited(text, |value| drop(value["a"].as_array_mut().unwrap().remove(1))),
            r#"{"a":[-0,1E2],"b":{"c": "\ud800", "d": "\u00e9\/"},"e":1}"#
        );
        assert_eq!(edited(text, |value| *value = json!("other")), r#""other""#);
        assert_eq!(edited(r#"{"a":[1.5,"b"],"c":2}"#, |value| value["c"] = json!(3)), r#"{"a":[1.5,"b"],"c":3}"#);
    }

    #[test]
    fn items_are_edited_where_they_stand() {
        let text = r#"[{"name": "\udfff", "old": 1}, {"name": 12345678901234567890123}]"#;
        let edit = |value: &mut Value| drop(value[0].as_object_mut().unwrap().shift_remove("old"));
        assert_eq!(edited(text, edit), r#"[{"name":"\udfff"},{"name": 12345678901234567890123}]"#);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from), ".{0,4}".prop_map(Value::from)];
        leaf.prop_recursive(3, 24, 4, |inner| {
            let fields = prop::collection::vec(("[ab\"]{1,2}", inner.clone()), 0..4);
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(Value::from),
                fields.prop_map(|fields| fields.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_means_what_it_was_edited_to(before in any_json(), after in any_json()) {
            prop_assert_eq!(RawJson::from_value(&before).edited(&after).exact().unwrap(), after);
        }
    }
}
