//! The OAuth login of a scenario.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::LOCATION;
use rehearsal::oauth::OAuth;
use rehearsal::wire::http::client::{HttpClientOptions, fetch};

use crate::scenario::Scenario;

/// The document that describes this client, as the suite calls it.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";
const REDIRECT_URI: &str = "http://127.0.0.1:3000/callback";

/// The login for a scenario: with client credentials if the scenario tests that, otherwise with a user who always consents.
pub(crate) fn oauth(scenario: &Scenario) -> OAuth {
    let (id, secret) = (scenario.text("client_id"), scenario.text("client_secret"));
    if scenario.name.contains("client-credentials") {
        match (id, secret, scenario.text("private_key_pem")) {
            (Some(id), _, Some(pem)) => {
                let algorithm = scenario.text("signing_algorithm").unwrap_or("ES256").parse();
                return match algorithm {
                    Ok(algorithm) => OAuth::with_private_key(id, pem, algorithm),
                    Err(_) => OAuth::with_client_secret(id, ""),
                };
            }
            (Some(id), Some(secret), None) => return OAuth::with_client_secret(id, secret),
            _ => {}
        }
    }
    let oauth = OAuth::with_visit(REDIRECT_URI, consent)
        .client_name("Rehearsal's conformance client")
        .client_metadata_url(CLIENT_METADATA);
    match id {
        Some(id) => oauth.client(id, secret.map(str::to_owned)),
        None => oauth,
    }
}

/// The suite's authorization server shows no page: it redirects the browser at once.
async fn consent(url: String) -> Result<String, String> {
    let options = HttpClientOptions::new(&url).map_err(|error| error.to_string())?;
    let request = Request::get(&url).body(Bytes::new()).map_err(|error| error.to_string())?;
    let answer = fetch(&options, request, Duration::from_secs(10)).await.map_err(|error| error.to_string())?;
    let location = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    location.map(str::to_owned).ok_or_else(|| format!("the authorization server answered {}", answer.status()))
}
