//! Decides by a key alone whether its value is a secret.

use super::SecretKind;

/// Endings of the names of secrets, in lower case and without separators.
const SECRET_SUFFIXES: &[(&str, SecretKind)] = &[
    ("password", SecretKind::Password),
    ("passwords", SecretKind::Password),
    ("passwd", SecretKind::Password),
    ("passphrase", SecretKind::Password),
    ("passcode", SecretKind::Password),
    ("pwd", SecretKind::Password),
    ("userpass", SecretKind::Password),
    ("dbpass", SecretKind::Password),
    ("securityanswer", SecretKind::Password),
    ("seedphrase", SecretKind::Secret),
    ("recoveryphrase", SecretKind::Secret),
    ("mnemonic", SecretKind::Secret),
    ("codeverifier", SecretKind::Secret),
    ("authorizationcode", SecretKind::Secret),
    ("authcode", SecretKind::Secret),
    ("secret", SecretKind::Secret),
    ("secrets", SecretKind::Secret),
    ("credential", SecretKind::Secret),
    ("credentials", SecretKind::Secret),
    ("creds", SecretKind::Secret),
    ("connectionstring", SecretKind::Secret),
    ("token", SecretKind::Token),
    ("accesstokens", SecretKind::Token),
    ("refreshtokens", SecretKind::Token),
    ("authtokens", SecretKind::Token),
    ("apitokens", SecretKind::Token),
    ("jwt", SecretKind::Token),
    ("bearer", SecretKind::Token),
    ("authorization", SecretKind::Authorization),
    ("cookie", SecretKind::Cookie),
    ("cookies", SecretKind::Cookie),
    ("accesskeyid", SecretKind::ApiKey),
    ("apikeys", SecretKind::ApiKey),
    ("privatekey", SecretKind::PrivateKey),
    ("sshkey", SecretKind::PrivateKey),
];

/// Words before `key` in the name of a secret key; a `primaryKey` and a `keyboard` are no secrets.
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
pub(super) const SECRET_NAMES: &[(&str, SecretKind)] = &[
    ("pin", SecretKind::Password),
    ("otp", SecretKind::Password),
    ("totp", SecretKind::Password),
    ("cvv", SecretKind::Password),
    ("cvc", SecretKind::Password),
];

/// Tokens that are no secrets: cursors, words of a text, and the progress token.
const TOKEN_EXCEPTIONS: &[&str] = &[
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
    "input",
    "output",
    "total",
    "prompt",
    "completion",
    "used",
];

/// Names that end in "pass" and are no passwords: compiler passes, filters, boarding passes.
const PASS_EXCEPTIONS: &[&str] = &[
    "first", "second", "third", "one", "two", "single", "multi", "pre", "post", "final", "last", "next", "full",
    "half", "low", "high", "band", "all", "by", "per", "test", "tests", "did", "should", "must", "not", "render",
    "boarding",
];

/// Names that may mean a secret or something else, so that the value decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AmbiguousName {
    /// `pass`: a password, or the result of a test.
    Pass,
    /// `auth`, `X-Custom-Auth`: credentials, or an authentication method.
    Auth,
    /// `signature`: of a request, or of a function.
    Signature,
    /// `pat`, `GITHUB_PAT`: a personal access token, or a short pattern.
    Pat,
    /// `tokens`: secrets, a count, or the words of a text.
    Tokens,
}

/// Authentication methods, and words for whether authentication is required.
const METHODS: &[&str] = &[
    "none", "basic", "bearer", "digest", "oauth", "oauth2", "oidc", "saml", "jwt", "apikey", "api_key", "api-key",
    "token", "password", "required", "optional", "enabled", "disabled", "yes", "no", "on", "off", "true", "false",
    "ok", "failed",
];

impl AmbiguousName {
    /// The type of the secret, if it is one.
    pub(super) fn kind(self) -> SecretKind {
        match self {
            AmbiguousName::Pass => SecretKind::Password,
            AmbiguousName::Auth => SecretKind::Authorization,
            AmbiguousName::Signature => SecretKind::Secret,
            AmbiguousName::Pat | AmbiguousName::Tokens => SecretKind::Token,
        }
    }

    /// Whether this value of such a name is a secret.
    pub(super) fn is_secret(self, value: &str) -> bool {
        let mut words = value.split_whitespace();
        let (first, second, more) = (words.next().unwrap_or_default(), words.next(), words.next());
        let alone = second.is_none() && !first.is_empty();
        let has = |test: fn(&u8) -> bool| first.as_bytes().iter().any(test);
        match self {
            AmbiguousName::Pass => true,
            AmbiguousName::Auth => {
                let credentials = second.unwrap_or(first);
                more.is_none() && !METHODS.iter().any(|method| method.eq_ignore_ascii_case(credentials))
            }
            AmbiguousName::Signature => alone && first.len() >= 8 && !first.contains('('),
            AmbiguousName::Pat => alone,
            AmbiguousName::Tokens => {
                alone && first.len() >= 8 && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
            }
        }
    }
}

/// The ambiguous about a key that [`secret`] does not recognize, if its value may be a secret.
pub(super) fn ambiguous_name(key: &str) -> Option<AmbiguousName> {
    if key.len() > LONGEST || NEUTRAL_PREFIXES.iter().any(|first| begins_with_word(key, first)) {
        return None;
    }
    let (before, last) = last_word(key);
    match last.to_ascii_lowercase().as_str() {
        "pass" if before.is_empty() => Some(AmbiguousName::Pass),
        "auth" | "authentication" => Some(AmbiguousName::Auth),
        "signature" => Some(AmbiguousName::Signature),
        "pat" => Some(AmbiguousName::Pat),
        "tokens" => Some(AmbiguousName::Tokens),
        _ => None,
    }
}

