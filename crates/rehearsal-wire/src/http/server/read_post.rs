//! Checks the `Accept` header of a request, and reads the body of a POST as a message, within limits.

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use rehearsal_core::message::{Body, Garbled, Message};
use rehearsal_core::protocol::code;
use tokio::sync::OwnedSemaphorePermit;

use super::options::ResponseMode;
use super::rejection::{BAD_REQUEST, Rejection};
use super::sessions::SessionRegistry;

/// The part of a body that is received without a reservation, in bytes: small messages never wait for large ones.
const UNRESERVED: usize = 64 * 1024;

/// The memory reserved for a body within the limit of its listener; dropped once the application has the message.
pub(super) type Reserved = Option<OwnedSemaphorePermit>;

/// Reads a valid message, or builds the refusal.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Incoming,
    registry: &SessionRegistry,
) -> Result<(Message, Reserved), Rejection> {
    if !is_json(headers) {
        let message = "Unsupported Media Type: Content-Type must be application/json";
        return Err(Rejection::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, BAD_REQUEST, message));
    }
    let (body, reserved) = receive(body, registry).await?;
    let message = Message::parse(body);
    match message.body() {
        Body::Garbled(garbled) => Err(garbled_refusal(garbled)),
        Body::Batch(messages) => match messages.iter().find_map(Message::as_garbled) {
            Some(garbled) => Err(garbled_refusal(garbled)),
            None => Ok((message, reserved)),
        },
        Body::Request(_) | Body::Notification(_) | Body::Response(_) => Ok((message, reserved)),
    }
}

/// Receives a whole body within the limits.
pub(super) async fn receive(body: Incoming, registry: &SessionRegistry) -> Result<(Bytes, Reserved), Rejection> {
    let received = tokio::time::timeout(registry.options.limits.body_timeout, collect(body, registry)).await;
    received.unwrap_or_else(|_| {
        Err(Rejection::new(StatusCode::REQUEST_TIMEOUT, BAD_REQUEST, "the body took too long to arrive"))
    })
}

async fn collect(mut body: Incoming, registry: &SessionRegistry) -> Result<(Bytes, Reserved), Rejection> {
    let limit = registry.options.limits.body;
    let too_long = || {
        let message = format!("the body is longer than the limit of {limit} bytes");
        Rejection::new(StatusCode::PAYLOAD_TOO_LARGE, BAD_REQUEST, message)
    };
    let announced = body.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    // A body whose announced length is beyond the limit is not read at all.
    if announced.is_some_and(|length| length > limit) {
        return Err(too_long());
    }
    let mut bytes = BytesMut::with_capacity(announced.unwrap_or_default().min(UNRESERVED));
    let mut reserved = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Rejection::new(StatusCode::BAD_REQUEST, code::PARSE_ERROR, format!("could not read the body: {error}"))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        let length = bytes.len() + data.len();
        if length > limit {
            return Err(too_long());
        }
        if length > UNRESERVED && reserved.is_none() {
            // The whole length is reserved at once: bodies that hold a part each and wait for the rest could deadlock.
            reserved = Some(reserve(announced.unwrap_or(limit), registry).await?);
            bytes.reserve(announced.unwrap_or(length) - bytes.len());
        }
        bytes.put_slice(&data);
    }
    Ok((bytes.freeze(), reserved))
}

/// Reserves memory for a body, and waits a limited time until other bodies have been received.
async fn reserve(length: usize, registry: &SessionRegistry) -> Result<OwnedSemaphorePermit, Rejection> {
    let permits = u32::try_from(length).unwrap_or(u32::MAX);
    let reserved = registry.bodies.clone().acquire_many_owned(permits);
    let reserved = tokio::time::timeout(registry.options.limits.bodies_wait, reserved).await;
    reserved.ok().and_then(Result::ok).ok_or_else(|| Rejection::busy("large request bodies at once"))
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

fn garbled_refusal(garbled: &Garbled) -> Rejection {
    let code = code::for_garbled(&garbled.reason);
    // If the body is not JSON, its request is unknown, so the error has no id.
    let id = garbled.id.as_ref().filter(|_| code != code::PARSE_ERROR);
    Rejection::new(StatusCode::BAD_REQUEST, code, garbled.to_string()).with_id(id)
}

/// Returns the form of the HTTP response: the preferred one, if the client accepts it. `None` if the client accepts no
/// form.
///
/// A client without an `Accept` header accepts every form.
pub(super) fn choose_form(headers: &HeaderMap, preferred: ResponseMode) -> Option<ResponseMode> {
    match (accepts(headers, "application/json"), accepts(headers, "text/event-stream")) {
        (true, true) => Some(preferred),
        (true, false) => Some(ResponseMode::Json),
        (false, true) => Some(ResponseMode::Events),
        (false, false) => None,
    }
}

/// True if the client accepts a stream of events.
pub(super) fn accepts_events(headers: &HeaderMap) -> bool {
    accepts(headers, "text/event-stream")
}

fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
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
    fn the_accept_header_selects_the_form_of_the_response() {
        let table = [
            (None, Some(ResponseMode::Auto)),
            (Some("*/*"), Some(ResponseMode::Auto)),
            (Some("application/json, text/event-stream"), Some(ResponseMode::Auto)),
            (Some("Application/JSON;q=0.5 , text/*"), Some(ResponseMode::Auto)),
            (Some("application/json"), Some(ResponseMode::Json)),
            (Some("text/event-stream, application/json;q=0"), Some(ResponseMode::Events)),
            (Some("text/event-stream"), Some(ResponseMode::Events)),
            (Some("text/html"), None),
            (Some("application/*+json"), None),
            (Some(""), None),
        ];
        for (accept, expected) in table {
            let mut headers = HeaderMap::new();
            headers.extend(accept.map(|accept| (ACCEPT, accept.parse().unwrap())));
            assert_eq!(choose_form(&headers, ResponseMode::Auto), expected, "{accept:?}");
        }
    }
}
