//! The endpoints of an authorization server.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::oauth_server::{Answer, as_json};

/// The state of an authorization server, and the requests that it received.
pub(crate) struct OAuthState {
    pub(crate) origin: String,
    /// The redirect URI of each registered client.
    pub(crate) clients: BTreeMap<String, String>,
    /// Unused authorization codes, with their challenge and scopes.
    codes: BTreeMap<String, (String, String)>,
    /// Valid access tokens, with their scopes.
    pub(crate) tokens: BTreeMap<String, String>,
    /// Valid refresh tokens, with their scopes. Each can be used once.
    pub(crate) refresh_tokens: BTreeMap<String, String>,
    /// The requested scopes, in order.
    pub(crate) scopes: Vec<String>,
    /// The requested grant types, in order.
    pub(crate) grants: Vec<String>,
    /// Every `Authorization` header that the server received.
    pub(crate) authorizations: Vec<String>,
    pub(crate) lifetime: u64,
    pub(crate) denies: bool,
    pub(crate) keys: Vec<String>,
    next: u64,
}

impl OAuthState {
    pub(crate) fn new(origin: String) -> OAuthState {
        OAuthState {
            origin,
            clients: BTreeMap::new(),
            codes: BTreeMap::new(),
            tokens: BTreeMap::new(),
            refresh_tokens: BTreeMap::new(),
            scopes: Vec::new(),
            grants: Vec::new(),
            authorizations: Vec::new(),
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

    /// The scopes of a bearer token.
    pub(crate) fn scopes_of(&self, authorization: &str) -> Option<Vec<String>> {
        let scopes = self.tokens.get(authorization.strip_prefix("Bearer ")?)?;
        Some(scopes.split(' ').map(str::to_owned).collect())
    }

    fn fresh(&mut self, what: &str) -> String {
        self.next += 1;
        format!("{what}-{}", self.next)
    }

    /// Revokes all access tokens.
    pub(crate) fn revoke(&mut self) {
        self.tokens.clear();
    }
}

pub(crate) fn register(state: &mut OAuthState, request: &Value) -> Answer {
    let id = state.fresh("client");
    let uri = request["redirect_uris"][0].as_str().unwrap().to_owned();
    state.clients.insert(id.clone(), uri.clone());
    as_json(
        StatusCode::CREATED,
        &json!({"client_id": id, "redirect_uris": [uri], "client_name": request["client_name"]}),
    )
}

/// The authorization endpoint: the user consents, unless `denies` is set.
pub(crate) fn authorize(state: &mut OAuthState, query: &BTreeMap<String, String>) -> Answer {
    let uri = &query["redirect_uri"];
    assert_eq!(state.clients.get(&query["client_id"]), Some(uri), "the redirect URI is the registered one");
    assert_eq!((query["response_type"].as_str(), query["code_challenge_method"].as_str()), ("code", "S256"));
    let scope = query.get("scope").cloned().unwrap_or_default();
    state.scopes.push(scope.clone());
    let client_state = &query["state"];
    let location = if state.denies {
        format!("{uri}?error=access_denied&error_description=not%20today&state={client_state}")
    } else {
        let code = state.fresh("code");
        state.codes.insert(code.clone(), (query["code_challenge"].clone(), scope));
        format!("{uri}?code={code}&state={client_state}&iss={}", state.origin)
    };
    let mut answer = Response::new(Default::default());
    *answer.status_mut() = StatusCode::FOUND;
    answer.headers_mut().insert("location", location.parse().unwrap());
    answer
}

pub(crate) fn token(state: &mut OAuthState, form: &BTreeMap<String, String>, authorization: &str) -> Answer {
    let refused = |error: &str| as_json(StatusCode::BAD_REQUEST, &json!({"error": error}));
    state.grants.push(form["grant_type"].clone());
    assert_eq!(form["resource"], format!("{}/mcp", state.origin), "every request names the resource");
    let scope = match form["grant_type"].as_str() {
        "authorization_code" => {
            let Some((challenge, scope)) = state.codes.remove(&form["code"]) else { return refused("invalid_grant") };
            let verified = URL_SAFE_NO_PAD.encode(Sha256::digest(form["code_verifier"].as_bytes()));
            assert_eq!(verified, challenge, "the code is used by the client that requested it");
            scope
        }
        "refresh_token" => match state.refresh_tokens.remove(&form["refresh_token"]) {
            Some(scope) => scope,
            None => return refused("invalid_grant"),
        },
        "client_credentials" => {
            let key = form.get("client_assertion").map(String::as_str);
            let secret = authorization.strip_prefix("Basic ").map(|text| STANDARD.decode(text).unwrap());
            match (key, secret.as_deref()) {
                (Some(assertion), None) => state.keys.push(assertion.to_owned()),
                (None, Some(b"robot:s3cret")) => {}
                _ => return refused("invalid_client"),
            }
            form.get("scope").cloned().unwrap_or_default()
        }
        _ => return refused("unsupported_grant_type"),
    };
    let (token, refresh) = (state.fresh("token"), state.fresh("refresh"));
    state.tokens.insert(token.clone(), scope.clone());
    let mut response =
        json!({"access_token": token, "token_type": "Bearer", "expires_in": state.lifetime, "scope": scope});
    if form["grant_type"] != "client_credentials" {
        state.refresh_tokens.insert(refresh.clone(), scope);
        response["refresh_token"] = json!(refresh);
    }
    as_json(StatusCode::OK, &response)
}
