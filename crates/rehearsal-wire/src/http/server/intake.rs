//! From the body of a POST to a message, within limits.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use rehearsal_core::message::{Body, Garbled, Message};
use rehearsal_core::protocol::code;

use super::options::Limits;
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
