//! The names of Python's client library, and the wire's names for the same.

use super::json_tree::JsonTree;

/// A method of Python's `ClientSession`.
pub(super) struct PythonMethod {
    /// `call_tool`
    pub(super) python: &'static str,
    /// `tools/call`
    pub(super) wire: &'static str,
    /// The names of its positional arguments.
    pub(super) positional: &'static [&'static str],
    /// The class of its result.
    pub(super) result: &'static str,
    /// The member of the result whose value is the list, if Python recorded only the list.
    pub(super) list: &'static str,
}

const fn word(
    python: &'static str,
    wire: &'static str,
    positional: &'static [&'static str],
    result: &'static str,
    list: &'static str,
) -> PythonMethod {
    PythonMethod { python, wire, positional, result, list }
}

pub(super) const WORDS: &[PythonMethod] = &[
    word("initialize", "initialize", &[], "InitializeResult", ""),
    word("discover", "server/discover", &[], "DiscoverResult", ""),
    word("send_discover", "server/discover", &["version"], "", ""),
    word("list_tools", "tools/list", &["cursor"], "ListToolsResult", "tools"),
    word("call_tool", "tools/call", &["name", "arguments"], "CallToolResult", "content"),
    word("list_resources", "resources/list", &["cursor"], "ListResourcesResult", "resources"),
    word(
        "list_resource_templates",
        "resources/templates/list",
        &["cursor"],
        "ListResourceTemplatesResult",
        "resourceTemplates",
    ),
    word("read_resource", "resources/read", &["uri"], "ReadResourceResult", "contents"),
    word("subscribe_resource", "resources/subscribe", &["uri"], "EmptyResult", ""),
    word("unsubscribe_resource", "resources/unsubscribe", &["uri"], "EmptyResult", ""),
    word("list_prompts", "prompts/list", &["cursor"], "ListPromptsResult", "prompts"),
    word("get_prompt", "prompts/get", &["name", "arguments"], "GetPromptResult", "messages"),
    word("complete", "completion/complete", &["ref", "argument", "context_arguments"], "CompleteResult", ""),
    word("set_logging_level", "logging/setLevel", &["level"], "EmptyResult", ""),
    word("send_ping", "ping", &[], "EmptyResult", ""),
];

/// Methods that send the server a notification.
pub(super) const NOTIFICATION_METHODS: &[PythonMethod] = &[
    word(
        "send_progress_notification",
        "notifications/progress",
        &["progressToken", "progress", "total", "message"],
        "",
        "",
    ),
    word("send_roots_list_changed", "notifications/roots/list_changed", &[], "", ""),
];

/// Finds a method by Python's name or by the wire's.
pub(super) fn find(name: &str) -> Option<&'static PythonMethod> {
    WORDS.iter().find(|word| word.python == name || word.wire == name)
}

/// Keyword arguments that are never sent: timeouts, callbacks, and which responses to accept.
pub(super) const CLIENT_ONLY_ARGUMENTS: &[&str] =
    &["read_timeout_seconds", "progress_callback", "allow_input_required", "allow_claimed", "cache_mode"];

/// Keys of the protocol that Python's classes spell differently. Keys that a user may have chosen are not among them.
const KEYS: &[(&str, &str)] = &[
    ("meta", "_meta"),
    ("progress_token", "progressToken"),
    ("is_error", "isError"),
    ("structured_content", "structuredContent"),
    ("mime_type", "mimeType"),
    ("next_cursor", "nextCursor"),
    ("input_schema", "inputSchema"),
    ("output_schema", "outputSchema"),
    ("protocol_version", "protocolVersion"),
    ("server_info", "serverInfo"),
    ("client_info", "clientInfo"),
    ("list_changed", "listChanged"),
    ("uri_template", "uriTemplate"),
    ("resource_templates", "resourceTemplates"),
    ("read_only_hint", "readOnlyHint"),
    ("destructive_hint", "destructiveHint"),
    ("idempotent_hint", "idempotentHint"),
    ("open_world_hint", "openWorldHint"),
    ("last_modified", "lastModified"),
    ("has_more", "hasMore"),
    ("website_url", "websiteUrl"),
    ("result_type", "resultType"),
    ("ttl_ms", "ttlMs"),
    ("cache_scope", "cacheScope"),
    ("supported_versions", "supportedVersions"),
    ("input_requests", "inputRequests"),
    ("input_responses", "inputResponses"),
    ("request_state", "requestState"),
    ("requested_schema", "requestedSchema"),
    ("elicitation_id", "elicitationId"),
    ("max_tokens", "maxTokens"),
    ("system_prompt", "systemPrompt"),
    ("include_context", "includeContext"),
    ("stop_sequences", "stopSequences"),
    ("stop_reason", "stopReason"),
    ("model_preferences", "modelPreferences"),
    ("cost_priority", "costPriority"),
    ("speed_priority", "speedPriority"),
    ("intelligence_priority", "intelligencePriority"),
    ("tool_choice", "toolChoice"),
    ("tool_use_id", "toolUseId"),
    ("task_support", "taskSupport"),
    ("task_id", "taskId"),
    ("status_message", "statusMessage"),
    ("created_at", "createdAt"),
    ("last_updated_at", "lastUpdatedAt"),
    ("poll_interval", "pollInterval"),
];

