//! One linear scan that decides whether a text needs a full search.

use std::sync::LazyLock;

use aho_corasick::packed::{Config, Searcher};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::secret_key::{KEY_WORDS, SECRET_NAMES, SEPARATORS};
use super::token::{TOKENS, Token};

/// A kind of text that may indicate a secret.
#[derive(Debug, Clone, Copy)]
pub(super) enum Signal {
    /// A text that contains another needle and is no secret: `progressToken`, `maxTokens`.
    Harmless,
    /// A part of the name of a secret.
    Name,
    /// The beginning of a known token.
    Token(&'static Token),
    /// The beginning of a JSON Web Token.
    Jwt,
    /// `Bearer ` or `Basic `.
    Scheme,
    /// The beginning of a private key.
    Pem,
    /// The middle of a URL.
    Url,
    /// An escape, because an escaped character could hide any other needle.
    Escape,
    /// A program that takes passwords as arguments.
    Command,
}

/// Parts of names, in lower case and without separators; each of the `SECRET_SUFFIXES` in `secret_key` contains one.
const NAMES: &[&str] = &[
    "pass",
    "passw",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "credential",
    "creds",
    "token",
    "jwt",
    "bearer",
    "authorization",
    "authentication",
    "cookie",
    "mnemonic",
    "signature",
];

/// Names of several words with varying separators.
const PAIRS: &[(&str, &str)] = &[
    ("pass", "word"),
    ("pass", "wd"),
    ("pass", "phrase"),
    ("pass", "code"),
    ("connection", "string"),
    ("access", "tokens"),
    ("refresh", "tokens"),
    ("auth", "tokens"),
    ("api", "tokens"),
    ("code", "verifier"),
    ("auth", "code"),
    ("seed", "phrase"),
    ("recovery", "phrase"),
    ("security", "answer"),
];

/// Names that many other words begin with, so the character after them is part of the needle.
const PREFIX_NAMES: &[&str] = &["auth", "pat"];
const NAME_TERMINATORS: &[&str] = &["\"", "'", "\\", "=", ":", ">", " "];

/// Programs that take a password as an argument, and flags for it.
pub(super) const COMMANDS: &[&str] = &["curl ", "mysql", "sshpass ", "\"-u\"", "--user"];

/// Lists of tokens; a count of tokens is harmless.
const LISTS: &[&str] = &["tokens\":[", "tokens\": ["];

/// With the characters that end them; otherwise `tokens` would hide the secret in `tokenSecret`.
const HARMLESS: &[&str] = &["progresstoken\"", "tokens\"", "tokens ", "tokeniz", "nextpagetoken\""];

static NEEDLES: LazyLock<(AhoCorasick, Vec<Signal>)> = LazyLock::new(|| {
    let mut texts: Vec<String> = Vec::new();
    let mut needles = Vec::new();
    let mut put = |text: String, needle| {
        texts.push(text);
        needles.push(needle);
    };
    NAMES.iter().for_each(|name| put((*name).to_owned(), Signal::Name));
    let keys = KEY_WORDS.iter().map(|word| (*word, "key"));
    for (first, second) in keys.chain(PAIRS.iter().copied()) {
        put(format!("{first}{second}"), Signal::Name);
        let separated = SEPARATORS.iter().map(|separator| format!("{first}{}{second}", char::from(*separator)));
        separated.for_each(|text| put(text, Signal::Name));
    }
    // These are so short that they are names only with a quote before them.
    SECRET_NAMES.iter().for_each(|(name, _)| put(format!("\"{name}"), Signal::Name));
    for name in PREFIX_NAMES {
        NAME_TERMINATORS.iter().for_each(|end| put(format!("{name}{end}"), Signal::Name));
    }
    LISTS.iter().for_each(|text| put((*text).to_owned(), Signal::Name));
    COMMANDS.iter().for_each(|text| put((*text).to_owned(), Signal::Command));
    HARMLESS.iter().for_each(|text| put((*text).to_owned(), Signal::Harmless));
    TOKENS.iter().for_each(|token| put(token.prefix.to_owned(), Signal::Token(token)));
    put("eyJ".to_owned(), Signal::Jwt);
    put("bearer ".to_owned(), Signal::Scheme);
    put("basic ".to_owned(), Signal::Scheme);
    put("-----BEGIN ".to_owned(), Signal::Pem);
    put("://".to_owned(), Signal::Url);
    put("\\u00".to_owned(), Signal::Escape);
    let mut builder = AhoCorasick::builder();
    builder.ascii_case_insensitive(true).match_kind(MatchKind::LeftmostLongest).kind(Some(AhoCorasickKind::DFA));
    (builder.build(&texts).expect("a few hundred short needles fit any automaton"), needles)
});

/// A needle that was found.
pub(super) struct SignalMatch {
    pub(super) needle: Signal,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Every needle in a text, in order, without the harmless ones.
pub(super) fn find(text: &[u8]) -> impl Iterator<Item = SignalMatch> {
    let (automaton, needles) = &*NEEDLES;
    let found = automaton.find_iter(text).map(|found| SignalMatch {
        needle: needles[found.pattern().as_usize()],
        start: found.start(),
        end: found.end(),
    });
    found.filter(|found| !matches!(found.needle, Signal::Harmless))
}

/// A part of every needle that is a name, in its usual spellings: `token`, `Token`, `TOKEN`.
const SIGNAL_FRAGMENTS: &[&str] = &[
    "pass",
    "Pass",
    "PASS",
    "pwd",
    "Pwd",
    "PWD",
    "ecret",
    "ECRET",
    "reden",
    "REDEN",
    "reds",
    "REDS",
    "oken",
    "OKEN",
    "jwt",
    "Jwt",
    "JWT",
    "earer",
    "EARER",
    "uth",
    "UTH",
    "pat\"",
    "PAT\"",
    "pat\\",
    "PAT\\",
    "pat=",
    "PAT=",
    "pat:",
    "PAT:",
    "ignature",
    "IGNATURE",
    "nemonic",
    "NEMONIC",
    "phrase",
    "PHRASE",
    "erifier",
    "ERIFIER",
    "nswer",
    "NSWER",
    "curl ",
    "mysql",
    "\"-u\"",
    "--user",
    "ookie",
    "OOKIE",
    "asic ",
    "ASIC ",
    "key",
    "Key",
    "KEY",
    "onnection",
    "ONNECTION",
    "\"pin",
    "\"PIN",
    "\"otp",
    "\"OTP",
    "\"totp",
    "\"TOTP",
    "\"cvv",
    "\"CVV",
    "\"cvc",
    "\"CVC",
];

/// The searchers for the signs of names and of values. With SIMD a search takes a few instructions for 32 bytes; one
/// search has room for 64 signs.
static FIRST: LazyLock<Option<[Searcher; 2]>> = LazyLock::new(|| {
    let build = |signs: &[&str]| Config::new().builder().extend(signs).build();
    let tokens = TOKENS.iter().map(|token| token.prefix);
    let values: Vec<&str> = tokens.chain(["eyJ", "-----BEGIN ", "://", "\\u00"]).collect();
    Some([build(SIGNAL_FRAGMENTS)?, build(&values)?])
});

const PROGRESS: &[u8] = b"\"progressToken\"";

/// Maximum distance between a sign and the ends of its needle, in bytes.
const MAX_SIGNAL_SPAN: usize = 40;

/// Whether a text contains anything suspicious.
pub(super) fn suspicious(text: &[u8]) -> bool {
    match &*FIRST {
        Some(first) => first.iter().any(|signs| places(signs, text).next().is_some()),
        None => find(text).next().is_some(),
    }
}

/// A position in each suspicious part of a text, in order; some of them may be harmless.
pub(super) fn suspicions(text: &[u8]) -> Box<dyn Iterator<Item = usize> + '_> {
    match &*FIRST {
        Some([names, values]) => Box::new(merged(places(names, text), places(values, text))),
        None => Box::new(find(text).map(|found| found.start)),
    }
}

/// Merges two ordered sequences of positions.
pub(super) fn merged(
    left: impl Iterator<Item = usize>,
    right: impl Iterator<Item = usize>,
) -> impl Iterator<Item = usize> {
    let (mut left, mut right) = (left.peekable(), right.peekable());
    std::iter::from_fn(move || match (left.peek(), right.peek()) {
        (Some(first), Some(second)) if second < first => right.next(),
        (Some(_), _) => left.next(),
        (None, _) => right.next(),
    })
}

/// The positions of the signs that belong to a needle.
fn places<'t>(signs: &'t Searcher, text: &'t [u8]) -> impl Iterator<Item = usize> + 't {
    let is_needle = move |sign: &aho_corasick::Match| {
        // Many clients send a progress token in every request.
        let progress = sign.start().checked_sub(PROGRESS.len() - 5);
        if progress.is_some_and(|start| text[start..].starts_with(PROGRESS)) {
            return false;
        }
        let window = sign.start().saturating_sub(MAX_SIGNAL_SPAN)..text.len().min(sign.end() + MAX_SIGNAL_SPAN);
        find(&text[window]).next().is_some()
    };
    signs.find_iter(text).filter(is_needle).map(|sign| sign.start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::secret_key;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_name_of_a_secret_gets_past_the_first_scan(
            words in prop::collection::vec(prop::sample::select(vec![
                "pass", "word", "api", "key", "access", "token", "Secret", "auth", "PASSWORD", "connection", "string", "pin",
                "otp", "jwt", "id", "private", "header", "hash", "tokens", "s", "creds", "Credential", "cookie", "pwd", "is",
                "signature", "mnemonic", "code", "verifier", "seed", "phrase", "security", "answer", "authorization",
            ]), 1..4),
            separators in prop::collection::vec(prop::sample::select(vec!["", "_", "-", " ", ".", "__"]), 3),
        ) {
            let name: String = words.iter().zip(separators).map(|(word, separator)| format!("{separator}{word}")).collect();
            if secret_key::secret(&name).is_some() {
                prop_assert!(suspicious(format!("\"{name}\"").as_bytes()), "{}", name);
            }
        }
    }

    #[test]
    fn the_first_scan_has_room_for_all_signs() {
        assert!(FIRST.is_some());
    }

    #[test]
    fn the_protocol_is_not_suspicious() {
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"x","maxTokens":3}}"#;
        assert!(!suspicious(message));
    }
}
