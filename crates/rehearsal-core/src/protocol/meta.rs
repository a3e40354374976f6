//! The reserved keys of `_meta`.

/// The version of a request; on every request since 2026-07-28.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The client's capabilities; on every request since 2026-07-28.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The client's name and version; on requests since 2026-07-28, recommended.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The server's name and version; on results since 2026-07-28, recommended.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The minimum level of the log messages that the server may send for this request, since 2026-07-28.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The `subscriptions/listen` request that a notification belongs to, since 2026-07-28.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The token of a request's progress notifications; a request without one gets none.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The tasks extension of 2026-07-28.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
