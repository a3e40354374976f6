//! Refuses requests from foreign web pages (DNS rebinding).
//!
//! A browser lets any page send requests to any address, and a page may point its own host name at this machine. Such
//! requests have a foreign `Origin` or `Host`. DNS rebinding needs a name, so a `Host` that is an IP address is safe.
//! The `Origin` of a page that was loaded from an IP address is not.

use std::net::IpAddr;

use super::server::AllowedHosts;

/// The headers of a request that name its target and its origin.
pub(super) struct RequestOrigin<'a, H, O> {
    /// Every `Host` header.
    pub(super) hosts: H,
    /// The host and port of a request line with an absolute URL; it takes precedence over `Host`.
    pub(super) authority: Option<&'a str>,
    /// Every `Origin` header.
    pub(super) origins: O,
}

/// Checks the `Host` and the `Origin` of a request. The error names the refused one, and how to allow it.
///
/// ```text
/// host "box.example": neither localhost, nor an IP address, nor allowed by --allow-host
/// ```
pub(super) fn check<'a>(
    named: RequestOrigin<'a, impl Iterator<Item = &'a str>, impl Iterator<Item = &'a str>>,
    hosts: &AllowedHosts,
    origins: &AllowedHosts,
) -> Result<(), String> {
    let RequestOrigin { hosts: mut theirs, authority, origins: comes_from } = named;
    let refused =
        |host: &str| Err(format!("host {host:?}: neither localhost, nor an IP address, nor allowed by --allow-host"));
    let host = match (theirs.next(), theirs.next()) {
        (Some(host), None) if hosts.allow_host(host) => Some(host),
        (Some(_), Some(_)) => return Err("more than one host".to_owned()),
        (Some(host), None) => return refused(host),
        (None, _) if *hosts == AllowedHosts::Any => None,
        (None, _) => return Err("no host".to_owned()),
    };
    if let Some(authority) = authority.filter(|authority| !hosts.allow_host(authority)) {
        return refused(authority);
    }
    for origin in comes_from {
        if !origins.allow_origin(origin, authority.or(host)) {
            return Err(format!("origin {origin:?}: neither on this machine, nor allowed by --allow-host"));
        }
    }
    Ok(())
}

impl AllowedHosts {
    fn allow_host(&self, authority: &str) -> bool {
        self.lists(authority) || is_localhost(authority) || address(authority).is_some()
    }

    /// Checks one `Origin`; `host` is the host that the request names.
    fn allow_origin(&self, origin: &str, host: Option<&str>) -> bool {
        let Some((_, authority)) = origin.split_once("://") else { return *self == AllowedHosts::Any };
        let is_own = |address: IpAddr| address.is_loopback() || host.and_then(self::address) == Some(address);
        self.lists(origin) || self.lists(authority) || is_localhost(authority) || address(authority).is_some_and(is_own)
    }

    fn lists(&self, authority: &str) -> bool {
        let name = without_port(authority);
        match self {
            AllowedHosts::Named(names) => {
                names.iter().any(|other| other.eq_ignore_ascii_case(authority) || other.eq_ignore_ascii_case(name))
            }
            AllowedHosts::Any => true,
        }
    }
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() => name,
        _ => authority,
    }
}

fn is_localhost(authority: &str) -> bool {
    without_port(authority).eq_ignore_ascii_case("localhost")
}

/// Parses the IP address in `127.0.0.1:80` or `[::1]:80`.
fn address(authority: &str) -> Option<IpAddr> {
    let name = without_port(authority);
    match name.strip_prefix('[') {
        Some(name) => name.strip_suffix(']')?.parse().ok().map(IpAddr::V6),
        None => name.parse().ok().map(IpAddr::V4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_localhost_an_address_or_a_listed_name() {
        let hosts = AllowedHosts::Named(vec!["mcp.example".to_owned(), "other.example:8080".to_owned()]);
        let accepted = [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:3000",
            "192.168.1.5:8080",
            "[fe80::1]:80",
            "mcp.example:5",
            "other.example:8080",
        ];
        for host in accepted {
            assert!(hosts.allow_host(host), "{host}");
        }
        let refused = [
            "evil.example",
            "other.example:81",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "127.1",
            "::1",
            "[::1",
            "",
            ":80",
            "evil@localhost",
        ];
        for host in refused {
            assert!(!hosts.allow_host(host), "{host}");
        }
    }

    #[test]
    fn listed_loopback_and_same_host_origins_are_accepted() {
        let origins = AllowedHosts::Named(vec!["https://app.example".to_owned(), "box.example".to_owned()]);
        let accepted = [
            "http://localhost:5173",
            "https://127.0.0.1",
            "http://[::1]:1",
            "https://app.example",
            "http://box.example:1",
            "http://192.168.1.5:3000",
        ];
        for origin in accepted {
            assert!(origins.allow_origin(origin, Some("192.168.1.5:8080")), "{origin}");
        }
        let refused = [
            "null",
            "",
            "http://app.example",
            "http://evil.example",
            "http://evil.example/localhost",
            "http://192.168.1.6:8080",
            "192.168.1.5:8080",
        ];
        for origin in refused {
            assert!(!origins.allow_origin(origin, Some("192.168.1.5:8080")), "{origin}");
        }
    }
}
