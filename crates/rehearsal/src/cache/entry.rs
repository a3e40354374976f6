//! What the cache stores and what it returns: results, lists of tools, and the selection of some of them.

use std::fmt;

use rehearsal_core::json::{RawJson, canonical};
use rehearsal_core::message::{ErrorReply, Reply};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The principal of local use.
pub const LOCAL_PRINCIPAL: &str = "local";

/// One real result.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheEntry {
    /// The server, by its name in the configuration.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Value,
    /// The reply to `tools/call`, as the server sent it.
    pub reply: Reply,
    /// The recorded session or real run that it belongs to.
    pub run: String,
    /// Its position in the run.
    pub sequence: u64,
    /// When the server sent it, in milliseconds since 1970.
    pub at_ms: u64,
    /// The time between the request and the result, in milliseconds.
    pub latency_ms: Option<f64>,
}

impl CacheEntry {
    /// How long the server lets clients use the result: `ttlMs`.
    pub fn ttl_ms(&self) -> Option<u64> {
        let Reply::Result(result) = &self.reply else { return None };
        result.field("ttlMs")?.value().ok()?.as_u64()
    }
}

/// A stored result with the circumstances in which it was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct CachedAnswer {
    /// The result.
    pub entry: CacheEntry,
    /// The principal that recorded it.
    pub principal: String,
    /// Which principals may read it.
    pub sharing: AnswerSharing,
    /// The schemas of the tool at that time, if they were known.
    pub schema: Option<ToolSchemaHash>,
}

/// Which principals may read a stored result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerSharing {
    /// Only the principal that recorded it may.
    Private,
    /// Every principal may.
    Shared,
}

impl AnswerSharing {
    /// The sharing of a reply. The server's `cacheScope` decides; without one `otherwise` does.
    pub fn of(reply: &Reply, otherwise: AnswerSharing) -> AnswerSharing {
        let Reply::Result(result) = reply else { return otherwise };
        let scope = result.field("cacheScope").and_then(|scope| scope.text());
        match scope.as_deref() {
            Some("public") => AnswerSharing::Shared,
            // An unknown scope is no permission to share.
            Some(_) => AnswerSharing::Private,
            None => otherwise,
        }
    }
}

/// The SHA-256 of a tool's input schema and output schema, in canonical form.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ToolSchemaHash([u8; 32]);

impl ToolSchemaHash {
    /// The hash of an element of `tools/list`.
    pub fn of_tool(tool: &Value) -> ToolSchemaHash {
        let mut text = String::new();
        canonical(&json!([tool.get("inputSchema"), tool.get("outputSchema")]), &mut text);
        ToolSchemaHash(Sha256::digest(text.as_bytes()).into())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<ToolSchemaHash> {
        bytes.try_into().ok().map(ToolSchemaHash)
    }

    /// Parses the 64 digits that `Display` prints.
    pub(super) fn parse(text: &str) -> Option<ToolSchemaHash> {
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let digits = (0..32).map(|index| u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).ok());
        ToolSchemaHash::from_bytes(&digits.collect::<Option<Vec<u8>>>()?)
    }
}

impl fmt::Display for ToolSchemaHash {
    /// 64 digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ToolSchemaHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The saved tools of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedCatalogue {
    /// The elements of `tools/list`.
    pub tools: Vec<Value>,
    /// When they were listed, in milliseconds since 1970.
    pub at_ms: u64,
}

/// The calls whose latencies are requested.
#[derive(Clone, Copy, Debug)]
pub enum LatencyScope<'a> {
    /// Calls of a tool with these arguments.
    Arguments {
        /// The server.
        server: &'a str,
        /// The tool.
        tool: &'a str,
        /// The arguments.
        key: super::key::ArgumentsKey,
    },
    /// All calls of a tool.
    Tool {
        /// The server.
        server: &'a str,
        /// The tool.
        tool: &'a str,
    },
    /// All calls of a server.
    Server {
        /// The server.
        server: &'a str,
    },
}

/// Which entries a command is about.
#[derive(Clone, Debug, Default)]
pub struct CacheFilter {
    /// Those of this server.
    pub server: Option<String>,
    /// Those of this tool.
    pub tool: Option<String>,
    /// Those before this time, in milliseconds since 1970.
    pub before_ms: Option<u64>,
    /// Those of these principals.
    pub principals: PrincipalFilter,
}

/// The principals whose entries a command is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrincipalFilter {
    /// Reading uses the entries that the principal of the cache may read; removing uses those that it recorded.
    #[default]
    Own,
    /// The entries of all principals.
    All,
}

/// The kinds of replies, as they are stored.
pub(super) const RESULT: i64 = 0;
const TOOL_ERROR: i64 = 1;
const PROTOCOL_ERROR: i64 = 2;

pub(super) fn reply_kind(reply: &Reply) -> i64 {
    match reply {
        Reply::Result(_) if is_tool_error(reply) => TOOL_ERROR,
        Reply::Result(_) => RESULT,
        Reply::Error(_) => PROTOCOL_ERROR,
    }
}

/// Whether a reply is the result of a tool that failed.
fn is_tool_error(reply: &Reply) -> bool {
    let Reply::Result(result) = reply else { return false };
    result.field("isError").is_some_and(|member| member.as_str() == "true")
}

pub(super) fn reply_text(reply: &Reply) -> String {
    match reply {
        Reply::Result(result) => result.as_str().to_owned(),
        Reply::Error(error) => Value::Object(error.object()).to_string(),
    }
}

/// The reply of a stored text, or why the text cannot be one.
pub(super) fn parse_reply(kind: i64, text: &str) -> Result<Reply, String> {
    Ok(match kind {
        PROTOCOL_ERROR => {
            let object = serde_json::from_str(text).map_err(|error| error.to_string())?;
            Reply::Error(ErrorReply::new(0, "").with_object(object))
        }
        _ => Reply::Result(RawJson::parse(text.as_bytes()).map_err(|error| error.to_string())?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_scope_public_of_the_server_or_the_operator_shares_a_result() {
        let reply = |result: Value| Reply::Result(RawJson::from_value(&result));
        let (private, shared) = (AnswerSharing::Private, AnswerSharing::Shared);
        for (result, otherwise, expected) in [
            (json!({"cacheScope": "public"}), private, shared),
            (json!({"cacheScope": "private"}), shared, private),
            (json!({"cacheScope": "team"}), shared, private),
            (json!({}), private, private),
            (json!({}), shared, shared),
        ] {
            assert_eq!(AnswerSharing::of(&reply(result.clone()), otherwise), expected, "{result}");
        }
    }

    #[test]
    fn the_hash_of_a_tool_is_that_of_its_schemas() {
        let hash = |tool: Value| ToolSchemaHash::of_tool(&tool);
        let tool = hash(json!({"name": "a", "inputSchema": {"type": "object", "required": []}}));
        assert_eq!(
            tool,
            hash(json!({"name": "b", "description": "x", "inputSchema": {"required": [], "type": "object"}}))
        );
        assert_ne!(tool, hash(json!({"inputSchema": {"type": "object", "required": ["a"]}})));
        assert_ne!(tool, hash(json!({"inputSchema": {"type": "object", "required": []}, "outputSchema": {}})));
        assert_eq!(ToolSchemaHash::parse(&tool.to_string()), Some(tool));
        assert_eq!(ToolSchemaHash::parse("7"), None);
    }
}
