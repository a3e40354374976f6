//! The four tools.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jsonschema::Validator;
use rmcp::handler::server::tool::{schema_for_input, schema_for_output};
use rmcp::model::{CallToolResult, ContentBlock, Implementation, JsonObject, ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::engine::{EngineVersion, UnknownEngine};
use crate::library::{Comparison, Filter, Library};
use crate::results::{Filtered, Ranked, Switched};

/// Maximum number of instructions in one result.
const MAX_RESULTS: usize = 100;

/// The server; clones share everything, so that an engine is switched for all clients of one process.
#[derive(Clone)]
pub(crate) struct InstructionServer {
    library: Arc<Library>,
    engine: Arc<Mutex<EngineVersion>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RouteInstructions {
    /// The message of the user, or a command such as `/pongogo-retro`.
    #[schemars(length(min = 1))]
    message: String,
    /// What is known about the conversation; its words count half as much as those of the message.
    #[serde(default)]
    context: Option<Map<String, Value>>,
    /// The most instructions to return.
    #[serde(default = "five", deserialize_with = "whole")]
    #[schemars(range(min = 1, max = MAX_RESULTS))]
    limit: usize,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetInstructions {
    /// A name, a title or a tag.
    #[serde(default)]
    topic: Option<String>,
    /// The category.
    #[serde(default)]
    category: Option<String>,
    /// Whether topic and category must be the same and not only contain what was given; case never matters.
    #[serde(default)]
    exact_match: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchInstructions {
    /// The words to look for.
    #[schemars(length(min = 1))]
    query: String,
    /// The most instructions to return.
    #[serde(default = "ten", deserialize_with = "whole")]
    #[schemars(range(min = 1, max = MAX_RESULTS))]
    limit: usize,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SwitchEngine {
    /// The version, such as `durian-0.6`.
    engine_version: String,
}

fn five() -> usize {
    5
}

fn ten() -> usize {
    10
}

/// To JSON Schema `5.0` is an integer, too; whether it is one, and in bounds, was checked there.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    f64::deserialize(deserializer).map(|number| number as usize)
}

#[tool_router]
impl InstructionServer {
    pub(crate) fn new(library: Library) -> InstructionServer {
        InstructionServer { library: Arc::new(library), engine: Arc::new(Mutex::new(EngineVersion::LATEST)) }
    }

    #[tool(
        description = "Find the instructions for a message, best first: by command or by relevance.",
        input_schema = input::<RouteInstructions>(),
        output_schema = schema_for_output::<Ranked>(),
        annotations(read_only_hint = true)
    )]
    fn route_instructions(&self, arguments: JsonObject) -> Result<CallToolResult, String> {
        let RouteInstructions { message, context, limit } = read(&ROUTE_INSTRUCTIONS, arguments)?;
        Ok(answer(&self.library.route(self.engine(), &message, context.as_ref(), limit)))
    }

    #[tool(
        description = "Get whole instructions by topic, category or both; all of them if neither is given.",
        input_schema = input::<GetInstructions>(),
        output_schema = schema_for_output::<Filtered>(),
        annotations(read_only_hint = true)
    )]
    fn get_instructions(&self, arguments: JsonObject) -> Result<CallToolResult, String> {
        let GetInstructions { topic, category, exact_match } = read(&GET_INSTRUCTIONS, arguments)?;
        let how = if exact_match { Comparison::Whole } else { Comparison::Part };
        Ok(answer(&self.library.get(&Filter { topic, category, how })))
    }

    #[tool(
        description = "Search the text of all instructions; returns the best passage of each, best first.",
        input_schema = input::<SearchInstructions>(),
        output_schema = schema_for_output::<Ranked>(),
        annotations(read_only_hint = true)
    )]
    fn search_instructions(&self, arguments: JsonObject) -> Result<CallToolResult, String> {
        let SearchInstructions { query, limit } = read(&SEARCH_INSTRUCTIONS, arguments)?;
        Ok(answer(&self.library.search(self.engine(), &query, limit)))
    }

    #[tool(
        description = "Switch the engine that ranks instructions, for all clients of this server: durian-0.6 ranks by \
                       title, triggers, tags and text and knows commands; durian-0.5 ranks by the text alone.",
        input_schema = input::<SwitchEngine>(),
        output_schema = schema_for_output::<Switched>(),
        annotations(idempotent_hint = true, destructive_hint = false)
    )]
    fn switch_engine(&self, arguments: JsonObject) -> Result<CallToolResult, String> {
        let SwitchEngine { engine_version } = read(&SWITCH_ENGINE, arguments)?;
        let engine_version: EngineVersion = engine_version.parse().map_err(|error: UnknownEngine| error.to_string())?;
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let previous = std::mem::replace(&mut *engine, engine_version);
        Ok(answer(&Switched { engine_version, previous }))
    }

    fn engine(&self) -> EngineVersion {
        *self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn input<T: JsonSchema + 'static>() -> Arc<JsonObject> {
    schema_for_input::<T>().expect("arguments are a struct, so their schema is an object")
}

/// What is published of a tool's arguments is also what they are checked against.
type Check = LazyLock<Validator>;

static ROUTE_INSTRUCTIONS: Check = LazyLock::new(check::<RouteInstructions>);
static GET_INSTRUCTIONS: Check = LazyLock::new(check::<GetInstructions>);
static SEARCH_INSTRUCTIONS: Check = LazyLock::new(check::<SearchInstructions>);
static SWITCH_ENGINE: Check = LazyLock::new(check::<SwitchEngine>);

fn check<T: JsonSchema + 'static>() -> Validator {
    let schema = Value::Object((*input::<T>()).clone());
    jsonschema::draft202012::new(&schema).expect("schemars writes valid schemas")
}

/// The arguments, or all that is wrong with them.
///
/// A model can act on the text of a failed tool, but hosts do not show it a protocol error; so wrong arguments are the
/// former, as the protocol recommends since 2025-11-25.
fn read<T: DeserializeOwned>(check: &Check, arguments: JsonObject) -> Result<T, String> {
    let arguments = Value::Object(arguments);
    let wrong: Vec<String> = check
        .iter_errors(&arguments)
        .map(|error| match error.instance_path().as_str() {
            "" => error.to_string(),
            path => format!("`{}`: {error}", path.trim_start_matches('/')),
        })
        .collect();
    if !wrong.is_empty() {
        return Err(format!("wrong arguments: {}", wrong.join("; ")));
    }
    serde_json::from_value(arguments).map_err(|error| format!("wrong arguments: {error}"))
}

fn answer(found: &(impl Serialize + ToString)) -> CallToolResult {
    let mut result = CallToolResult::structured(json!(found));
    result.content = vec![ContentBlock::text(found.to_string())];
    result
}

#[tool_handler]
impl ServerHandler for InstructionServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("instruction-server", env!("CARGO_PKG_VERSION")))
            .with_instructions("Call route_instructions with the message of the user before you begin to work on it.")
    }
}
