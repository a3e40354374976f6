//! Names rules so that users recognize them.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

/// Maximum length of a name, in characters.
const MAX_LENGTH: usize = 60;

/// The name of the last rule, which matches every request that no other rule matches.
pub(super) const ANYTHING_ELSE: &str = "anything else";

/// Names for the rules of one tool, prompt or resource.
///
/// ```text
/// Oslo · city Oslo, days 3 · no arguments · Oslo #2
/// ```
pub(super) struct RuleNames {
    /// The arguments that differ between requests. The others do not distinguish them.
    distinguishing: Vec<String>,
    /// The number of rules for each name.
    used: HashMap<String, usize>,
}

impl RuleNames {
    pub(super) fn new<'a>(all: impl Iterator<Item = Option<&'a Map<String, Value>>>) -> RuleNames {
        let (mut values, mut count) = (BTreeMap::<&str, Vec<&Value>>::new(), 0);
        let mut order: Vec<&str> = Vec::new();
        for arguments in all {
            count += 1;
            for (key, value) in arguments.into_iter().flatten() {
                if !order.contains(&key.as_str()) {
                    order.push(key);
                }
                values.entry(key).or_default().push(value);
            }
        }
        let differs = |key: &&&str| {
            let values = values.get(**key).map_or(&[][..], Vec::as_slice);
            values.len() < count || values.windows(2).any(|pair| pair[0] != pair[1])
        };
        let distinguishing: Vec<String> = order.iter().filter(differs).map(|key| (*key).to_owned()).collect();
        let distinguishing = if distinguishing.is_empty() {
            order.iter().map(|key| (*key).to_owned()).collect()
        } else {
            distinguishing
        };
        RuleNames { distinguishing, used: HashMap::from([(ANYTHING_ELSE.to_owned(), 1)]) }
    }

    /// The name of the rule for these arguments.
    pub(super) fn name(&mut self, arguments: Option<&Map<String, Value>>) -> String {
        let name = self.base(arguments);
        loop {
            let used = self.used.entry(name.clone()).or_insert(0);
            *used += 1;
            if *used == 1 {
                return name;
            }
            let numbered = format!("{name} #{used}");
            if self.used.insert(numbered.clone(), 1).is_none() {
                return numbered;
            }
        }
    }

    fn base(&self, arguments: Option<&Map<String, Value>>) -> String {
        let Some(arguments) = arguments.filter(|arguments| !arguments.is_empty()) else {
            return "no arguments".to_owned();
        };
        let shown: Vec<_> = self.distinguishing.iter().filter_map(|key| Some((key, arguments.get(key)?))).collect();
        let name = match &shown[..] {
            [] => "the rest".to_owned(),
            [(_, value)] if value.as_str().is_some_and(|text| !is_blank(text)) => {
                value.as_str().unwrap_or_default().to_owned()
            }
            several => {
                let part = |(key, value): &(&String, &Value)| match value.as_str() {
                    Some("") => format!("{key} empty"),
                    Some(text) if is_blank(text) => format!("{key} blank"),
                    Some(text) => format!("{key} {text}"),
                    None => format!("{key} {}", value),
                };
                several.iter().map(part).collect::<Vec<_>>().join(", ")
            }
        };
        shortened(&name)
    }
}

/// Whether a text has no visible characters.
fn is_blank(text: &str) -> bool {
    text.chars().all(parts_words)
}

fn parts_words(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// Joins a text to one line, and cuts it at the maximum length.
fn shortened(text: &str) -> String {
    let words: Vec<_> = text.split(parts_words).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_LENGTH) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rule_is_named_after_the_arguments_that_distinguish_it() {
        let all = [
            json!({"city": "Oslo", "unit": "C"}),
            json!({"city": "Bergen", "unit": "C"}),
            json!({"city": "Oslo", "unit": "C", "days": 3}),
            json!({}),
        ];
        let all: Vec<_> = all.iter().map(Value::as_object).collect();
        let mut names = RuleNames::new(all.iter().copied());
        let used: Vec<_> = all.iter().map(|arguments| names.name(*arguments)).collect();
        // `unit` is missing from the last one, so it distinguishes too.
        assert_eq!(used, ["city Oslo, unit C", "city Bergen, unit C", "city Oslo, unit C, days 3", "no arguments"]);
        let mut names = RuleNames::new(all[..2].iter().copied());
        assert_eq!(names.name(all[0]), "Oslo");
        assert_eq!(names.name(all[1]), "Bergen");
    }

    #[test]
    fn a_rule_name_is_never_blank_and_is_unique() {
        let texts = ["", " \n", "anything else", "a", "a\t", "a #2", "a "];
        let all: Vec<_> = texts.iter().map(|text| json!({"v": text})).collect();
        let mut names = RuleNames::new(all.iter().map(Value::as_object));
        let used: Vec<_> = all.iter().map(|arguments| names.name(arguments.as_object())).collect();
        assert_eq!(used, ["v empty", "v blank", "anything else #2", "a", "a #2", "a #2 #2", "a #3"]);
    }

    #[test]
    fn names_are_short_and_differ() {
        let long = |end: &str| json!({"text": format!("{}\n{end}", "word ".repeat(40))});
        let (one, other) = (long("a"), long("b"));
        let mut names = RuleNames::new([one.as_object(), other.as_object()].into_iter());
        let (one, other) = (names.name(one.as_object()), names.name(other.as_object()));
        assert!(one.chars().count() <= MAX_LENGTH + 1 && !one.contains('\n'), "{one}");
        assert_eq!(other, format!("{one} #2"));
    }
}
