//! Keeps web pages of strangers out.
//!
//! A browser lets any page send requests to this machine, and a page may point its own name at 127.0.0.1. Such requests
//! name a foreign `Origin` or `Host`.

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, StatusCode, Uri};

use super::options::{Hosts, Options};
use super::refusal::{BAD_REQUEST, Refusal};

/// Whether a request names a host, and comes from an origin, that is welcome.
pub(super) fn check(uri: &Uri, headers: &HeaderMap, options: &Options) -> Result<(), Refusal> {
    let forbidden = |what: String| Refusal::new(StatusCode::FORBIDDEN, BAD_REQUEST, format!("Forbidden: {what}"));
    let mut hosts = headers.get_all(HOST).iter().map(|host| host.to_str().unwrap_or_default());
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if options.hosts.allow_host(host) => {}
        (Some(host), _) => return Err(forbidden(format!("host {host:?}"))),
        (None, _) if options.hosts == Hosts::Any => {}
        (None, _) => return Err(forbidden("no host".to_owned())),
    }
    // A request line with a whole address names the host too, and then that one counts.
    if let Some(authority) = uri.authority().filter(|authority| !options.hosts.allow_host(authority.as_str())) {
        return Err(forbidden(format!("host {:?}", authority.as_str())));
    }
    for origin in headers.get_all(ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        if !options.origins.allow_origin(origin) {
            return Err(forbidden(format!("origin {origin:?}")));
        }
    }
    Ok(())
}

impl Hosts {
    fn allow_host(&self, authority: &str) -> bool {
        let name = without_port(authority);
        let same = |other: &str| other.eq_ignore_ascii_case(authority) || other.eq_ignore_ascii_case(name);
        match self {
            Hosts::Loopback => is_loopback(name),
            Hosts::LoopbackAnd(others) => is_loopback(name) || others.iter().any(|other| same(other)),
            Hosts::Any => true,
        }
    }

    fn allow_origin(&self, origin: &str) -> bool {
        let listed = match self {
            Hosts::Loopback => false,
            Hosts::LoopbackAnd(others) => others.iter().any(|other| other.eq_ignore_ascii_case(origin)),
            Hosts::Any => true,
        };
        listed || origin.split_once("://").is_some_and(|(_, authority)| self.allow_host(authority))
    }
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() => name,
        _ => authority,
    }
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name == "127.0.0.1" || name == "[::1]"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_and_named_hosts_are_welcome() {
        let hosts = Hosts::LoopbackAnd(vec!["mcp.example".to_owned(), "other.example:8080".to_owned()]);
        for host in
            ["localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]", "[::1]:3000", "mcp.example:5", "other.example:8080"]
        {
            assert!(hosts.allow_host(host), "{host}");
        }
        let strangers = [
            "evil.example",
            "other.example:81",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "::1",
            "",
            ":80",
            "evil@localhost",
        ];
        for host in strangers {
            assert!(!hosts.allow_host(host), "{host}");
        }
    }

    #[test]
    fn an_origin_is_judged_by_its_host() {
        let origins = Hosts::LoopbackAnd(vec!["https://app.example".to_owned()]);
        for origin in ["http://localhost:5173", "https://127.0.0.1", "https://app.example"] {
            assert!(origins.allow_origin(origin), "{origin}");
        }
        for origin in ["null", "", "http://app.example", "http://evil.example", "http://evil.example/localhost"] {
            assert!(!origins.allow_origin(origin), "{origin}");
        }
    }
}
