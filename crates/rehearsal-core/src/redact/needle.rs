//! The one linear scan that decides whether anything needs a closer look.

use std::sync::LazyLock;

use aho_corasick::packed::{Config, Searcher};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::key::{KEY_WORDS, SEPARATORS, WHOLE};
use super::token::{TOKENS, Token};

/// What is looked for in every text.
#[derive(Debug, Clone, Copy)]
pub(super) enum Needle {
    /// What would be mistaken for another needle and is none: `progressToken`, `maxTokens`.
    Harmless,
    /// A piece of the name of a secret.
    Name,
    /// What a secret begins with.
    Token(&'static Token),
    /// What a JSON Web Token begins with.
    Jwt,
    /// `Bearer ` or `Basic `.
    Scheme,
    /// What a private key begins with.
    Pem,
    /// The middle of a URL.
    Url,
    /// A letter that is written as an escape could hide any of these.
    Escape,
    /// A program that takes passwords as words of its command line.
    Command,
}

/// Pieces of names, in lower case and without separators; `ENDINGS` of `key` each contain one.
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

/// Names of several words, whose separators vary.
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

/// Names that begin too many others, with what ends them.
const ENDED: &[&str] = &["auth", "pat"];
const ENDS: &[&str] = &["\"", "'", "\\", "=", ":", ">", " "];

/// Programs that are given a password in a word of their command line, and flags by which they are.
pub(super) const COMMANDS: &[&str] = &["curl ", "mysql", "sshpass ", "\"-u\"", "--user"];

/// Lists of tokens; a number of them is harmless.
const LISTS: &[&str] = &["tokens\":[", "tokens\": ["];

/// With what ends them, or `tokens` would hide the secret in `tokenSecret`.
const HARMLESS: &[&str] = &["progresstoken\"", "tokens\"", "tokens ", "tokeniz", "nextpagetoken\""];

static NEEDLES: LazyLock<(AhoCorasick, Vec<Needle>)> = LazyLock::new(|| {
    let mut texts: Vec<String> = Vec::new();
    let mut needles = Vec::new();
    let mut put = |text: String, needle| {
        texts.push(text);
        needles.push(needle);
    };
    NAMES.iter().for_each(|name| put((*name).to_owned(), Needle::Name));
    let keys = KEY_WORDS.iter().map(|word| (*word, "key"));
    for (first, second) in keys.chain(PAIRS.iter().copied()) {
        put(format!("{first}{second}"), Needle::Name);
        let separated = SEPARATORS.iter().map(|separator| format!("{first}{}{second}", char::from(*separator)));
        separated.for_each(|text| put(text, Needle::Name));
    }
    // These are so short that only a quote in front makes names of them.
    WHOLE.iter().for_each(|(name, _)| put(format!("\"{name}"), Needle::Name));
    for name in ENDED {
        ENDS.iter().for_each(|end| put(format!("{name}{end}"), Needle::Name));
    }
    LISTS.iter().for_each(|text| put((*text).to_owned(), Needle::Name));
    COMMANDS.iter().for_each(|text| put((*text).to_owned(), Needle::Command));
    HARMLESS.iter().for_each(|text| put((*text).to_owned(), Needle::Harmless));
    TOKENS.iter().for_each(|token| put(token.prefix.to_owned(), Needle::Token(token)));
    put("eyJ".to_owned(), Needle::Jwt);
    put("bearer ".to_owned(), Needle::Scheme);
    put("basic ".to_owned(), Needle::Scheme);
    put("-----BEGIN ".to_owned(), Needle::Pem);
    put("://".to_owned(), Needle::Url);
    put("\\u00".to_owned(), Needle::Escape);
    let mut builder = AhoCorasick::builder();
    builder.ascii_case_insensitive(true).match_kind(MatchKind::LeftmostLongest).kind(Some(AhoCorasickKind::DFA));
    (builder.build(&texts).expect("a few hundred short needles fit any automaton"), needles)
});

/// A needle that was found.
pub(super) struct Found {
    pub(super) needle: Needle,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Everything suspicious in a text, in order; what is harmless is left out.
pub(super) fn find(text: &[u8]) -> impl Iterator<Item = Found> {
    let (automaton, needles) = &*NEEDLES;
    let found = automaton.find_iter(text).map(|found| Found {
        needle: needles[found.pattern().as_usize()],
        start: found.start(),
        end: found.end(),
    });
    found.filter(|found| !matches!(found.needle, Needle::Harmless))
}

/// A piece of every needle that is a name, in each way in which people write it: `token`, `Token`, `TOKEN`.
const SIGNS: &[&str] = &[
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

/// The signs of names and those of values. Each is found with a few instructions for 32 bytes at once, where the processor
/// has them; there is room for 64 in one search.
static FIRST: LazyLock<Option<[Searcher; 2]>> = LazyLock::new(|| {
    let build = |signs: &[&str]| Config::new().builder().extend(signs).build();
    let tokens = TOKENS.iter().map(|token| token.prefix);
    let values: Vec<&str> = tokens.chain(["eyJ", "-----BEGIN ", "://", "\\u00"]).collect();
    Some([build(SIGNS)?, build(&values)?])
});

const PROGRESS: &[u8] = b"\"progressToken\"";

/// How far before and after a sign the needle that has it may reach.
const REACH: usize = 40;

/// Whether there is anything in a text that is worth a closer look.
pub(super) fn suspicious(text: &[u8]) -> bool {
    match &*FIRST {
        Some(first) => first.iter().any(|signs| places(signs, text).next().is_some()),
        None => find(text).next().is_some(),
    }
}

/// A place in each thing in a text that is worth a closer look, in order; some of them are worth none.
pub(super) fn suspicions(text: &[u8]) -> Box<dyn Iterator<Item = usize> + '_> {
    match &*FIRST {
        Some([names, values]) => Box::new(merged(places(names, text), places(values, text))),
        None => Box::new(find(text).map(|found| found.start)),
    }
}

/// Two rows of places as one.
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

/// Where signs stand that are those of a needle.
fn places<'t>(signs: &'t Searcher, text: &'t [u8]) -> impl Iterator<Item = usize> + 't {
    let is_needle = move |sign: &aho_corasick::Match| {
        // Many clients put one into every request.
        let progress = sign.start().checked_sub(PROGRESS.len() - 5);
        if progress.is_some_and(|start| text[start..].starts_with(PROGRESS)) {
            return false;
        }
        let window = sign.start().saturating_sub(REACH)..text.len().min(sign.end() + REACH);
        find(&text[window]).next().is_some()
    };
    signs.find_iter(text).filter(is_needle).map(|sign| sign.start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::key;
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
            if key::secret(&name).is_some() {
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
