//! What a request declares and holds: its `Accept` header, and the body of a POST as a message, within limits.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use rehearsal_core::message::{Body, Garbled, Message};
use rehearsal_core::protocol::code;

use super::options::{Answers, Limits};
use super::refusal::{BAD_REQUEST, Refusal};

/// Reads a message that was understood, or explains why there is none.
pub(super) async fn read(headers: &HeaderMap, body: Incoming, limits: &Limits) -> Result<Message, Refusal> {
    if !is_json(headers) {
        let message = "Unsupported Media Type: Content-Type must be application/json";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, BAD_REQUEST, message));
    }
    let message = Message::parse(collect(body, limits).await?);
    match message.body() {
        Body::Garbled(garbled) => Err(garbled_refusal(garbled)),
        Body::Batch(messages) => match messages.iter().find_map(Message::as_garbled) {
            Some(garbled) => Err(garbled_refusal(garbled)),
            None => Ok(message),
        },
        Body::Request(_) | Body::Notification(_) | Body::Response(_) => Ok(message),
    }
}

async fn collect(body: Incoming, limits: &Limits) -> Result<bytes::Bytes, Refusal> {
    let too_long = || {
        let message = format!("the body is longer than the limit of {} bytes", limits.body);
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, BAD_REQUEST, message)
    };
    // What the head announces as too long is not read at all.
    if body.size_hint().lower() > limits.body as u64 {
        return Err(too_long());
    }
    match tokio::time::timeout(limits.body_timeout, Limited::new(body, limits.body).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_long()),
        Ok(Err(error)) => {
            Err(Refusal::new(StatusCode::BAD_REQUEST, code::PARSE_ERROR, format!("could not read the body: {error}")))
        }
        Err(_) => Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, BAD_REQUEST, "the body took too long to arrive")),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

fn garbled_refusal(garbled: &Garbled) -> Refusal {
    let code = code::for_garbled(&garbled.reason);
    // Of what is no JSON nobody can say whose it was.
    let id = garbled.id.as_ref().filter(|_| code != code::PARSE_ERROR);
    Refusal::new(StatusCode::BAD_REQUEST, code, garbled.to_string()).of(id)
}

/// How a POST is answered: what is preferred, as far as the client takes it. `None` if it takes neither form.
///
/// A client that does not say takes everything.
pub(super) fn form(headers: &HeaderMap, preferred: Answers) -> Option<Answers> {
    match (takes(headers, "application/json"), takes(headers, "text/event-stream")) {
        (true, true) => Some(preferred),
        (true, false) => Some(Answers::Json),
        (false, true) => Some(Answers::Events),
        (false, false) => None,
    }
}

/// Whether the client takes a stream of events.
pub(super) fn takes_events(headers: &HeaderMap) -> bool {
    takes(headers, "text/event-stream")
}

fn takes(headers: &HeaderMap, media_type: &str) -> bool {
    if !headers.contains_key(ACCEPT) {
        return true;
    }
    let ranges =
        headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    ranges.map(str::trim).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let family = name.strip_suffix('*').filter(|family| family.ends_with('/'));
        let fits = name == media_type || name == "*/*" || family.is_some_and(|family| media_type.starts_with(family));
        fits && !parts.any(|part| {
            matches!(part.to_ascii_lowercase().replace(' ', "").as_str(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_what_it_takes() {
        let table = [
            (None, Some(Answers::Lazy)),
            (Some("*/*"), Some(Answers::Lazy)),
            (Some("application/json, text/event-stream"), Some(Answers::Lazy)),
            (Some("Application/JSON;q=0.5 , text/*"), Some(Answers::Lazy)),
            (Some("application/json"), Some(Answers::Json)),
            (Some("text/event-stream, application/json;q=0"), Some(Answers::Events)),
            (Some("text/event-stream"), Some(Answers::Events)),
            (Some("text/html"), None),
            (Some("application/*+json"), None),
            (Some(""), None),
        ];
        for (accept, expected) in table {
            let mut headers = HeaderMap::new();
            headers.extend(accept.map(|accept| (ACCEPT, accept.parse().unwrap())));
            assert_eq!(form(&headers, Answers::Lazy), expected, "{accept:?}");
        }
    }
}
