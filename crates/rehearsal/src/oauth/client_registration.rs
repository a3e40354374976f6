//! How an authorization server identifies the client: by its registration, or by a key that it signs with.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig};
use serde_json::{Value, json};

use super::options::{OAuth, OAuthError};
use super::token_store::Login;

/// The client of an earlier login, which is used again if neither the issuer nor the redirect URI has changed.
pub(super) fn known(login: &Login, redirect_uri: &str, issuer: Option<&str>) -> Option<OAuthClientConfig> {
    let same = login.issuer.as_deref() == issuer && login.redirect_uri.as_deref() == Some(redirect_uri);
    same.then(|| client(&login.client_id, login.client_secret.clone(), redirect_uri))
}

/// The client of a login, for requests that need no browser.
pub(super) fn client_of_login(login: &Login, server: &str) -> OAuthClientConfig {
    let redirect_uri = login.redirect_uri.as_deref().unwrap_or(server);
    client(&login.client_id, login.client_secret.clone(), redirect_uri)
}

fn client(id: &str, secret: Option<String>, redirect_uri: &str) -> OAuthClientConfig {
    let config = OAuthClientConfig::new(id, redirect_uri);
    match secret {
        Some(secret) => config.with_client_secret(secret),
        None => config,
    }
}

/// Finds or registers the client id for the authorization server, and configures `manager` with it.
pub(super) async fn identify(
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
    oauth: &OAuth,
    redirect_uri: &str,
    scopes: &[&str],
) -> Result<OAuthClientConfig, OAuthError> {
    let reads_documents = metadata.additional_fields.get("client_id_metadata_document_supported");
    let reads_documents = reads_documents.and_then(Value::as_bool).unwrap_or(false);
    let config = match (&oauth.client, &oauth.metadata_url) {
        (Some((id, secret)), _) => client(id, secret.clone(), redirect_uri),
        (None, Some(url)) if reads_documents && is_client_id(url) => client(url, None, redirect_uri),
        (None, Some(url)) if reads_documents => {
            let what = format!("{url:?} cannot be a client id: it must be an https URL with a path");
            return Err(AuthError::RegistrationFailed(what).into());
        }
        // A registration configures the client too.
        (None, _) => return Ok(manager.register_client(&oauth.name, redirect_uri, scopes).await?),
    };
    manager.configure_client(config.clone())?;
    Ok(config)
}

fn is_client_id(url: &str) -> bool {
    url.strip_prefix("https://")
        .and_then(|rest| rest.split_once('/'))
        .is_some_and(|(host, path)| !host.is_empty() && !path.is_empty() && !path.contains('#'))
}

/// The lifetime of an assertion.
const ASSERTION_LIFETIME: Duration = Duration::from_secs(300);

/// The algorithm of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// RSA (PKCS#1 1.5) with SHA-256.
    Rs256,
}

impl std::str::FromStr for Algorithm {
    type Err = String;

    /// `ES256` or `RS256`.
    fn from_str(text: &str) -> Result<Algorithm, String> {
        match text {
            "ES256" => Ok(Algorithm::Es256),
            "RS256" => Ok(Algorithm::Rs256),
            other => Err(format!("{other:?} is neither ES256 nor RS256")),
        }
    }
}

/// The private key of a client. It is never printed.
#[derive(Clone)]
pub(super) struct SigningKey {
    pub(super) pem: String,
    pub(super) algorithm: Algorithm,
}

impl SigningKey {
    /// Signs an assertion that this is the client `id`, for `audience`.
    pub(super) fn assertion(&self, id: &str, audience: &str) -> Result<String, OAuthError> {
        let bad = |why: &str| OAuthError::BadKey { why: why.to_owned() };
        let random = SystemRandom::new();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut nonce = [0; 16];
        ring::rand::SecureRandom::fill(&random, &mut nonce).map_err(|_| bad("the system has no random numbers"))?;
        let name = match self.algorithm {
            Algorithm::Es256 => "ES256",
            Algorithm::Rs256 => "RS256",
        };
        let header = json!({"alg": name, "typ": "JWT"});
        let claims = json!({
            "iss": id,
            "sub": id,
            "aud": audience,
            "iat": now.as_secs(),
            "exp": (now + ASSERTION_LIFETIME).as_secs(),
            "jti": URL_SAFE_NO_PAD.encode(nonce),
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = match self.algorithm {
            Algorithm::Es256 => {
                let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &self.der()?, &random);
                let key = key.map_err(|error| bad(&format!("no P-256 key in PKCS#8: {error}")))?;
                key.sign(&random, signed.as_bytes()).map_err(|_| bad("signing failed"))?.as_ref().to_vec()
            }
            Algorithm::Rs256 => {
                let key = RsaKeyPair::from_pkcs8(&self.der()?);
                let key = key.map_err(|error| bad(&format!("no RSA key in PKCS#8: {error}")))?;
                let mut signature = vec![0; key.public().modulus_len()];
                let signing = key.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature);
                signing.map_err(|_| bad("signing failed"))?;
                signature
            }
        };
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The key between `-----BEGIN PRIVATE KEY-----` and the end line.
    fn der(&self) -> Result<Vec<u8>, OAuthError> {
        let bad = |why: &str| OAuthError::BadKey { why: why.to_owned() };
        let (_, rest) =
            self.pem.split_once("-----BEGIN PRIVATE KEY-----").ok_or_else(|| bad("no PKCS#8 key in PEM"))?;
        let (text, _) = rest.split_once("-----END PRIVATE KEY-----").ok_or_else(|| bad("the PEM text has no end"))?;
        let text: String = text.split_ascii_whitespace().collect();
        STANDARD.decode(text).map_err(|error| bad(&error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, KeyPair, UnparsedPublicKey};

    use super::*;

    #[test]
    fn an_assertion_can_be_checked_with_the_public_key() {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        let text = STANDARD.encode(document.as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
        let key = SigningKey { pem, algorithm: Algorithm::Es256 };
        let assertion = key.assertion("me", "https://as.example").unwrap();
        let (signed, signature) = assertion.rsplit_once('.').unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &SystemRandom::new())
            .unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, pair.public_key().as_ref());
        public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        let claims: Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(signed.split('.').nth(1).unwrap()).unwrap()).unwrap();
        assert_eq!((&claims["iss"], &claims["aud"]), (&json!("me"), &json!("https://as.example")));
    }

    #[test]
    fn an_invalid_key_is_reported_and_never_printed() {
        for pem in ["", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----", "secret"] {
            let key = SigningKey { pem: pem.into(), algorithm: Algorithm::Rs256 };
            let error = key.assertion("me", "https://as.example").unwrap_err().to_string();
            assert!(error.starts_with("the private key cannot be used: ") && !error.contains("c2VjcmV0"), "{error}");
        }
    }
}
