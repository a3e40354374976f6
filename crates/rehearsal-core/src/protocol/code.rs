//! Error codes of JSON-RPC and of MCP.

use crate::message::GarbledReason;

/// The message is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The message is not a JSON-RPC request.
pub const INVALID_REQUEST: i64 = -32600;
/// The method is unknown.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The params are invalid; also an unknown tool, and since 2026-07-28 an unknown resource.
pub const INVALID_PARAMS: i64 = -32602;
/// The server failed internally.
pub const INTERNAL_ERROR: i64 = -32603;
/// An unknown resource, before 2026-07-28.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// The client must open a URL first, in 2025-11-25 only.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
/// Since 2026-07-28: an HTTP header is missing or contradicts the body.
pub const HEADER_MISMATCH: i64 = -32020;
/// Since 2026-07-28: the client did not declare a capability that the request needs.
pub const MISSING_CAPABILITY: i64 = -32021;
/// Since 2026-07-28: the version is not supported; `data.supported` lists those that are.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// Whether only servers of the modern era send this code: a client that probes for the era can rely on it.
pub fn is_modern(code: i64) -> bool {
    matches!(code, HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION)
}

/// The code for a garbled message: invalid JSON, or JSON that is no message.
pub fn for_garbled(reason: &GarbledReason) -> i64 {
    match reason {
        GarbledReason::Blank
        | GarbledReason::NotUtf8 { .. }
        | GarbledReason::NotJson { .. }
        | GarbledReason::PartialLine
        | GarbledReason::TooLong { .. } => PARSE_ERROR,
        GarbledReason::NotAnObject { .. }
        | GarbledReason::EmptyBatch
        | GarbledReason::DuplicateKey { .. }
        | GarbledReason::NotVersion2 { .. }
        | GarbledReason::BadId { .. }
        | GarbledReason::BadMethod { .. }
        | GarbledReason::BadParams { .. }
        | GarbledReason::BadError { .. }
        | GarbledReason::ResultAndError
        | GarbledReason::RequestAndResponse
        | GarbledReason::NoMethodOrResult
        | GarbledReason::NoId => INVALID_REQUEST,
    }
}
