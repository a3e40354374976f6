//! The tools that a plan can call, by server.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rehearsal_core::answer::{
    AnswerSource, Chain, Introduction, ListKind, ListedForm, Lists, SchemaSource, Surface, SurfaceItem,
};
use rehearsal_core::matcher::Schema;
use rehearsal_core::message::Reply;
use rehearsal_core::report::Severity;
use rehearsal_core::schema::infer;
use rehearsal_core::suggest::closest;
use serde_json::{Value, json};

use super::assemble::finding;
use super::call::CallProblem;
use super::effects::{DeclaredEffects, ToolEffect};
use super::options::DryRunOptions;
use super::report::{FindingCode, PlanFinding};
use super::safe_tools::SafeTools;
use super::value::result_value;
use crate::cache::{AnswerFreshness, Cache, CacheError, CacheSource, CachedAnswer, StaleAnswer, ToolSchemaHash};

/// Number of recorded results from which the shape of a tool's results is inferred.
const RESULTS_FOR_SHAPE: usize = 20;
/// Maximum number of tools that a hint names.
const MAX_NAMES: usize = 12;

/// The servers that a plan can use, with their tools.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    servers: BTreeMap<String, ServerTools>,
}

/// The tools of one server.
#[derive(Clone, Debug)]
pub enum ServerTools {
    /// They are known.
    Known {
        /// The elements of `tools/list`.
        tools: Vec<Value>,
        /// When they were listed, in milliseconds since 1970, if not just now.
        saved_ms: Option<u64>,
    },
    /// They could not be listed.
    Unavailable {
        /// The reason.
        reason: String,
    },
}

impl Catalogue {
    /// Adds a server, or replaces it.
    pub fn insert(&mut self, server: impl Into<String>, tools: ServerTools) {
        self.servers.insert(server.into(), tools);
    }

    /// A server with these elements of `tools/list`.
    #[must_use]
    pub fn with_tools(mut self, server: impl Into<String>, tools: Vec<Value>) -> Catalogue {
        self.insert(server, ServerTools::Known { tools, saved_ms: None });
        self
    }

    /// The servers by name.
    pub fn servers(&self) -> impl Iterator<Item = (&str, &ServerTools)> {
        self.servers.iter().map(|(name, tools)| (name.as_str(), tools))
    }
}

/// The servers of a dry run: each with the chain that answers its calls.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    servers: BTreeMap<String, DryRunServer>,
    cache: Option<Arc<Cache>>,
    safe_tools: Option<Arc<SafeTools>>,
}

/// One server of a dry run.
#[derive(Debug)]
pub(super) enum DryRunServer {
    /// Its tools are known.
    Known(Box<KnownServer>),
    /// Its tools could not be listed.
    Unavailable {
        /// The reason.
        reason: String,
    },
}

/// A server whose tools are known.
#[derive(Debug)]
pub(super) struct KnownServer {
    /// Answers a valid call.
    pub(super) chain: Chain,
    /// Answers a call that the server would refuse, so that the rehearsal can continue.
    pub(super) without_override: Chain,
    tools: BTreeMap<String, CheckedTool>,
    recorded: Option<Arc<CacheSource>>,
}

/// A tool with what its calls are checked against.
#[derive(Debug)]
pub(crate) struct CheckedTool {
    /// The compiled input schema, or why it cannot be used.
    pub(super) input: Result<Schema, String>,
    pub(crate) effect: ToolEffect,
    /// The output schema, or the shape of recorded results.
    output: Option<Value>,
    compiled_output: OnceLock<Option<Schema>>,
}

impl CheckedTool {
    /// The output schema, or the shape of recorded results.
    pub(super) fn output(&self) -> Option<(&Value, &Schema)> {
        let schema = self.output.as_ref()?;
        let compiled = self.compiled_output.get_or_init(|| Schema::compile(schema).ok());
        Some((schema, compiled.as_ref()?))
    }
}

