//! Keeps web pages of strangers out.
//!
//! A browser lets any page send requests to this machine, and a page may point its own name at 127.0.0.1. Such requests
//! name a foreign `Origin` or `Host`.

use super::server::Hosts;

/// What a request says about where it goes and where it comes from.
pub(super) struct Named<'a, H, O> {
    /// Every `Host`.
    pub(super) hosts: H,
    /// The host and port of a request line with a whole address; then that one counts.
    pub(super) authority: Option<&'a str>,
    /// Every `Origin`.
    pub(super) origins: O,
}

/// Whether a request names a host, and comes from an origin, that is welcome; what is not, if it does not.
pub(super) fn check<'a>(
    named: Named<'a, impl Iterator<Item = &'a str>, impl Iterator<Item = &'a str>>,
    hosts: &Hosts,
    origins: &Hosts,
) -> Result<(), String> {
    let Named { hosts: mut theirs, authority, origins: comes_from } = named;
    match (theirs.next(), theirs.next()) {
        (Some(host), None) if hosts.allow_host(host) => {}
        (Some(host), _) => return Err(format!("host {host:?}")),
        (None, _) if *hosts == Hosts::Any => {}
        (None, _) => return Err("no host".to_owned()),
    }
    if let Some(authority) = authority.filter(|authority| !hosts.allow_host(authority)) {
        return Err(format!("host {authority:?}"));
    }
    for origin in comes_from {
        if !origins.allow_origin(origin) {
            return Err(format!("origin {origin:?}"));
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