/// Splits off the last word: `db_` and `pass` of `db_pass`, `db` and `Pass` of `dbPass`.
fn last_word(key: &str) -> (&str, &str) {
    let bytes = key.as_bytes();
    let begins = |at: &usize| {
        let (before, here) = (bytes[*at - 1], bytes[*at]);
        SEPARATORS.contains(&before) || (before.is_ascii_lowercase() && here.is_ascii_uppercase())
    };
    key.split_at((1..key.len()).rev().find(begins).unwrap_or(0))
}

/// Whether the name ends in the word "pass": `SMTP_PASS`, `dbPass`.
fn is_pass(key: &str) -> bool {
    let (before, last) = last_word(key);
    let before =
        last_word(before.trim_end_matches(|last: char| last.is_ascii() && SEPARATORS.contains(&(last as u8)))).1;
    last.eq_ignore_ascii_case("pass")
        && !before.is_empty()
        && !PASS_EXCEPTIONS.iter().any(|word| word.eq_ignore_ascii_case(before))
}

/// Suffixes after which the name still means the secret.
const NEUTRAL_SUFFIXES: &[&str] =
    &["value", "plaintext", "raw", "confirmation", "confirm", "repeat", "again", "hash", "base64", "b64", "header"];

/// Prefixes that make a name a statement about a secret: `hasPassword`, `maxToken`.
const NEUTRAL_PREFIXES: &[&str] = &["has", "is", "max", "min", "num"];

/// Maximum length of a name, in bytes; longer keys are data.
const LONGEST: usize = 128;

/// The type of secret under this key, if there is one: `apiKey`, `GITHUB_TOKEN`, `X-Api-Key`, `new password`.
pub(super) fn secret(key: &str) -> Option<SecretKind> {
    if key.len() > LONGEST || key.len() < 3 {
        return None;
    }
    let words = words(key);
    let mut name = words.as_str().trim_end_matches(|last: char| last.is_ascii_digit());
    if NEUTRAL_PREFIXES.iter().any(|first| begins_with_word(key, first)) {
        return None;
    }
    if let Some((_, kind)) = SECRET_NAMES.iter().find(|(whole, _)| *whole == name) {
        return Some(*kind);
    }
    if is_pass(key) {
        return Some(SecretKind::Password);
    }
    for _ in 0..2 {
        if let Some(kind) = ending(name) {
            return Some(kind);
        }
        name = NEUTRAL_SUFFIXES.iter().find_map(|tail| name.strip_suffix(tail))?;
    }
    ending(name)
}

fn ending(name: &str) -> Option<SecretKind> {
    if let Some((_, kind)) = SECRET_SUFFIXES.iter().find(|(ending, _)| name.ends_with(ending)) {
        let innocent = |rest: &str| TOKEN_EXCEPTIONS.iter().any(|word| rest.ends_with(word));
        return (!name.strip_suffix("token").is_some_and(innocent)).then_some(*kind);
    }
    let before = name.strip_suffix("key")?;
    KEY_WORDS.iter().any(|word| before.ends_with(word)).then_some(SecretKind::ApiKey)
}

/// Converts to lower case, and removes single separators between two letters or digits.
fn words(key: &str) -> String {
    let bytes = key.as_bytes();
    let alone = |at: usize| {
        let neighbour = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphanumeric);
        SEPARATORS.contains(&bytes[at]) && neighbour(at.checked_sub(1)) && neighbour(Some(at + 1))
    };
    let kept = key.char_indices().filter(|(at, _)| !alone(*at));
    kept.map(|(_, character)| character.to_ascii_lowercase()).collect()
}

/// Separators between the words of a key.
pub(super) const SEPARATORS: &[u8] = b"_- .";

/// Whether a key begins with a whole word: `has_password` and `hasPassword`, not `hash`.
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
    fn names_of_secrets_are_recognized_in_every_spelling() {
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
            "db_pass",
            "SMTP_PASS",
            "dbPass",
            "X-Pass",
            "authorization_code",
            "code_verifier",
            "seed_phrase",
            "mnemonic",
            "security_answer",
        ] {
            assert!(secret(key).is_some(), "{key}");
        }
    }

    #[test]
    fn names_of_other_values_are_no_secrets() {
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
            "compass",
            "passed",
            "bypass",
            "first_pass",
            "lowPass",
            "boarding-pass",
            "author",
            "oauth_enabled",
            "inputToken",
        ] {
            assert_eq!(secret(key), None, "{key}");
        }
    }

    #[test]
    fn the_value_decides_under_an_ambiguous_name() {
        for (key, value, expected) in [
            ("pass", "hunter2", true),
            ("auth", "hunter2", true),
            ("auth", "Bearer hunter2", true),
            ("auth", "oauth2", false),
            ("authentication", "you need a key for this", false),
            ("authentication", "abc", true),
            ("X-Custom-Auth", "abc", true),
            ("X-Signature", "sha256=0123456789", true),
            ("signature", "fn main() -> ()", false),
            ("signature", "main(int)", false),
            ("GITHUB_PAT", "abc", true),
            ("tokens", "abc-123-def", true),
            ("tokens", "world", false),
        ] {
            assert_eq!(
                ambiguous_name(key).is_some_and(|ambiguous| ambiguous.is_secret(value)),
                expected,
                "{key}: {value}"
            );
        }
        for key in
            ["compass", "passed", "path", "spat", "author", "authenticated", "requiresAuthor", "has_auth", "maxTokens"]
        {
            assert_eq!(ambiguous_name(key).filter(|ambiguous| *ambiguous != AmbiguousName::Tokens), None, "{key}");
        }
    }
}
