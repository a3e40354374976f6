//! The versions of MCP and their properties.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// One published version of MCP, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// The first: HTTP+SSE.
    V2024_11_05,
    /// Streamable HTTP, batches, audio.
    V2025_03_26,
    /// Elicitation, structured content, the version header; no batches.
    V2025_06_18,
    /// Tasks, URL elicitation, icons, polling.
    V2025_11_25,
    /// Stateless: no handshake, no sessions, no server requests.
    V2026_07_28,
}

/// The two incompatible eras of MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Era {
    /// `initialize` comes first, and the connection has state. Up to 2025-11-25.
    Legacy,
    /// Every request has all context in `_meta`. Since 2026-07-28.
    Modern,
}

impl Revision {
    /// All versions, oldest first.
    pub const ALL: [Revision; 5] = [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ];

    /// The newest version of the legacy era.
    pub const LATEST_LEGACY: Revision = Revision::V2025_11_25;

    /// The newest version of the modern era.
    pub const LATEST_MODERN: Revision = Revision::V2026_07_28;

    /// The version of HTTP requests without a version header.
    pub const WITHOUT_HEADER: Revision = Revision::V2025_03_26;

    /// The name on the wire, such as `2025-11-25`.
    pub fn as_str(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
            Revision::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era of the version.
    pub fn era(self) -> Era {
        if self < Revision::V2026_07_28 { Era::Legacy } else { Era::Modern }
    }

    /// Whether a connection begins with `initialize`.
    pub fn has_handshake(self) -> bool {
        self.era() == Era::Legacy
    }

    /// Whether the server may send requests; if not, it answers `input_required` instead.
    pub fn has_server_requests(self) -> bool {
        self.era() == Era::Legacy
    }

    /// Whether several messages may be sent in one array.
    pub fn has_batches(self) -> bool {
        self == Revision::V2025_03_26
    }

    /// Whether HTTP has one endpoint (`true`) or the two of HTTP+SSE (`false`).
    pub fn has_streamable_http(self) -> bool {
        self >= Revision::V2025_03_26
    }

    /// Whether a server may create an `Mcp-Session-Id`.
    pub fn has_sessions(self) -> bool {
        (Revision::V2025_03_26..=Revision::V2025_11_25).contains(&self)
    }

    /// Whether requests after the handshake have `MCP-Protocol-Version`.
    pub fn has_version_header(self) -> bool {
        self >= Revision::V2025_06_18
    }

    /// Whether requests have `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*`.
    pub fn has_request_headers(self) -> bool {
        self.era() == Era::Modern
    }

    /// Whether a broken stream is resumed with `GET` and `Last-Event-ID`.
    pub fn has_resumption(self) -> bool {
        self.has_sessions()
    }

    /// Whether a stream begins with an empty event; older clients fail on it.
    pub fn has_priming_event(self) -> bool {
        self == Revision::V2025_11_25
    }

    /// Whether servers may send elicitation requests.
    pub fn has_elicitation(self) -> bool {
        self >= Revision::V2025_06_18
    }

    /// Whether tools may return `structuredContent`.
    pub fn has_structured_content(self) -> bool {
        self >= Revision::V2025_06_18
    }

    /// The code for an unknown resource.
    pub fn resource_not_found(self) -> i64 {
        match self.era() {
            Era::Legacy => super::code::RESOURCE_NOT_FOUND,
            Era::Modern => super::code::INVALID_PARAMS,
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A version that no specification has.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol version {0:?}; known are 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28")]
pub struct UnknownRevision(pub String);

debug_as_display!(UnknownRevision);

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Revision, UnknownRevision> {
        let found = Revision::ALL.into_iter().find(|revision| revision.as_str() == text);
        found.ok_or_else(|| UnknownRevision(text.to_owned()))
    }
}

/// A value for each version, made when it is first needed.
#[derive(Debug)]
pub struct PerRevision<T>([OnceLock<T>; Revision::ALL.len()]);

impl<T> Default for PerRevision<T> {
    fn default() -> PerRevision<T> {
        PerRevision([const { OnceLock::new() }; Revision::ALL.len()])
    }
}

impl<T> PerRevision<T> {
    /// The value for a version.
    pub fn get_or_init(&self, revision: Revision, make: impl FnOnce() -> T) -> &T {
        self.0[revision as usize].get_or_init(make)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_answers_as_its_specification_does() {
        // version, handshake, server requests, batches, streamable, sessions, version header, request headers, priming
        let table = [
            ("2024-11-05", [true, true, false, false, false, false, false, false]),
            ("2025-03-26", [true, true, true, true, true, false, false, false]),
            ("2025-06-18", [true, true, false, true, true, true, false, false]),
            ("2025-11-25", [true, true, false, true, true, true, false, true]),
            ("2026-07-28", [false, false, false, true, false, true, true, false]),
        ];
        for (text, expected) in table {
            let revision: Revision = text.parse().unwrap();
            let answers = [
                revision.has_handshake(),
                revision.has_server_requests(),
                revision.has_batches(),
                revision.has_streamable_http(),
                revision.has_sessions(),
                revision.has_version_header(),
                revision.has_request_headers(),
                revision.has_priming_event(),
            ];
            assert_eq!(answers, expected, "{text}");
            assert_eq!(revision.to_string(), text);
        }
        assert!("2026-07-29".parse::<Revision>().is_err());
    }
}
