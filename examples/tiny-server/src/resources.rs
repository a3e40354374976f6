//! Resources: two that are listed, and one for every name.

use rehearsal_core::message::ErrorReply;
use serde_json::{Value, json};

use crate::call::Call;
use crate::instead::Instead;

/// The text that can be read, subscribed to and touched.
pub(crate) const GREETING: &str = "tiny://greeting";
/// The picture.
pub(crate) const PIXEL: &str = "tiny://pixel";
/// A greeting for every name.
pub(crate) const TEMPLATE: &str = "tiny://greeting/{name}";
/// A PNG of one green pixel.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mPQ6w4HAAH7ARFK28dFAAAAAElFTkSuQmCC";

/// What is listed.
pub(crate) fn all() -> Vec<Value> {
    vec![
        json!({
            "uri": GREETING,
            "name": "greeting",
            "title": "Greeting",
            "description": "A line of text",
            "mimeType": "text/plain",
        }),
        json!({
            "uri": PIXEL,
            "name": "pixel",
            "title": "Pixel",
            "description": "A PNG of one green pixel",
            "mimeType": "image/png",
        }),
    ]
}

/// The families that are listed.
pub(crate) fn templates() -> Vec<Value> {
    vec![json!({
        "uriTemplate": TEMPLATE,
        "name": "greeting for a name",
        "title": "Greeting for a name",
        "description": "A line of text for somebody",
        "mimeType": "text/plain",
    })]
}

/// The contents behind a URI.
pub(crate) fn contents(uri: &str) -> Option<Value> {
    let text = |text: String| json!({"uri": uri, "mimeType": "text/plain", "text": text});
    match uri {
        GREETING => Some(text("Hello from tiny-server".to_owned())),
        PIXEL => Some(json!({"uri": uri, "mimeType": "image/png", "blob": PNG})),
        _ => {
            let name = uri.strip_prefix(GREETING)?.strip_prefix('/')?;
            let name = percent_decoded(name).filter(|_| !name.is_empty() && !name.contains('/'))?;
            Some(text(format!("Hello {name}, from tiny-server")))
        }
    }
}

/// `resources/read`.
pub(crate) fn read(call: &Call) -> Result<Value, Instead> {
    let uri = call.text_param("uri")?;
    let contents = contents(uri).ok_or_else(|| not_found(call, uri))?;
    Ok(json!({"contents": [contents]}))
}

/// `resources/subscribe`, before 2026-07-28.
pub(crate) fn subscribe(call: &Call) -> Result<Value, Instead> {
    let uri = call.text_param("uri")?;
    if contents(uri).is_none() {
        return Err(not_found(call, uri));
    }
    // Only one resource ever changes; remembering no other keeps the memory of a conversation small.
    if uri == GREETING {
        call.session.memory().subscriptions.insert(uri.to_owned());
    }
    Ok(json!({}))
}

/// `resources/unsubscribe`, before 2026-07-28.
pub(crate) fn unsubscribe(call: &Call) -> Result<Value, Instead> {
    call.session.memory().subscriptions.remove(call.text_param("uri")?);
    Ok(json!({}))
}

fn not_found(call: &Call, uri: &str) -> Instead {
    let code = call.terms.revision.resource_not_found();
    Instead::Error(ErrorReply::new(code, format!("there is no resource {uri}")).with_data(&json!({"uri": uri})))
}

/// The text behind `%41da`, as expanding a template makes it; `None` where it is no text.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            u8::try_from(digit()? * 16 + digit()?).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_read_as_it_is_expanded() {
        let text = |uri| contents(uri).map(|contents| contents["text"].as_str().unwrap().to_owned());
        assert_eq!(text("tiny://greeting/Ada").as_deref(), Some("Hello Ada, from tiny-server"));
        assert_eq!(text("tiny://greeting/J%C3%BCrgen%20K").as_deref(), Some("Hello Jürgen K, from tiny-server"));
        for absent in ["tiny://greeting/", "tiny://greeting/a/b", "tiny://greeting/%zz", "tiny://greetings", ""] {
            assert_eq!(text(absent), None, "{absent}");
        }
    }
}
