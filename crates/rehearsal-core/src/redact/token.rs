//! Secrets that are recognized by their prefix.

use super::SecretKind;

/// The form of one issuer's secrets.
#[derive(Debug)]
pub(super) struct Token {
    /// The prefix.
    pub(super) prefix: &'static str,
    /// The characters after the prefix.
    alphabet: Alphabet,
    /// The minimum number of characters after the prefix.
    least: usize,
    /// The type of the secret.
    pub(super) kind: SecretKind,
}

#[derive(Debug, Clone, Copy)]
enum Alphabet {
    /// Letters and digits.
    Alphanumeric,
    /// Capitals and digits, exactly `least` of them.
    Capitals,
    /// Letters, digits, `_` and `-`.
    Url,
    /// Letters, digits, `_`, `-` and `.`.
    Dotted,
    /// Letters, digits and the other characters of a path.
    Path,
}

const fn token(prefix: &'static str, alphabet: Alphabet, least: usize, kind: SecretKind) -> Token {
    Token { prefix, alphabet, least, kind }
}

use Alphabet::{Alphanumeric, Capitals, Dotted, Path, Url};

/// The known prefixes and forms.
pub(super) const TOKENS: &[Token] = &[
    token("sk-", Url, 16, SecretKind::ApiKey), // OpenAI, Anthropic, OpenRouter and who follows them
    token("sk_live_", Alphanumeric, 10, SecretKind::ApiKey), // Stripe
    token("sk_test_", Alphanumeric, 10, SecretKind::ApiKey),
    token("rk_live_", Alphanumeric, 10, SecretKind::ApiKey),
    token("rk_test_", Alphanumeric, 10, SecretKind::ApiKey),
    token("whsec_", Alphanumeric, 16, SecretKind::Secret),
    token("ghp_", Alphanumeric, 20, SecretKind::Token), // GitHub
    token("gho_", Alphanumeric, 20, SecretKind::Token),
    token("ghu_", Alphanumeric, 20, SecretKind::Token),
    token("ghs_", Alphanumeric, 20, SecretKind::Token),
    token("ghr_", Alphanumeric, 20, SecretKind::Token),
    token("github_pat_", Url, 20, SecretKind::Token),
    token("glpat-", Dotted, 16, SecretKind::Token), // GitLab
    token("gldt-", Dotted, 16, SecretKind::Token),
    token("glrt-", Dotted, 16, SecretKind::Token),
    token("xoxb-", Url, 10, SecretKind::Token), // Slack
    token("xoxp-", Url, 10, SecretKind::Token),
    token("xoxa-", Url, 10, SecretKind::Token),
    token("xoxr-", Url, 10, SecretKind::Token),
    token("xoxs-", Url, 10, SecretKind::Token),
    token("xoxe-", Url, 10, SecretKind::Token),
    token("xoxc-", Url, 10, SecretKind::Token),
    token("xoxd-", Url, 10, SecretKind::Token),
    token("xapp-", Url, 10, SecretKind::Token),
    token("hooks.slack.com/services/", Path, 16, SecretKind::Url),
    token("discord.com/api/webhooks/", Path, 16, SecretKind::Url),
    token("discordapp.com/api/webhooks/", Path, 16, SecretKind::Url),
    token("AKIA", Capitals, 16, SecretKind::ApiKey), // Amazon
    token("ASIA", Capitals, 16, SecretKind::ApiKey),
    token("AIza", Url, 30, SecretKind::ApiKey), // Google
    token("ya29.", Dotted, 20, SecretKind::Token),
    token("GOCSPX-", Url, 20, SecretKind::Secret),
    token("npm_", Alphanumeric, 30, SecretKind::Token),
    token("pypi-", Url, 32, SecretKind::Token),
    token("hf_", Alphanumeric, 30, SecretKind::Token), // Hugging Face
    token("SG.", Dotted, 40, SecretKind::ApiKey),      // SendGrid
    token("dop_v1_", Alphanumeric, 32, SecretKind::Token), // DigitalOcean
    token("shpat_", Alphanumeric, 32, SecretKind::Token), // Shopify
    token("shpss_", Alphanumeric, 32, SecretKind::Secret),
    token("lin_api_", Alphanumeric, 20, SecretKind::ApiKey), // Linear
    token("figd_", Url, 20, SecretKind::Token),              // Figma
    token("ntn_", Alphanumeric, 30, SecretKind::Token),      // Notion
    token("secret_", Alphanumeric, 40, SecretKind::Token),
    token("dckr_pat_", Url, 20, SecretKind::Token),      // Docker
    token("ATATT3", Url, 40, SecretKind::Token),         // Atlassian
    token("hvs.", Dotted, 20, SecretKind::Token),        // Vault
    token("tskey-", Url, 16, SecretKind::ApiKey),        // Tailscale
    token("glsa_", Url, 30, SecretKind::Token),          // Grafana
    token("sntrys_", Url, 30, SecretKind::Token),        // Sentry
    token("gsk_", Alphanumeric, 30, SecretKind::ApiKey), // Groq
    token("xai-", Alphanumeric, 30, SecretKind::ApiKey),
    token("pplx-", Alphanumeric, 30, SecretKind::ApiKey),
    token("tvly-", Url, 20, SecretKind::ApiKey),
    token("r8_", Alphanumeric, 30, SecretKind::Token), // Replicate
    token("AGE-SECRET-KEY-1", Capitals, 58, SecretKind::PrivateKey),
];

