//! Whether what stands under a key is a secret, by the key alone.

use super::Kind;

/// What the name of a secret ends with, without separators and in lower case.
const ENDINGS: &[(&str, Kind)] = &[
    ("password", Kind::Password),
    ("passwords", Kind::Password),
    ("passwd", Kind::Password),
    ("passphrase", Kind::Password),
    ("passcode", Kind::Password),
    ("pwd", Kind::Password),
    ("secret", Kind::Secret),
    ("secrets", Kind::Secret),
    ("credential", Kind::Secret),
    ("credentials", Kind::Secret),
    ("creds", Kind::Secret),
    ("connectionstring", Kind::Secret),
    ("token", Kind::Token),
    ("accesstokens", Kind::Token),
    ("refreshtokens", Kind::Token),
    ("authtokens", Kind::Token),
    ("apitokens", Kind::Token),
    ("jwt", Kind::Token),
    ("bearer", Kind::Token),
    ("authorization", Kind::Authorization),
    ("cookie", Kind::Cookie),
    ("cookies", Kind::Cookie),
    ("accesskeyid", Kind::ApiKey),
    ("apikeys", Kind::ApiKey),
    ("privatekey", Kind::PrivateKey),
    ("sshkey", Kind::PrivateKey),
];

/// What stands before `key` in the name of a key that opens something; a `primaryKey` and a `keyboard` do not.
pub(super) const KEY_WORDS: &[&str] = &[
    "access",
    "account",
    "admin",
    "api",
    "app",
    "application",
    "auth",
    "client",
    "decryption",
    "deploy",
    "encryption",
    "function",
    "functions",
    "hmac",
    "integration",
    "license",
    "master",
    "private",
    "root",
    "secret",
    "server",
    "service",
    "session",
    "shared",
    "signing",
    "ssh",
    "storage",
    "subscription",
    "webhook",
];

/// Whole names that are too short to be endings of others.
pub(super) const WHOLE: &[(&str, Kind)] = &[
    ("pin", Kind::Password),
    ("otp", Kind::Password),
    ("totp", Kind::Password),
    ("cvv", Kind::Password),
    ("cvc", Kind::Password),
];

/// Tokens that open nothing: places in a list, words of a text, and the one that pairs progress with its request.
const NOT_TOKENS: &[&str] = &[
    "progress",
    "page",
    "next",
    "continuation",
    "pagination",
    "sync",
    "delta",
    "skip",
    "start",
    "end",
    "resume",
    "cancellation",
    "cancelation",
    "cancel",
    "eos",
    "bos",
    "pad",
    "unk",
    "mask",
    "stop",
    "first",
    "last",
    "per",
    "design",
    "sub",
    "special",
];

/// What may follow the name of a secret without making it something else.
const TAILS: &[&str] =
    &["value", "plaintext", "raw", "confirmation", "confirm", "repeat", "again", "hash", "base64", "b64", "header"];

/// What makes the rest of the name a statement about a secret: `hasPassword`, `maxToken`.
const STATEMENTS: &[&str] = &["has", "is", "max", "min", "num"];

/// Names longer than this are data, not names.
const LONGEST: usize = 128;

/// What kind of secret stands under this key, if one does: `apiKey`, `GITHUB_TOKEN`, `X-Api-Key`, `new password`.
pub(super) fn secret(key: &str) -> Option<Kind> {
    if key.len() > LONGEST || key.len() < 3 {
        return None;
    }
    let words = words(key);
    let mut name = words.as_str().trim_end_matches(|last: char| last.is_ascii_digit());
    if STATEMENTS.iter().any(|first| begins_with_word(key, first)) {
        return None;
    }
    if let Some((_, kind)) = WHOLE.iter().find(|(whole, _)| *whole == name) {
        return Some(*kind);
    }
    for _ in 0..2 {
        if let Some(kind) = ending(name) {
            return Some(kind);
        }
        name = TAILS.iter().find_map(|tail| name.strip_suffix(tail))?;
    }
    ending(name)
}

fn ending(name: &str) -> Option<Kind> {
    if let Some((_, kind)) = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)) {
        let innocent = |rest: &str| NOT_TOKENS.iter().any(|word| rest.ends_with(word));
        return (!name.strip_suffix("token").is_some_and(innocent)).then_some(*kind);
    }
    let before = name.strip_suffix("key")?;
    KEY_WORDS.iter().any(|word| before.ends_with(word)).then_some(Kind::ApiKey)
}

/// Lower case, and without a separator that stands alone between two letters or digits.
fn words(key: &str) -> String {
    let bytes = key.as_bytes();
    let alone = |at: usize| {
        let neighbour = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphanumeric);
        SEPARATORS.contains(&bytes[at]) && neighbour(at.checked_sub(1)) && neighbour(Some(at + 1))
    };
    let kept = key.char_indices().filter(|(at, _)| !alone(*at));
    kept.map(|(_, character)| character.to_ascii_lowercase()).collect()
}

/// What may stand between the words of a key.
pub(super) const SEPARATORS: &[u8] = b"_- .";

/// `has_password` and `hasPassword`, not `hash`.
fn begins_with_word(key: &str, word: &str) -> bool {
    let Some((head, tail)) = key.split_at_checked(word.len()) else { return false };
    let camel = head.ends_with(|last: char| last.is_ascii_lowercase());
    let ends = |next: u8| SEPARATORS.contains(&next) || (camel && next.is_ascii_uppercase());
    head.eq_ignore_ascii_case(word) && tail.bytes().next().is_some_and(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_however_they_are_spelled() {
        for key in [
            "password",
            "Password",
            "PGPASSWORD",
            "db_password",
            "newPassword2",
            "password_confirmation",
            "passwordHash",
            "api_key",
            "apiKey",
            "API-KEY",
            "X-Api-Key",
            "apikey",
            "openai.api.key",
            "access_token",
            "accessToken",
            "GITHUB_TOKEN",
            "token",
            "client_secret",
            "clientSecret",
            "AWS_SECRET_ACCESS_KEY",
            "aws_access_key_id",
            "private_key",
            "privateKey",
            "Authorization",
            "proxy-authorization",
            "Cookie",
            "Set-Cookie",
            "AccountKey",
            "x-amz-security-token",
            "refreshToken",
            "X-CSRF-Token",
            "credentials",
            "connectionString",
            "pin",
            "otp",
            "api_key_2",
            "Ocp-Apim-Subscription-Key",
            "ssh key",
            "secret_value",
            "_authToken",
        ] {
            assert!(secret(key).is_some(), "{key}");
        }
    }

    #[test]
    fn names_of_other_things_are_left_alone() {
        for key in [
            "progressToken",
            "maxTokens",
            "max_tokens",
            "inputTokens",
            "totalTokens",
            "tokens",
            "tokenize",
            "tokenizer",
            "token_count",
            "tokenType",
            "token_endpoint",
            "nextPageToken",
            "page_token",
            "continuationToken",
            "keyboard",
            "key",
            "keys",
            "primaryKey",
            "foreign_key",
            "publicKey",
            "cursor",
            "nextCursor",
            "hasPassword",
            "is_secret",
            "password_length",
            "passwordPolicy",
            "secretName",
            "secret_id",
            "monkey",
            "spinning",
            "opinion",
            "id",
            "name",
            "cookieConsent",
            "authorizationUrl",
            "api__key",
        ] {
            assert_eq!(secret(key), None, "{key}");
        }
    }
}
