//! The state of one search for secrets.

use std::ops::Range;

use regex::Regex;

use super::pseudonym::Edit;
use super::pseudonym::{is_number, is_pseudonym, number, pseudonym};
use super::redacted::{RedactedSecret, SecretKind};
use super::{prefilter, token};
use crate::json::{PathStep, Segment, Unescaped};

/// The rules of a search.
#[derive(Debug, Default, Clone)]
pub(super) struct RuleSet {
    /// Whether the standard rules apply.
    pub(super) standard: bool,
    /// The paths of the user's rules.
    pub(super) places: Vec<Vec<PathStep>>,
    /// The patterns of the user's rules.
    pub(super) patterns: Vec<Regex>,
}

impl RuleSet {
    /// Whether a text may contain a secret; if not, no search is needed.
    pub(super) fn suspect(&self, text: &[u8]) -> bool {
        !self.places.is_empty() || !self.patterns.is_empty() || (self.standard && prefilter::suspicious(text))
    }
}

/// A search through one text. Nested texts are searched with the same `Scan`, and their edits are moved to their
/// position in the outer text.
pub(super) struct SecretScan<'r> {
    pub(super) rules: &'r RuleSet,
    pub(super) edits: Vec<Edit>,
    pub(super) hits: Vec<RedactedSecret>,
    /// The searched data: `header cookie`, `stderr`; empty for a message.
    pub(super) place: String,
    /// The current path in it.
    pub(super) path: Vec<Segment>,
    /// How many JSON strings with JSON texts in them are around the current text.
    pub(super) nesting: usize,
}

impl<'r> SecretScan<'r> {
    pub(super) fn new(rules: &'r RuleSet, place: impl Into<String>) -> SecretScan<'r> {
        SecretScan { rules, edits: Vec::new(), hits: Vec::new(), place: place.into(), path: Vec::new(), nesting: 0 }
    }

    /// Replaces a piece of `text`, unless it is empty or a pseudonym already.
    pub(super) fn redact_range(&mut self, text: &str, range: Range<usize>, kind: SecretKind) {
        let secret = &text[range.clone()];
        if secret.is_empty() || is_pseudonym(secret) {
            return;
        }
        self.edits.push(Edit { range, with: pseudonym(secret) });
        self.hit(kind);
    }

    /// Replaces a number by a number.
    pub(super) fn hide_number(&mut self, text: &str, range: Range<usize>, kind: SecretKind) {
        let secret = &text[range.clone()];
        if !is_number(secret) {
            self.edits.push(Edit { range, with: number(secret) });
            self.hit(kind);
        }
    }

    /// Replaces the value of a secret's name; the scheme of an authorization stays.
    pub(super) fn redact_whole(&mut self, text: &str, kind: SecretKind) {
        let is_pwd = |key: &str| key.to_ascii_lowercase().ends_with("pwd");
        // `PWD` may be a password, and is the working directory in every shell.
        if kind == SecretKind::Password && is_path(text) && self.last_key().is_some_and(is_pwd) {
            return;
        }
        let start = if kind == SecretKind::Authorization { after_scheme_word(text) } else { 0 };
        self.redact_range(text, start..text.len(), kind);
    }

    /// Searches a range of a text, such as one of its strings.
    pub(super) fn within(&mut self, text: &str, range: Range<usize>, search: impl FnOnce(&mut Self, &str)) {
        let outer = std::mem::take(&mut self.edits);
        search(self, &text[range.clone()]);
        let inner = std::mem::replace(&mut self.edits, outer);
        let moved = |edit: Edit| Edit { range: edit.range.start + range.start..edit.range.end + range.start, ..edit };
        self.edits.extend(inner.into_iter().map(moved));
    }

    /// Searches the value of a JSON string; `range` is the range between its quotes.
    pub(super) fn within_string(&mut self, text: &str, range: Range<usize>, search: impl FnOnce(&mut Self, &str)) {
        if !text[range.clone()].contains('\\') {
            return self.within(text, range, search);
        }
        let unescaped = Unescaped::new(&text[range.clone()]);
        let outer = std::mem::take(&mut self.edits);
        search(self, &unescaped.text);
        let inner = std::mem::replace(&mut self.edits, outer);
        let place = |at: usize| range.start + unescaped.place(at);
        let moved = |edit: Edit| Edit { range: place(edit.range.start)..place(edit.range.end), ..edit };
        self.edits.extend(inner.into_iter().map(moved));
    }

    /// Runs a search that may fail; its edits are kept only if it returns `Ok`.
    pub(super) fn attempt<T, E>(&mut self, search: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        let (edits, hits, path) = (self.edits.len(), self.hits.len(), self.path.len());
        let found = search(self);
        if found.is_err() {
            self.edits.truncate(edits);
            self.hits.truncate(hits);
        }
        self.path.truncate(path);
        found
    }

    fn hit(&mut self, kind: SecretKind) {
        let place = self.here();
        self.hits.push(RedactedSecret { kind, place });
    }

    /// The place for users: `$.result.content[*].text`, `stderr`.
    fn here(&self) -> String {
        let mut place = self.place.clone();
        if place.is_empty() {
            place.push('$');
        } else if !self.path.is_empty() {
            place.push(' ');
        }
        for segment in &self.path {
            match segment {
                Segment::Index(_) => place.push_str("[*]"),
                Segment::Key(key) if key.len() <= 40 && !token::looks_secret_anywhere(key) => {
                    if !place.is_empty() && !place.ends_with(' ') {
                        place.push('.');
                    }
                    place.push_str(key);
                }
                // A key may be a secret itself, or any data of a user.
                Segment::Key(_) => place.push_str(".*"),
            }
        }
        place
    }

    fn last_key(&self) -> Option<&str> {
        self.path.iter().rev().find_map(|segment| match segment {
            Segment::Key(key) => Some(key.as_str()),
            Segment::Index(_) => None,
        })
    }
}

/// The start of the credentials: after `Bearer `, `Basic ` or any other scheme.
pub(super) fn after_scheme_word(text: &str) -> usize {
    let trimmed = text.trim_start();
    let lead = text.len() - trimmed.len();
    match trimmed.split_once(' ') {
        Some((scheme, rest))
            if !scheme.is_empty()
                && scheme.len() <= 24
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !rest.trim().is_empty() =>
        {
            lead + scheme.len() + 1 + (rest.len() - rest.trim_start().len())
        }
        _ => 0,
    }
}

fn is_path(text: &str) -> bool {
    text.starts_with(['/', '~', '.']) || text.as_bytes().get(1..3) == Some(b":\\")
}