impl Servers {
    /// Builds the chains: override, cache, example of the output schema. What they leave unanswered is a placeholder.
    pub(crate) fn new(options: &DryRunOptions) -> Result<Servers, CacheError> {
        let DryRunOptions { catalogue, overrides, cache, effects, safe_tools, time_to_live, .. } = options;
        let cache = cache.as_ref();
        // All servers of a dry run have the same time.
        let now_ms = cache.map_or(0, |cache| cache.now_ms());
        let mut servers = BTreeMap::new();
        let names = catalogue.servers.keys().chain(overrides.keys());
        for name in names {
            let (listed, script) = (catalogue.servers.get(name), overrides.get(name));
            let tools: &[Value] = match listed {
                Some(ServerTools::Known { tools, .. }) => tools,
                Some(ServerTools::Unavailable { reason }) if script.is_none() => {
                    servers.insert(name.clone(), DryRunServer::Unavailable { reason: reason.clone() });
                    continue;
                }
                Some(ServerTools::Unavailable { .. }) | None => &[],
            };
            let of_server = |(tool, time): (&String, &Duration)| match tool.split_once(':') {
                Some((server, tool)) if server == name => Some((tool.to_owned(), *time)),
                _ => None,
            };
            let freshness = AnswerFreshness {
                now_ms,
                time_to_live: time_to_live.iter().filter_map(of_server).collect(),
                schemas: schemas_of(tools),
            };
            let recorded = cache.map(|cache| (cache, freshness));
            let server = KnownServer::new(name, tools, script, recorded, effects)?;
            servers.insert(name.clone(), DryRunServer::Known(Box::new(server)));
        }
        Ok(Servers { servers, cache: cache.cloned(), safe_tools: safe_tools.clone() })
    }

    /// Sets the tools of a server that was connected to.
    pub(crate) fn connect(
        &mut self,
        name: &str,
        listed: &ServerTools,
        effects: &DeclaredEffects,
    ) -> Result<(), CacheError> {
        let server = match listed {
            ServerTools::Known { tools, .. } => {
                DryRunServer::Known(Box::new(KnownServer::new(name, tools, None, None, effects)?))
            }
            ServerTools::Unavailable { reason } => DryRunServer::Unavailable { reason: reason.clone() },
        };
        self.servers.insert(name.to_owned(), server);
        Ok(())
    }

    /// The tools whose calls reach their servers, if a tool is one of them.
    pub(super) fn safe_tools(&self, server: &str, tool: &str) -> Option<&SafeTools> {
        self.safe_tools.as_deref().filter(|tools| tools.contains(server, tool))
    }

    pub(super) fn get(&self, server: &str) -> Option<&DryRunServer> {
        self.servers.get(server)
    }

    /// The tool of a call, or why a real run of the call would fail. A missing tool is looked for on the other servers.
    pub(crate) fn check(&self, server: &str, tool: &str) -> (Option<&CheckedTool>, Option<CallProblem>) {
        match self.get(server) {
            None => {
                let names: Vec<&str> = self.servers.keys().map(String::as_str).collect();
                let hint = match closest(server, names.iter().copied()) {
                    Some(name) => format!("{name}:{tool}"),
                    None if names.is_empty() => "no server is known".to_owned(),
                    None => format!("the known servers are {}", names.join(", ")),
                };
                (None, Some(CallProblem::MissingServer { hint: Some(hint) }))
            }
            Some(DryRunServer::Unavailable { reason }) => {
                (None, Some(CallProblem::UnknownCatalogue { reason: reason.clone() }))
            }
            Some(DryRunServer::Known(known)) => match known.tools.get(tool) {
                Some(found) => (Some(found), None),
                None => {
                    let here =
                        closest(tool, known.tools.keys().map(String::as_str)).map(|name| format!("{server}:{name}"));
                    let hint = here.or_else(|| self.server_of(tool)).or_else(|| known.tool_names(server));
                    (None, Some(CallProblem::MissingTool { hint }))
                }
            },
        }
    }

    /// A tool of this name on any server.
    fn server_of(&self, tool: &str) -> Option<String> {
        let has =
            |server: &DryRunServer| matches!(server, DryRunServer::Known(server) if server.tools.contains_key(tool));
        self.servers.iter().find(|(_, server)| has(server)).map(|(name, _)| format!("{name}:{tool}"))
    }

