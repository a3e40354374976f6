//! The levels of log messages.

use serde::Deserialize;
use serde_json::Value;

/// The severity of a log message: the eight levels of syslog (RFC 5424).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[cfg_attr(feature = "mocks", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Information for debugging.
    Debug,
    /// General information.
    Info,
    /// A normal but significant event.
    Notice,
    /// A warning.
    Warning,
    /// An error.
    Error,
    /// A critical condition.
    Critical,
    /// Action is required at once.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LogLevel {
    /// All levels, the least urgent first.
    pub const ALL: [LogLevel; 8] = [
        LogLevel::Debug,
        LogLevel::Info,
        LogLevel::Notice,
        LogLevel::Warning,
        LogLevel::Error,
        LogLevel::Critical,
        LogLevel::Alert,
        LogLevel::Emergency,
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Notice => "notice",
            LogLevel::Warning => "warning",
            LogLevel::Error => "error",
            LogLevel::Critical => "critical",
            LogLevel::Alert => "alert",
            LogLevel::Emergency => "emergency",
        }
    }

    /// The level with this name.
    pub fn named(name: &str) -> Option<LogLevel> {
        LogLevel::ALL.into_iter().find(|level| level.name() == name)
    }

    /// The level of a log message with these params.
    pub fn from_params(params: &Value) -> Option<LogLevel> {
        params.get("level").and_then(Value::as_str).and_then(LogLevel::named)
    }

    /// `unknown level "loud"; there are debug, info, …`
    pub fn unknown(name: &str) -> String {
        format!("unknown level {name:?}; there are {}", LogLevel::ALL.map(LogLevel::name).join(", "))
    }
}
