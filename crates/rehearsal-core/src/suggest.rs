//! "Did you mean …?"

/// The candidate that is closest to a misspelled `word`, if one is close enough.
///
/// ```
/// # use rehearsal_core::suggest::closest;
/// assert_eq!(closest("get_wether", ["get_weather", "search"]), Some("get_weather"));
/// assert_eq!(closest("xyz", ["get_weather", "search"]), None);
/// ```
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let score = |candidate: &'a str| (strsim::jaro_winkler(&word.to_lowercase(), &candidate.to_lowercase()), candidate);
    let best = candidates.into_iter().map(score).max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(score, _)| *score >= 0.8).map(|(_, candidate)| candidate)
}

/// Whether two names differ in so few characters that one is a misspelling of the other.
///
/// ```
/// # use rehearsal_core::suggest::is_misspelling;
/// assert!(is_misspelling("get_wether", "get_weather"));
/// assert!(!is_misspelling("get_roots", "get_resources"));
/// ```
pub fn is_misspelling(word: &str, candidate: &str) -> bool {
    strsim::osa_distance(&word.to_lowercase(), &candidate.to_lowercase()) <= MAX_MISTAKES
}

/// Maximum number of inserted, removed, changed or exchanged characters in a misspelling.
const MAX_MISTAKES: usize = 2;