    /// The declared effects of tools that do not exist.
    pub(crate) fn unknown_declarations(&self, effects: &DeclaredEffects) -> Vec<PlanFinding> {
        let unknown = effects.keys().filter_map(|name| {
            let (server, tool) = name.split_once(':').unwrap_or((name, ""));
            let (code, hint) = match self.check(server, tool).1? {
                CallProblem::MissingServer { hint } => (FindingCode::MissingServer, hint),
                CallProblem::MissingTool { hint } => (FindingCode::MissingTool, hint),
                CallProblem::UnknownCatalogue { .. } | CallProblem::Arguments(_) => return None,
            };
            let message = format!("the declared effect of {name} has no use: there is no such tool");
            Some(PlanFinding { hint, ..finding(code, Severity::Warning, message) })
        });
        unknown.collect()
    }

    pub(super) fn cache(&self) -> Option<&Arc<Cache>> {
        self.cache.as_ref()
    }

    /// The tools of each server whose tools are known.
    pub(super) fn tools(&self) -> BTreeMap<String, Vec<String>> {
        let known = self.servers.iter().filter_map(|(name, server)| match server {
            DryRunServer::Known(server) => Some((name.clone(), server.tools.keys().cloned().collect())),
            DryRunServer::Unavailable { .. } => None,
        });
        known.collect()
    }
}

impl KnownServer {
    fn new(
        name: &str,
        tools: &[Value],
        script: Option<&Arc<dyn AnswerSource>>,
        recorded: Option<(&Arc<Cache>, AnswerFreshness)>,
        effects: &DeclaredEffects,
    ) -> Result<KnownServer, CacheError> {
        let mut items = listed_tools(tools);
        for item in &mut items {
            if let (Some((cache, freshness)), ListedForm::Newest(listed)) = (&recorded, &mut item.form) {
                add_examples(listed, &cache.recent_answers(name, &item.id, RESULTS_FOR_SHAPE)?, freshness);
            }
        }
        let recorded =
            recorded.map(|(cache, freshness)| Arc::new(CacheSource::new(Arc::clone(cache), name).requiring(freshness)));
        let surface = surface_of(items);
        let schema: Arc<dyn AnswerSource> = Arc::new(SchemaSource::default());
        let mut sources: Vec<Arc<dyn AnswerSource>> = script.into_iter().cloned().collect();
        let known = recorded.iter().map(|source| Arc::clone(source) as Arc<dyn AnswerSource>);
        sources.extend(known.clone());
        sources.push(Arc::clone(&schema));
        // What the server really replied to wrong arguments is known, too.
        let without_override = known.chain([schema]).collect();
        let chain = Chain::new(sources).offering(surface.clone());
        let merged = chain.surface().lists.clone().unwrap_or_default();
        let checked = merged.ids(ListKind::Tools).filter_map(|id| {
            let tool = merged.find(ListKind::Tools, id)?.value();
            let declared = effects.get(&format!("{name}:{id}")).copied();
            let effect = ToolEffect::of_tool(tool, declared);
            let schema = tool.get("inputSchema").cloned().unwrap_or_else(|| json!({"type": "object"}));
            let input = Schema::compile(&schema).map_err(|error| error.to_string());
            let (output, compiled_output) = (tool.get("outputSchema").cloned(), OnceLock::new());
            Some((id.to_owned(), CheckedTool { input, effect, output, compiled_output }))
        });
        let tools = checked.collect();
        // The tools of an override have output schemas, too.
        let surface = Surface { lists: Some(merged), ..surface };
        Ok(KnownServer { chain, without_override: Chain::new(without_override).offering(surface), tools, recorded })
    }

    /// Why the recorded answer of a call is not used, if there is one.
    pub(super) fn stale(&self, tool: &str, arguments: &Value) -> Option<StaleAnswer> {
        self.recorded.as_ref()?.stale(tool, arguments)
    }

    /// The names of the tools, for a user who looks for one.
    fn tool_names(&self, server: &str) -> Option<String> {
        let mut names: Vec<&str> = self.tools.keys().map(String::as_str).collect();
        let more = names.len().saturating_sub(MAX_NAMES);
        names.truncate(MAX_NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("the tools of {server} are {}{more}", names.join(", ")))
    }
}

/// The tools of one server as the server and its override list them, without what is recorded about them.
pub(crate) enum ListedTools {
    /// The lists.
    Known(Arc<Lists>),
    /// The tools could not be listed.
    Unavailable,
    /// No server has this name.
    Missing,
}