impl Token {
    /// The length of the secret that begins here, if there is one. `text` begins with the prefix, case-insensitive.
    pub(super) fn length(&self, text: &str) -> Option<usize> {
        let rest = text.strip_prefix(self.prefix)?.as_bytes();
        let length = rest.iter().take_while(|byte| self.alphabet.has(**byte)).count();
        // The punctuation of a sentence may follow it.
        let trailing = rest[..length].iter().rev().take_while(|byte| matches!(byte, b'.' | b'-' | b'/')).count();
        let body = &rest[..length - trailing];
        let right = match self.alphabet {
            Capitals => body.len() == self.least,
            Alphanumeric | Url | Dotted | Path => body.len() >= self.least && body.iter().any(u8::is_ascii_digit),
        };
        right.then_some(self.prefix.len() + body.len())
    }
}

impl Alphabet {
    fn has(self, byte: u8) -> bool {
        match self {
            Alphanumeric => byte.is_ascii_alphanumeric(),
            Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Path => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/'),
        }
    }
}

/// The length of the JSON Web Token that begins here: three parts in base64, the first of which is a JSON object; an
/// encrypted one has five.
pub(super) fn jwt(text: &str) -> Option<usize> {
    let length = text.bytes().take_while(|byte| Alphabet::Dotted.has(*byte)).count();
    let whole = text[..length].trim_end_matches('.');
    let mut parts = whole.split('.');
    let head = parts.next().is_some_and(|part| part.len() >= 10);
    let body = parts.next().is_some_and(|part| part.len() >= 4);
    // An unsigned token ends with its second dot.
    (head && body && (parts.next().is_some() || length > whole.len())).then_some(whole.len())
}

/// The length of the secret after `Bearer ` or `Basic ` outside of a header; ordinary words are no secrets.
pub(super) fn after_scheme(text: &str) -> Option<usize> {
    let has = |byte: &u8| byte.is_ascii_alphanumeric() || b"._~+/=-".contains(byte);
    let length = text.as_bytes().iter().take_while(|byte| has(byte)).count();
    let length = text[..length].trim_end_matches('.').len();
    let token = &text.as_bytes()[..length];
    let looks = token.iter().any(u8::is_ascii_digit) || token.ends_with(b"=") || length >= 24 || mixed(token);
    (length >= 8 && looks).then_some(length)
}

/// Whether a word after the name of a secret in a sentence has the form of a secret; `the` in `token: the one you got`
/// has not.
pub(super) fn looks_secret(word: &str) -> bool {
    let bytes = word.as_bytes();
    let odd = |byte: &u8| byte.is_ascii_digit() || b"!@#$%^&*+=/~".contains(byte);
    bytes.len() >= 5 && (bytes.iter().any(odd) || mixed(bytes) || bytes.len() >= 24)
}

/// Whether a word has the form of a random secret, which no ordinary word has.
pub(super) fn looks_random(word: &str) -> bool {
    let bytes = word.as_bytes();
    let count = |test: fn(&u8) -> bool| bytes.iter().filter(|byte| test(byte)).count();
    let path = word.starts_with(['/', '.', '~']);
    bytes.len() >= 16 && count(u8::is_ascii_digit) >= 2 && count(u8::is_ascii_alphabetic) >= 4 && !path
}

/// Whether this is a line of a private key that was printed line by line: exactly this amount of base64.
pub(super) fn key_material(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let any = |test: fn(&u8) -> bool| line.iter().any(test);
    (60..=76).contains(&line.len())
        && line.iter().all(base64)
        && any(u8::is_ascii_lowercase)
        && any(u8::is_ascii_uppercase)
        && any(u8::is_ascii_digit)
}

/// Whether a key of an object should not be shown because it may be a secret itself.
pub(super) fn looks_secret_anywhere(key: &str) -> bool {
    key.len() >= 16 && key.bytes().filter(u8::is_ascii_digit).count() >= 4
}

/// Whether a word has lowercase letters, and capitals after its first character.
fn mixed(bytes: &[u8]) -> bool {
    bytes.iter().skip(1).any(u8::is_ascii_uppercase) && bytes.iter().any(u8::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_about_secrets_has_none() {
        for text in ["authentication is required", "token", "tokens are sent", "auth"] {
            assert_eq!(after_scheme(text), None, "{text}");
        }
        assert_eq!(after_scheme("abc123def456 and"), Some(12));
        assert_eq!(after_scheme("dXNlcjpwYXNz"), Some(12));
    }

    #[test]
    fn a_web_token_has_three_parts() {
        assert_eq!(jwt("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln, and"), Some(41));
        assert_eq!(jwt("eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0. "), Some(35));
        assert_eq!(jwt("eyJwYWdlIjoyfQ=="), None, "a cursor is often the base64 of JSON");
        assert_eq!(jwt("eyJwYWdlIjoyfQ.txt"), None);
    }
}
