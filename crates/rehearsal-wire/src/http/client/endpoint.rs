//! Where an HTTP+SSE server wants its messages.

use http::Uri;
use http::uri::Scheme;

use super::ConnectError;

/// The address that an `endpoint` event means, seen from the address of the stream.
///
/// Another origin is refused: whatever is secret in our headers would go there.
pub fn resolve(base: &Uri, endpoint: &str) -> Result<Uri, ConnectError> {
    let endpoint = endpoint.trim();
    let bad = |why: String| ConnectError::BadEndpoint { endpoint: endpoint.to_owned(), why };
    let scheme = base.scheme_str().unwrap_or("http");
    let authority = base.authority().map_or("", |authority| authority.as_str());
    let absolute = if endpoint.is_empty() {
        return Err(bad("it is empty".to_owned()));
    } else if has_scheme(endpoint) {
        endpoint.to_owned()
    } else if endpoint.starts_with("//") {
        format!("{scheme}:{endpoint}")
    } else {
        let (path, query) = match endpoint.split_once('?') {
            Some((path, query)) => (path, format!("?{query}")),
            None => (endpoint, String::new()),
        };
        let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        let path = match path {
            "" => base.path().to_owned(),
            path if path.starts_with('/') => without_dots(path),
            path => without_dots(&format!("{folder}/{path}")),
        };
        format!("{scheme}://{authority}{path}{query}")
    };
    let url: Uri = absolute.parse().map_err(|error: http::uri::InvalidUri| bad(error.to_string()))?;
    if origin(&url) != origin(base) {
        let origin = format!("{scheme}://{authority}");
        return Err(ConnectError::ForeignEndpoint { endpoint: endpoint.to_owned(), origin });
    }
    Ok(url)
}

fn has_scheme(reference: &str) -> bool {
    let before = reference.split(['/', '?', '#']).next().unwrap_or_default();
    before.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
    })
}

/// A path without `.` and `..`.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    for (index, part) in parts.iter().enumerate() {
        let last = index + 1 == parts.len();
        match *part {
            "." => {}
            ".." => {
                kept.pop();
            }
            part => {
                kept.push(part);
                continue;
            }
        }
        if last {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

/// Scheme, host and port, with the port that the scheme implies.
fn origin(url: &Uri) -> (Option<&Scheme>, String, Option<u16>) {
    let implied = url.scheme().map(|scheme| if *scheme == Scheme::HTTPS { 443 } else { 80 });
    (url.scheme(), url.host().unwrap_or_default().to_ascii_lowercase(), url.port_u16().or(implied))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(endpoint: &str) -> Result<String, String> {
        let base = Uri::from_static("http://localhost:80/api/v1/sse?key=1");
        resolve(&base, endpoint).map(|url| url.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn every_way_to_write_an_endpoint_is_understood() {
        let table = [
            ("/messages?session=1", "http://localhost:80/messages?session=1"),
            ("messages/?session=1", "http://localhost:80/api/v1/messages/?session=1"),
            ("./messages", "http://localhost:80/api/v1/messages"),
            ("../messages/.", "http://localhost:80/api/messages/"),
            ("../../../up", "http://localhost:80/up"),
            ("?session=a/../b", "http://localhost:80/api/v1/sse?session=a/../b"),
            ("http://LOCALHOST/messages", "http://localhost/messages"),
            ("//localhost/messages", "http://localhost/messages"),
            (" /messages\n", "http://localhost:80/messages"),
        ];
        for (endpoint, expected) in table {
            assert_eq!(resolved(endpoint).map(|url| url.to_ascii_lowercase()).as_deref(), Ok(expected), "{endpoint}");
        }
    }

    #[test]
    fn an_endpoint_elsewhere_is_refused() {
        for endpoint in ["http://localhost:81/m", "https://localhost/m", "http://evil.example/m", "//evil.example/m"] {
            let expected = format!("the endpoint {endpoint:?} is not on http://localhost:80, where the stream is");
            assert_eq!(resolved(endpoint), Err(expected));
        }
        for endpoint in ["", "/a b", "javascript:alert(1)"] {
            assert!(resolved(endpoint).is_err(), "{endpoint}");
        }
    }
}