impl ListedTools {
    /// Lists the tools of a server.
    pub(crate) fn new(catalogue: &Catalogue, script: Option<&Arc<dyn AnswerSource>>, server: &str) -> ListedTools {
        let tools: &[Value] = match (catalogue.servers.get(server), script) {
            (Some(ServerTools::Known { tools, .. }), _) => tools,
            (Some(ServerTools::Unavailable { .. }), None) => return ListedTools::Unavailable,
            (None, None) => return ListedTools::Missing,
            (Some(ServerTools::Unavailable { .. }) | None, Some(_)) => &[],
        };
        let surface = surface_of(listed_tools(tools));
        let chain = Chain::new(script.cloned().into_iter().collect()).offering(surface);
        ListedTools::Known(chain.surface().lists.clone().unwrap_or_default())
    }

    /// The element of `tools/list` of a tool.
    pub(crate) fn get(&self, tool: &str) -> Option<&Value> {
        match self {
            ListedTools::Known(lists) => Some(lists.find(ListKind::Tools, tool)?.value()),
            ListedTools::Unavailable | ListedTools::Missing => None,
        }
    }
}

/// The elements of `tools/list` that have a name.
pub(super) fn listed_tools(tools: &[Value]) -> Vec<SurfaceItem> {
    let item = |tool: &Value| {
        let id = tool.get("name")?.as_str()?.to_owned();
        Some(SurfaceItem { id, form: ListedForm::Newest(tool.clone()), needs: None })
    };
    tools.iter().filter_map(item).collect()
}

/// The surface of a server with these tools.
pub(super) fn surface_of(tools: Vec<SurfaceItem>) -> Surface {
    let lists = Lists::new([tools, Vec::new(), Vec::new(), Vec::new()], None);
    Surface {
        lists: Some(Arc::new(lists)),
        introduction: Some(Arc::new(Introduction::default())),
        ..Surface::default()
    }
}

/// The hashes of the schemas of listed tools.
fn schemas_of(tools: &[Value]) -> HashMap<String, ToolSchemaHash> {
    let hash = |tool: &Value| Some((tool.get("name")?.as_str()?.to_owned(), ToolSchemaHash::of_tool(tool)));
    tools.iter().filter_map(hash).collect()
}

/// Adds recorded values to the output schema of a tool as examples; a tool without one gets the shape of its recorded results.
/// An expired result has the shape of the tool's results still, but it is no example. One of another schema is neither.
fn add_examples(tool: &mut Value, recorded: &[CachedAnswer], freshness: &AnswerFreshness) {
    let (mut values, mut fresh) = (Vec::new(), Vec::new());
    for answer in recorded {
        let is_fresh = match freshness.check(answer) {
            Ok(()) => true,
            Err(StaleAnswer::ExpiredForOperator { .. } | StaleAnswer::ExpiredForServer { .. }) => false,
            Err(StaleAnswer::OtherSchema { .. }) => continue,
        };
        let Some(value) = recorded_value(&answer.entry.reply) else { continue };
        if is_fresh {
            fresh.push((answer, value.clone()));
        }
        values.push(value);
    }
    let Some(members) = tool.as_object_mut().filter(|_| !values.is_empty()) else { return };
    match members.get_mut("outputSchema") {
        Some(Value::Object(schema)) => {
            let structured = |(answer, _): &(&CachedAnswer, Value)| match &answer.entry.reply {
                Reply::Result(result) => result.field("structuredContent")?.value().ok(),
                Reply::Error(_) => None,
            };
            let mut examples: Vec<Value> = fresh.iter().filter_map(structured).collect();
            if let Some(Value::Array(own)) = schema.get("examples") {
                examples.extend(own.clone());
            }
            if !examples.is_empty() {
                schema.insert("examples".to_owned(), examples.into());
            }
        }
        Some(_) | None => {
            let mut shape = infer(&values);
            if !fresh.is_empty() {
                shape["examples"] = fresh.into_iter().map(|(_, value)| value).collect();
            }
            members.insert("outputSchema".to_owned(), shape);
        }
    }
}

/// What a plan gets for a recorded reply; `None` for an error.
pub(super) fn recorded_value(reply: &Reply) -> Option<Value> {
    match reply {
        Reply::Result(result) => result.value().ok().map(|result| result_value(&result)),
        Reply::Error(_) => None,
    }
}
