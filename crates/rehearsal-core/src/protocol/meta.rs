//! The reserved keys of `_meta`.

/// The version that a request speaks; on every request since 2026-07-28.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What the client can do; on every request since 2026-07-28.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Who the client is; on requests since 2026-07-28, recommended.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Who the server is; on results since 2026-07-28, recommended.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// From which level on the server may send log messages about this request, since 2026-07-28.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The `subscriptions/listen` request that a notification belongs to, since 2026-07-28.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Opts a request into progress notifications that carry the same token.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The tasks extension of 2026-07-28.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
