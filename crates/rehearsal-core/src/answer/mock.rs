//! A whole mock, compiled.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::State;
use super::content::{Workshop, icons, ordered};
use super::fault::Faults;
use super::harness::Harness;
use super::listing::Listing;
use super::offer::{Numbers, Prompt, Request, Resource, ResourceTemplate, Tool, unique};
use super::rule::Rules;
use super::scene::{Scene, Step};
use super::template::Templates;
use crate::matcher::Schema;
use crate::message::{ErrorReply, Method};
use crate::protocol::{Revision, meta};
use crate::script::mock::{FaultKind, Implementation, MockFile, Otherwise};
use crate::script::{InOrder, Located, Problem, ScriptError};

/// A mock file that was read.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The file as the user named it.
    pub file: &'a str,
    /// What it says.
    pub mock: &'a MockFile,
}

/// Reads a file that a mock file names: the mock file, and what it says.
pub type ReadBeside<'a> = &'a dyn Fn(&str, &str) -> Result<Vec<u8>, String>;

/// A mock, ready to answer. It never changes; what changes is in [`State`](super::State).
#[derive(Debug)]
pub struct Mock {
    pub(super) templates: Templates,
    pub(super) info: Value,
    pub(super) instructions: Option<String>,
    pub(super) capabilities: Map<String, Value>,
    /// What is refused, by its method.
    pub(super) refuses: HashMap<String, ErrorReply>,
    pub(super) revisions: Vec<Revision>,
    pub(super) page_size: Option<usize>,
    pub(super) initial: Arc<Map<String, Value>>,
    pub(super) tools: Vec<Tool>,
    pub(super) tools_by_name: HashMap<String, usize>,
    pub(super) resources: Vec<Resource>,
    pub(super) resources_by_uri: HashMap<String, usize>,
    pub(super) resource_templates: Vec<ResourceTemplate>,
    pub(super) prompts: Vec<Prompt>,
    pub(super) prompts_by_name: HashMap<String, usize>,
    pub(super) requests: Vec<Request>,
    pub(super) requests_by_method: HashMap<String, usize>,
    pub(super) listing: Listing,
    pub(super) targets: usize,
    pub(super) rules: usize,
    pub(super) has_tasks: bool,
    pub(super) otherwise: Otherwise,
    /// Whether it is still the same mock.
    pub(super) fingerprint: u64,
    faults: Vec<Faults>,
    /// How many rules count requests.
    pub(super) fault_rules: usize,
    pub(super) harness: Option<Arc<Harness>>,
    reads_headers: bool,
}

