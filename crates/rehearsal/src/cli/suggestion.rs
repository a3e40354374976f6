//! What somebody may have meant.

use rehearsal::core::suggest::closest;

/// How many names are listed where none is close.
const LISTED: usize = 20;

/// ``did you mean `echo`?``, or what there is.
pub(super) fn suggestion(word: &str, known: &[String], what: &str) -> String {
    match closest(word, known.iter().map(String::as_str)) {
        Some(close) => format!("did you mean `{close}`?"),
        None if known.is_empty() => format!("it has no {what} at all"),
        None if known.len() > LISTED => {
            format!("it has {}, and {} more", quoted(&known[..LISTED], ", "), known.len() - LISTED)
        }
        None => format!("it has {}", quoted(known, ", ")),
    }
}

/// `` `one` and `other` ``
pub(super) fn quoted(names: &[String], between: &str) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(between)
}
