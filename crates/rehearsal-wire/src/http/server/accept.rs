//! What a client takes as an answer.

use http::HeaderMap;
use http::header::ACCEPT;

use super::options::Answers;

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