impl Mock {
    /// Compiles files into one mock. Of what can only be said once, the first file counts.
    pub fn compile(
        sources: &[Source<'_>],
        otherwise: Otherwise,
        read: ReadBeside<'_>,
    ) -> Result<Mock, Vec<ScriptError>> {
        let mut errors = Vec::new();
        let mut templates = Templates::new();
        let mut numbers = Numbers::default();
        let (mut tools, mut resources, mut resource_templates, mut prompts) = (vec![], vec![], vec![], vec![]);
        let mut known: [HashMap<String, String>; 4] = Default::default();
        let (mut requests, mut faults) = (Vec::new(), Vec::new());
        for Source { file, mock } in sources {
            let mut problems = Vec::new();
            let [tool_names, uris, patterns, prompt_names] = &mut known;
            let place = |located: &Located<String>| located.at;
            unique(
                mock.tools.iter().map(|it| (it.name.as_str(), place(&it.name))),
                "tool",
                tool_names,
                file,
                &mut problems,
            );
            unique(
                mock.resources.iter().map(|it| (it.uri.as_str(), place(&it.uri))),
                "resource",
                uris,
                file,
                &mut problems,
            );
            let written = mock.resource_templates.iter().map(|it| (it.uri_template.as_str(), place(&it.uri_template)));
            unique(written, "resource template", patterns, file, &mut problems);
            let written = mock.prompts.iter().map(|it| (it.name.as_str(), place(&it.name)));
            unique(written, "prompt", prompt_names, file, &mut problems);
            let beside = |path: &str| read(file, path);
            let mut shop = Workshop { templates: &mut templates, read_file: &beside, problems: &mut problems };
            let validate = mock.validate.unwrap_or_default();
            tools.extend(mock.tools.iter().map(|it| Tool::compile(it, validate, &mut numbers, &mut shop)));
            resources.extend(mock.resources.iter().map(|it| Resource::compile(it, validate, &mut numbers, &mut shop)));
            let patterns = mock.resource_templates.iter();
            resource_templates
                .extend(patterns.filter_map(|it| ResourceTemplate::compile(it, validate, &mut numbers, &mut shop)));
            prompts.extend(mock.prompts.iter().map(|it| Prompt::compile(it, validate, &mut numbers, &mut shop)));
            requests.extend(mock.requests.iter().map(|it| Request::compile(it, &mut numbers, &mut shop)));
            faults.push(numbers.faults(&mock.faults, &mut shop));
            if !problems.is_empty() {
                problems.sort_by_key(|problem| problem.at);
                errors.push(ScriptError { file: (*file).to_owned(), problems });
            }
        }
        let revisions = revisions(sources, &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        let info = sources.iter().find_map(|source| source.mock.server.as_ref());
        let info = info.map_or_else(|| json!({"name": "mock", "version": "0.0.0"}), |info| implementation(info));
        let mut initial = Map::new();
        for (key, value) in sources.iter().flat_map(|source| &source.mock.state) {
            initial.entry(key.as_str()).or_insert_with(|| value.clone());
        }
        let has_tasks = tools.iter().any(Tool::has_tasks) || sources.iter().any(|source| declares_tasks(source.mock));
        let listing = Listing::new(&tools, &resources, &resource_templates, &prompts);
        let mut mock = Mock {
            templates,
            info,
            instructions: sources.iter().find_map(|source| source.mock.instructions.clone()),
            capabilities: Map::new(),
            refuses: refuses(sources),
            revisions,
            page_size: sources.iter().find_map(|source| source.mock.page_size.as_ref()).map(|size| size.value.max(1)),
            initial: Arc::new(initial),
            tools_by_name: positions(tools.iter().map(|tool| &tool.name)),
            resources_by_uri: positions(resources.iter().map(|resource| &resource.uri)),
            prompts_by_name: positions(prompts.iter().map(|prompt| &prompt.name)),
            tools,
            resources,
            resource_templates,
            requests_by_method: positions(requests.iter().map(|request| &request.method)),
            prompts,
            requests,
            listing,
            targets: numbers.targets,
            rules: numbers.rules,
            has_tasks,
            otherwise,
            fingerprint: 0,
            faults,
            fault_rules: numbers.faults,
            harness: None,
            reads_headers: false,
        };
        mock.capabilities = capabilities(&mock, sources);
        mock.fingerprint = mock.fingerprint();
        let in_choice = |scene: &Scene| scene.choose.iter().any(|choice| choice.given.reads_headers());
        let in_rules = mock.all_rules().flat_map(Rules::iter).any(|rule| rule.given.reads_headers());
        let in_choices = mock.all_rules().flat_map(Rules::turns).any(|turn| turn.scene.any(&in_choice));
        mock.reads_headers = in_rules || in_choices || mock.templates.reads_headers();
        Ok(mock)
    }

    /// The versions that are served.
    pub fn revisions(&self) -> &[Revision] {
        &self.revisions
    }

    /// The elements of a list as a client of a version sees them: `tools`, `resources`, `resourceTemplates`, `prompts`.
    pub fn listed(&self, list: &str, revision: Revision) -> Vec<&str> {
        let all = self.listing.elements(list, revision).unwrap_or_default();
        all.iter().map(String::as_str).collect()
    }

    /// The input schemas of the tools whose arguments travel as HTTP headers too, by the names of the tools.
    pub fn header_schemas(&self) -> impl Iterator<Item = (&str, &Value)> {
        fn mentions(schema: &Value) -> bool {
            match schema {
                Value::Object(fields) => fields.contains_key("x-mcp-header") || fields.values().any(mentions),
                Value::Array(elements) => elements.iter().any(mentions),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
            }
        }
        let all = self.tools.iter().filter_map(|tool| Some((tool.name.as_str(), tool.input.as_ref()?.as_value())));
        all.filter(|(_, schema)| mentions(schema))
    }

    /// The output schema of a tool.
    pub fn output_schema(&self, tool: &str) -> Option<&Value> {
        self.tools_by_name.get(tool).and_then(|at| self.tools[*at].output.as_ref()).map(Schema::as_value)
    }

    /// The same mock, with a universal test tool that answers from queues. Its file is [`harness::MOCK_FILE`].
    ///
    /// [`harness::MOCK_FILE`]: super::harness::MOCK_FILE
    #[must_use]
    pub fn with_harness(mut self, harness: Arc<Harness>) -> Mock {
        self.harness = Some(harness);
        self
    }

    /// What goes wrong with a request: what is said about the tool, resource or prompt first, then about the whole.
    pub(super) fn fault(&self, method: &str, params: &Value, state: &mut State) -> Option<FaultKind> {
        if self.fault_rules == 0 {
            return None;
        }
        let text = |key: &str| params.get(key).and_then(Value::as_str);
        let own = match method {
            "tools/call" => text("name").and_then(|it| self.tools_by_name.get(it)).map(|at| &self.tools[*at].faults),
            "prompts/get" => {
                text("name").and_then(|it| self.prompts_by_name.get(it)).map(|at| &self.prompts[*at].faults)
            }
            "resources/read" => {
                text("uri").and_then(|it| self.resources_by_uri.get(it)).map(|at| &self.resources[*at].faults)
            }
            _ => None,
        };
        let counts = state.fault_counts();
        let all: Vec<_> = own.into_iter().chain(&self.faults).map(|faults| faults.which(method, counts)).collect();
        all.into_iter().flatten().next().cloned()
    }

    /// The queues of the universal test tool, where there is one.
    pub fn harness(&self) -> Option<&Arc<Harness>> {
        self.harness.as_ref()
    }

    /// Whether some request may be refused with an HTTP status.
    pub fn refuses_requests(&self) -> bool {
        let refuses = |fault: &FaultKind| matches!(fault, FaultKind::Http(_));
        let of_target = self.tools.iter().map(|it| &it.faults).chain(self.resources.iter().map(|it| &it.faults));
        let mut all = of_target.chain(self.prompts.iter().map(|it| &it.faults)).chain(&self.faults);
        let in_scene = |scene: &Scene| scene.fault.as_ref().is_some_and(refuses);
        self.harness.is_some()
            || all.any(|faults| faults.kinds().any(refuses))
            || self.all_rules().flat_map(Rules::turns).any(|turn| turn.scene.any(&in_scene))
    }

    /// Whether any answer depends on HTTP headers; if not, nobody needs to collect them.
    pub fn reads_headers(&self) -> bool {
        self.reads_headers
    }

    /// What is said when nothing declares an answer.
    pub fn otherwise(&self) -> Otherwise {
        self.otherwise
    }

    /// Who the server says it is.
    pub fn name(&self) -> &str {
        self.info["name"].as_str().unwrap_or_default()
    }

    /// How many tools, resources, patterns of resources and prompts it has.
    pub fn counts(&self) -> [usize; 4] {
        [self.tools.len(), self.resources.len(), self.resource_templates.len(), self.prompts.len()]
    }

    fn all_rules(&self) -> impl Iterator<Item = &Rules> {
        let tools = self.tools.iter().map(|it| &it.rules);
        let resources = self.resources.iter().map(|it| &it.rules);
        let templates = self.resource_templates.iter().map(|it| &it.rules);
        let offered = tools.chain(resources).chain(templates).chain(self.prompts.iter().map(|it| &it.rules));
        offered.chain(self.requests.iter().map(|it| &it.rules))
    }

    /// Whether state that names a rule by its number still means the same rule.
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for turn in self.all_rules().flat_map(Rules::turns) {
            (turn.rule, &turn.name, turn.scene.steps.len(), turn.scene.choose.len()).hash(&mut hasher);
        }
        hasher.finish()
    }

    fn any_step(&self, is_so: impl Fn(&Step) -> bool) -> bool {
        let in_scene = |scene: &Scene| scene.steps.iter().any(&is_so);
        self.all_rules().flat_map(Rules::turns).any(|turn| turn.scene.any(&in_scene))
    }
}

fn positions<'a>(names: impl Iterator<Item = &'a String>) -> HashMap<String, usize> {
    names.enumerate().map(|(at, name)| (name.clone(), at)).collect()
}

