//! The words that make an object an operator rather than data.

/// Every operator, in the order in which the reference lists them.
pub(super) const WORDS: [&str; 19] = [
    "any",
    "present",
    "exact",
    "subset",
    "contains",
    "ignore_case",
    "matches",
    "type",
    "schema",
    "gt",
    "gte",
    "lt",
    "lte",
    "length",
    "each",
    "at",
    "any_of",
    "all_of",
    "not",
];

/// Those that say something about a whole object and are hardly ever names of arguments.
pub(super) const OF_OBJECTS: [&str; 8] = ["any", "exact", "subset", "schema", "at", "any_of", "all_of", "not"];

/// Those of them that are never data beside ordinary keys.
pub(super) const COMBINATIONS: [&str; 3] = ["any_of", "all_of", "not"];

/// Names for types in other languages, and what they are called here.
const TYPE_ALIASES: [(&str, &str); 9] = [
    ("bool", "boolean"),
    ("int", "integer"),
    ("float", "number"),
    ("double", "number"),
    ("str", "string"),
    ("list", "array"),
    ("map", "object"),
    ("dict", "object"),
    ("none", "null"),
];

/// The operator with this name.
pub(super) fn named(word: &str) -> Option<&'static str> {
    WORDS.into_iter().find(|operator| *operator == word)
}

/// The operator that was probably meant by a word that is none.
///
/// Short words are left alone: `lat` is closer to data than to `at`.
pub(crate) fn closest(word: &str) -> Option<&'static str> {
    nearest(word, WORDS).filter(|operator| *operator != word)
}

/// The type that was probably meant by a name that is none.
pub(super) fn closest_type(name: &str) -> Option<&'static str> {
    let alias = TYPE_ALIASES.into_iter().find(|(alias, _)| *alias == name);
    let names = crate::json::Kind::ALL.map(crate::json::Kind::name);
    alias.map(|(_, meant)| meant).or_else(|| nearest(name, names))
}

fn nearest<const N: usize>(word: &str, words: [&'static str; N]) -> Option<&'static str> {
    let allowed = match word.chars().count() {
        0..=3 => return None,
        4..=6 => 1,
        _ => 2,
    };
    let lowercase = word.to_lowercase();
    words
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lowercase, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && candidate.len() > 3)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_operator_is_recognised() {
        for (word, meant) in [
            ("contians", Some("contains")),
            ("mathces", Some("matches")),
            ("anyOf", Some("any_of")),
            ("Contains", Some("contains")),
            ("contains", None),
            ("text", None),
            ("data", None),
            ("lat", None),
            ("city", None),
            ("properties", None),
            ("required", None),
        ] {
            assert_eq!(closest(word), meant, "{word}");
        }
    }

    #[test]
    fn a_type_of_another_language_is_translated() {
        for (name, meant) in [
            ("strng", Some("string")),
            ("int", Some("integer")),
            ("dict", Some("object")),
            ("text", None),
            ("image", None),
            ("resource_link", None),
        ] {
            assert_eq!(closest_type(name), meant, "{name}");
        }
    }
}
