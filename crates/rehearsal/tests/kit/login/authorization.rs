//! What an authorization server does.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::oauth_server::{Answer, as_json};

/// What an authorization server knows and has seen.
pub(crate) struct Books {
    pub(crate) origin: String,
    /// Where each registered client may be sent back to.
    pub(crate) clients: BTreeMap<String, String>,
    /// Codes that were given out and not used: the challenge and the scopes.
    codes: BTreeMap<String, (String, String)>,
    /// Tokens that are good, and for what.
    pub(crate) tokens: BTreeMap<String, String>,
    /// Refresh tokens that are good, and for what. Each is good once.
    pub(crate) refresh_tokens: BTreeMap<String, String>,
    /// The scopes that were asked for, in order.
    pub(crate) asked: Vec<String>,
    /// The kinds of grants that were asked for, in order.
    pub(crate) grants: Vec<String>,
    /// Every `Authorization` that the server saw.
    pub(crate) knocked: Vec<String>,
    pub(crate) lifetime: u64,
    pub(crate) denies: bool,
    pub(crate) keys: Vec<String>,
    next: u64,
}

impl Books {
    pub(crate) fn new(origin: String) -> Books {
        Books {
            origin,
            clients: BTreeMap::new(),
            codes: BTreeMap::new(),
            tokens: BTreeMap::new(),
            refresh_tokens: BTreeMap::new(),
            asked: Vec::new(),
            grants: Vec::new(),
            knocked: Vec::new(),
            lifetime: 3600,
            denies: false,
            keys: Vec::new(),
            next: 0,
        }
    }

    pub(crate) fn metadata(&self) -> Value {
        let origin = &self.origin;
        json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "registration_endpoint": format!("{origin}/register"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "private_key_jwt"],
        })
    }

    /// What the bearer of a token may do.
    pub(crate) fn scopes_of(&self, authorization: &str) -> Option<Vec<String>> {
        let scopes = self.tokens.get(authorization.strip_prefix("Bearer ")?)?;
        Some(scopes.split(' ').map(str::to_owned).collect())
    }

    fn fresh(&mut self, what: &str) -> String {
        self.next += 1;
        format!("{what}-{}", self.next)
    }

    /// Nobody is let in any more with the tokens of before.
    pub(crate) fn revoke(&mut self) {
        self.tokens.clear();
    }
}

pub(crate) fn register(books: &mut Books, wanted: &Value) -> Answer {
    let id = books.fresh("client");
    let uri = wanted["redirect_uris"][0].as_str().unwrap().to_owned();
    books.clients.insert(id.clone(), uri.clone());
    as_json(
        StatusCode::CREATED,
        &json!({"client_id": id, "redirect_uris": [uri], "client_name": wanted["client_name"]}),
    )
}

/// Everybody consents, unless they deny.
pub(crate) fn authorize(books: &mut Books, query: &BTreeMap<String, String>) -> Answer {
    let uri = &query["redirect_uri"];
    assert_eq!(books.clients.get(&query["client_id"]), Some(uri), "it is not sent elsewhere");
    assert_eq!((query["response_type"].as_str(), query["code_challenge_method"].as_str()), ("code", "S256"));
    let scope = query.get("scope").cloned().unwrap_or_default();
    books.asked.push(scope.clone());
    let state = &query["state"];
    let location = if books.denies {
        format!("{uri}?error=access_denied&error_description=not%20today&state={state}")
    } else {
        let code = books.fresh("code");
        books.codes.insert(code.clone(), (query["code_challenge"].clone(), scope));
        format!("{uri}?code={code}&state={state}&iss={}", books.origin)
    };
    let mut answer = Response::new(Default::default());
    *answer.status_mut() = StatusCode::FOUND;
    answer.headers_mut().insert("location", location.parse().unwrap());
    answer
}

pub(crate) fn token(books: &mut Books, form: &BTreeMap<String, String>, authorization: &str) -> Answer {
    let refused = |error: &str| as_json(StatusCode::BAD_REQUEST, &json!({"error": error}));
    books.grants.push(form["grant_type"].clone());
    assert_eq!(form["resource"], format!("{}/mcp", books.origin), "every request says what the token is for");
    let scope = match form["grant_type"].as_str() {
        "authorization_code" => {
            let Some((challenge, scope)) = books.codes.remove(&form["code"]) else { return refused("invalid_grant") };
            let verified = URL_SAFE_NO_PAD.encode(Sha256::digest(form["code_verifier"].as_bytes()));
            assert_eq!(verified, challenge, "whoever has the code asked for it");
            scope
        }
        "refresh_token" => match books.refresh_tokens.remove(&form["refresh_token"]) {
            Some(scope) => scope,
            None => return refused("invalid_grant"),
        },
        "client_credentials" => {
            let key = form.get("client_assertion").map(String::as_str);
            let secret = authorization.strip_prefix("Basic ").map(|text| STANDARD.decode(text).unwrap());
            match (key, secret.as_deref()) {
                (Some(assertion), None) => books.keys.push(assertion.to_owned()),
                (None, Some(b"robot:s3cret")) => {}
                _ => return refused("invalid_client"),
            }
            form.get("scope").cloned().unwrap_or_default()
        }
        _ => return refused("unsupported_grant_type"),
    };
    let (token, refresh) = (books.fresh("token"), books.fresh("refresh"));
    books.tokens.insert(token.clone(), scope.clone());
    let mut given =
        json!({"access_token": token, "token_type": "Bearer", "expires_in": books.lifetime, "scope": scope});
    if form["grant_type"] != "client_credentials" {
        books.refresh_tokens.insert(refresh.clone(), scope);
        given["refresh_token"] = json!(refresh);
    }
    as_json(StatusCode::OK, &given)
}