/// Keys whose values are invented by users and servers: no key below them belongs to the protocol.
const DATA: &[&str] = &[
    "arguments",
    "structuredContent",
    "inputSchema",
    "outputSchema",
    "_meta",
    "data",
    "experimental",
    "extensions",
    "requestedSchema",
    "metadata",
];

/// Keys whose values have member names that a server invented, and member values that the protocol defines.
const MAPS_BY_NAME: &[&str] = &["inputRequests", "inputResponses"];

/// A result in its wire form: without class names and explicit nulls, keys as the protocol spells them.
pub(super) fn wire(tree: &JsonTree) -> JsonTree {
    match tree {
        JsonTree::Leaf(_) => tree.clone(),
        JsonTree::List(elements) => JsonTree::List(elements.iter().map(wire).collect()),
        JsonTree::Object(members) => {
            if let Some(url) = url(tree) {
                return url;
            }
            let mut object = JsonTree::Object(Vec::with_capacity(members.len()));
            for (key, value) in members.iter().filter(|(key, value)| key != "_type" && !value.is_null()) {
                let key = KEYS.iter().find(|(python, _)| python == key).map_or(key.as_str(), |(_, wire)| wire);
                // The arguments of a prompt in a list are descriptions, those of a call are data.
                let is_data = DATA.contains(&key) && !(key == "arguments" && matches!(value, JsonTree::List(_)));
                // The values that a user filled in, and the arguments that a model calls a tool with.
                let is_data = is_data || key == "content" && tree.get("action").is_some() || key == "input";
                let value = match key {
                    _ if is_data => value.clone(),
                    _ if MAPS_BY_NAME.contains(&key) => named(value),
                    "uri" => uri(value),
                    _ => wire(value),
                };
                object.set(key, value);
            }
            object
        }
    }
}

/// The wire form of each member, whatever its name.
fn named(tree: &JsonTree) -> JsonTree {
    match tree {
        JsonTree::Object(members) => {
            let known = members.iter().filter(|(name, _)| name != "_type");
            JsonTree::Object(known.map(|(name, value)| (name.clone(), wire(value))).collect())
        }
        JsonTree::Leaf(_) | JsonTree::List(_) => tree.clone(),
    }
}

/// A URI that Python wrote as a string, as an object, or as its `repr`: `AnyUrl('a:b')`.
pub(super) fn uri(tree: &JsonTree) -> JsonTree {
    let shown = |text: String| {
        let (class, rest) = text.split_once("('")?;
        let is_class = class.ends_with("Url") && class.chars().all(char::is_alphanumeric);
        rest.strip_suffix("')").filter(|_| is_class).map(JsonTree::string)
    };
    tree.text().and_then(shown).unwrap_or_else(|| wire(tree))
}

/// A URL that Python wrote as an object.
fn url(tree: &JsonTree) -> Option<JsonTree> {
    let class = tree.get("_type")?.text()?;
    if !class.ends_with("Url") && !class.ends_with("URI") {
        return None;
    }
    ["url", "_url", "value", "uri"].iter().find_map(|key| tree.some(key)).cloned()
}