/// By method; the first file that refuses it counts.
fn refuses(sources: &[Source<'_>]) -> HashMap<String, ErrorReply> {
    let mut all = HashMap::new();
    for (method, written) in sources.iter().flat_map(|source| &source.mock.refuses) {
        let error = ErrorReply::new(written.code, written.message.as_str());
        let error = written.data.iter().fold(error, |error, data| error.with_data(data));
        all.entry(method.clone()).or_insert(error);
    }
    all
}

fn revisions(sources: &[Source<'_>], errors: &mut Vec<ScriptError>) -> Vec<Revision> {
    let Some((file, written)) = sources.iter().find_map(|it| Some((it.file, it.mock.versions.as_ref()?))) else {
        return Revision::ALL.to_vec();
    };
    let mut problems = Vec::new();
    let mut revisions: Vec<Revision> = Vec::new();
    for version in written.iter() {
        match version.value.parse() {
            Ok(revision) => revisions.push(revision),
            Err(error) => problems.push(Problem::new(version.at, error.to_string())),
        }
    }
    if !problems.is_empty() {
        errors.push(ScriptError { file: file.to_owned(), problems });
    }
    revisions.sort();
    revisions.dedup();
    if revisions.is_empty() { Revision::ALL.to_vec() } else { revisions }
}

fn implementation(written: &InOrder<Implementation>) -> Value {
    let mut info = Map::from_iter([
        ("name".to_owned(), written.name.as_str().into()),
        ("version".to_owned(), written.version.as_str().into()),
    ]);
    let more = [
        ("title", written.title.as_deref().map(Value::from)),
        ("description", written.description.as_deref().map(Value::from)),
        ("websiteUrl", written.website_url.as_deref().map(Value::from)),
        ("icons", icons(&written.icons)),
    ];
    info.extend(more.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    ordered(written, info)
}

/// Whether a file says that there are tasks, in whatever version.
fn declares_tasks(file: &MockFile) -> bool {
    let declared = &file.capabilities;
    let extension = declared.get("extensions").and_then(|all| all.get(meta::TASKS_EXTENSION));
    declared.get("tasks").or(extension).is_some_and(|tasks| !tasks.is_null())
}

/// What the files say, and what follows from what is offered and is not spoken of; `null` takes something away.
fn capabilities(mock: &Mock, sources: &[Source<'_>]) -> Map<String, Value> {
    let mut all = Map::new();
    for (key, value) in sources.iter().flat_map(|source| &source.mock.capabilities) {
        all.entry(key.as_str()).or_insert_with(|| value.clone());
    }
    let mut declare = |key: &str, value: Value| {
        all.entry(key).or_insert(value);
    };
    if !mock.tools.is_empty() {
        declare("tools", json!({"listChanged": true}));
    }
    if !mock.resources.is_empty() || !mock.resource_templates.is_empty() {
        declare("resources", json!({"subscribe": true, "listChanged": true}));
    }
    if !mock.prompts.is_empty() {
        declare("prompts", json!({"listChanged": true}));
    }
    if mock.any_step(|step| matches!(step, Step::Log { .. })) {
        declare("logging", json!({}));
    }
    let prompts = mock.prompts.iter().any(|it| it.arguments.iter().any(|argument| !argument.complete.is_empty()));
    let answered = mock.requests.iter().any(|it| Method::COMPLETE == it.method.as_str());
    if prompts || answered || mock.resource_templates.iter().any(|it| !it.complete.is_empty()) {
        declare("completions", json!({}));
    }
    if mock.tools.iter().any(Tool::has_tasks) {
        declare("tasks", json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}));
        declare("extensions", json!({meta::TASKS_EXTENSION: {}}));
    }
    all.retain(|_, value| !value.is_null());
    all
}
