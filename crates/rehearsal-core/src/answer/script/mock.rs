//! A compiled mock.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::answer_target::{AnswerTarget, TargetKind};
use super::compile_target::{compile_targets, faults as compile_faults};
use super::content::{CompileContext, IdCounter, icons, ordered};
use super::rule::CompiledRules;
use super::state::MockState;
use super::template::Templates;
use crate::answer::adapt::{strip_capabilities, strip_implementation};
use crate::answer::fault::FaultRules;
use crate::answer::protocol::{Introduction, Lists};
use crate::answer::request_context::IncomingRequest;
use crate::answer::respond::{CompiledAnswer, CompiledStep};
use crate::answer::surface::{HttpNeeds, Surface};
use crate::message::{ErrorReply, Method};
use crate::protocol::{Revision, meta};
use crate::script::mock::{FaultKind, Implementation, MockFile};
use crate::script::{Located, ScriptError, ScriptProblem, WithKeyOrder};

/// A parsed mock file.
#[derive(Clone, Copy, Debug)]
pub struct MockSource<'a> {
    /// The file as the user named it.
    pub file: &'a str,
    /// The parsed form.
    pub mock: &'a MockFile,
}

/// Reads a file that a mock file names: the mock file, and the path in it.
pub type ReadSibling<'a> = &'a dyn Fn(&str, &str) -> Result<Vec<u8>, String>;

/// A compiled mock. It is immutable; its source has the state.
#[derive(Debug)]
pub struct Mock {
    pub(in crate::answer) templates: Templates,
    pub(in crate::answer) info: Value,
    /// Whether a file names the server.
    pub(in crate::answer) is_named: bool,
    pub(in crate::answer) instructions: Option<String>,
    pub(in crate::answer) capabilities: Map<String, Value>,
    /// The errors of refused methods.
    pub(in crate::answer) refuses: HashMap<String, ErrorReply>,
    pub(in crate::answer) revisions: Vec<Revision>,
    pub(in crate::answer) initial: Arc<Map<String, Value>>,
    /// The tools, resources, resource templates, prompts and methods, in the order of the files.
    targets: [Vec<Arc<AnswerTarget>>; 5],
    by_id: [HashMap<String, Arc<AnswerTarget>>; 5],
    lists: Arc<Lists>,
    pub(super) target_count: usize,
    pub(in crate::answer) rules: usize,
    pub(in crate::answer) has_tasks: bool,
    /// A hash of all rules. Request state names a rule by its number, so it is valid only with the same fingerprint.
    pub(in crate::answer) fingerprint: u64,
    faults: Vec<FaultRules>,
    /// The number of fault rules.
    pub(in crate::answer) fault_rules: usize,
    reads_headers: bool,
}

impl Mock {
    /// Compiles files into one mock. For keys that can have only one value, the first file applies.
    pub fn compile(sources: &[MockSource<'_>], read: ReadSibling<'_>) -> Result<Mock, Vec<ScriptError>> {
        let mut errors = Vec::new();
        let mut templates = Templates::new();
        let mut numbers = IdCounter::default();
        let (mut targets, mut faults): ([Vec<Arc<AnswerTarget>>; 5], _) = (Default::default(), Vec::new());
        let mut files: HashMap<(TargetKind, &str), &str> = HashMap::new();
        for MockSource { file, mock } in sources {
            let mut problems = Vec::new();
            for (kind, id) in unique_ids(mock) {
                if let Some(other) = files.insert((kind, &id.value), file) {
                    let place = if other == *file { String::new() } else { format!(" (the other one is in {other})") };
                    problems
                        .push(ScriptProblem::new(id.at, format!("duplicate {} `{}`{place}", kind.name(), id.value)));
                }
            }
            let read_file = &|path: &str| read(file, path);
            let (templates, numbers) = (&mut templates, &mut numbers);
            let mut context = CompileContext { templates, read_file, problems: &mut problems, numbers };
            for (kind, target) in compile_targets(mock, &mut context) {
                targets[kind as usize].push(Arc::new(target));
            }
            faults.push(compile_faults(&mock.faults, &mut context));
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
        let is_named = info.is_some();
        let info = info.map_or_else(|| json!({"name": "mock", "version": "0.0.0"}), |info| implementation(info));
        let mut initial = Map::new();
        for (key, value) in sources.iter().flat_map(|source| &source.mock.state) {
            initial.entry(key.as_str()).or_insert_with(|| value.clone());
        }
        let has_tasks = targets.iter().flatten().any(|it| it.has_tasks());
        let has_tasks = has_tasks || sources.iter().any(|source| declares_tasks(source.mock));
        let page_size = sources.iter().find_map(|source| source.mock.page_size.as_ref());
        let items = |kind: TargetKind| targets[kind as usize].iter().map(|target| target.item()).collect();
        let items =
            [TargetKind::Tool, TargetKind::Resource, TargetKind::ResourceTemplate, TargetKind::Prompt].map(items);
        let lists = Arc::new(Lists::new(items, page_size.map(|size| size.value.max(1))));
        let mut mock = Mock {
            templates,
            info,
            is_named,
            instructions: sources.iter().find_map(|source| source.mock.instructions.clone()),
            capabilities: Map::new(),
            refuses: method_errors(sources),
            revisions,
            initial: Arc::new(initial),
            by_id: targets.each_ref().map(|targets| by_id(targets)),
            targets,
            lists,
            target_count: numbers.targets,
            rules: numbers.rules,
            has_tasks,
            fingerprint: 0,
            faults,
            fault_rules: numbers.faults,
            reads_headers: false,
        };
        mock.capabilities = capabilities(&mock, sources);
        mock.fingerprint = mock.fingerprint();
        let choice_reads_headers =
            |answer: &CompiledAnswer| answer.choose.iter().any(|choice| choice.given.reads_headers());
        let rule_reads_headers = mock.all_rules().flat_map(CompiledRules::iter).any(|rule| rule.given.reads_headers());
        mock.reads_headers =
            rule_reads_headers || mock.any_answer(&choice_reads_headers) || mock.templates.reads_headers();
        Ok(mock)
    }

    /// The offers and capabilities.
    pub(super) fn surface(&self) -> Surface {
        let info = self.is_named.then(|| self.info.clone());
        let introduction = Introduction::new(info, self.capabilities.clone(), self.instructions.as_deref());
        let http = HttpNeeds {
            reads_headers: self.reads_headers,
            refuses_with_status: self.refuses_requests(),
            header_schemas: self.header_schemas(),
            ..HttpNeeds::default()
        };
        Surface {
            introduction: Some(Arc::new(introduction)),
            lists: Some(Arc::clone(&self.lists)),
            revisions: Some(self.revisions.clone()),
            has_tasks: self.has_tasks,
            http,
        }
    }

    /// The lists of its tools, resources, resource templates and prompts.
    pub fn lists(&self) -> &Lists {
        &self.lists
    }

    /// The declared capabilities, for clients of a version.
    pub fn capabilities(&self, revision: Revision) -> Value {
        strip_capabilities(&self.capabilities, revision)
    }

    /// The name and version of the server, for clients of a version.
    pub fn server(&self, revision: Revision) -> Value {
        strip_implementation(self.info.clone(), revision)
    }

    /// The input schemas of the tools whose arguments are repeated in HTTP headers, by the names of the tools.
    fn header_schemas(&self) -> HashMap<String, Arc<Value>> {
        fn mentions(schema: &Value) -> bool {
            match schema {
                Value::Object(fields) => fields.contains_key("x-mcp-header") || fields.values().any(mentions),
                Value::Array(elements) => elements.iter().any(mentions),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
            }
        }
        let tools = self.of_kind(TargetKind::Tool);
        let all = tools.filter_map(|target| Some((&target.id, target.as_tool()?.input.as_ref()?.as_value())));
        let repeated = all.filter(|(_, schema)| mentions(schema));
        repeated.map(|(name, schema)| (name.clone(), Arc::new(schema.clone()))).collect()
    }

    /// The target of a kind with this name, URI or method.
    pub(super) fn find(&self, kind: TargetKind, id: &str) -> Option<&Arc<AnswerTarget>> {
        self.by_id[kind as usize].get(id)
    }

    /// The target that a request names, if its client can use it, with the values of the variables of a resource template.
    pub(super) fn target(
        &self,
        kind: TargetKind,
        id: &str,
        request: &IncomingRequest,
    ) -> Option<(&Arc<AnswerTarget>, Map<String, Value>)> {
        if let Some(target) = self.find(kind, id) {
            return target.is_offered(request).then_some((target, Map::new()));
        }
        let templates = self.of_kind(TargetKind::ResourceTemplate).filter(|_| kind == TargetKind::Resource);
        templates.filter_map(|target| Some((target, target.variables(id)?))).next()
    }

    /// The fault of a request: that of its tool, resource or prompt, or else that of the file.
    pub(in crate::answer) fn fault(&self, method: &str, params: &Value, state: &mut MockState) -> Option<FaultKind> {
        if self.fault_rules == 0 {
            return None;
        }
        let own = TargetKind::from_method(method)
            .and_then(|(kind, key)| self.find(kind, params.get(key).and_then(Value::as_str)?))
            .map(|target| &target.faults);
        let counts = state.fault_counts();
        let all: Vec<_> = own.into_iter().chain(&self.faults).map(|faults| faults.next_fault(method, counts)).collect();
        all.into_iter().flatten().next().cloned()
    }

    /// Whether a request may be rejected with an HTTP status.
    fn refuses_requests(&self) -> bool {
        let refuses = |fault: &FaultKind| matches!(fault, FaultKind::Http(_));
        let mut all = self.targets.iter().flatten().map(|target| &target.faults).chain(&self.faults);
        let answer_refuses = |answer: &CompiledAnswer| answer.fault.as_ref().is_some_and(refuses);
        all.any(|faults| faults.kinds().any(refuses)) || self.any_answer(&answer_refuses)
    }

    /// The name of the server.
    pub fn name(&self) -> &str {
        self.info["name"].as_str().unwrap_or_default()
    }

    /// The number of tools, resources, resource templates and prompts.
    pub fn counts(&self) -> [usize; 4] {
        let [tools, resources, templates, prompts, _] = self.targets.each_ref().map(Vec::len);
        [tools, resources, templates, prompts]
    }

    fn of_kind(&self, kind: TargetKind) -> impl Iterator<Item = &Arc<AnswerTarget>> {
        self.targets[kind as usize].iter()
    }

    fn all_rules(&self) -> impl Iterator<Item = &CompiledRules> {
        self.targets.iter().flatten().map(|target| &target.rules)
    }

    /// The hash of all rules.
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for answer in self.all_rules().flat_map(CompiledRules::answers) {
            (answer.rule, &answer.name, answer.answer.steps.len(), answer.answer.choose.len()).hash(&mut hasher);
        }
        hasher.finish()
    }

    fn any_answer(&self, fulfils: &dyn Fn(&CompiledAnswer) -> bool) -> bool {
        self.all_rules().flat_map(CompiledRules::answers).any(|answer| answer.answer.any(fulfils))
    }
}

fn by_id(targets: &[Arc<AnswerTarget>]) -> HashMap<String, Arc<AnswerTarget>> {
    targets.iter().map(|target| (target.id.clone(), Arc::clone(target))).collect()
}

/// The names, URIs and URI templates of a file, which must be unique.
fn unique_ids(file: &MockFile) -> impl Iterator<Item = (TargetKind, &Located<String>)> {
    let tools = file.tools.iter().map(|it| (TargetKind::Tool, &it.name));
    let resources = file.resources.iter().map(|it| (TargetKind::Resource, &it.uri));
    let templates = file.resource_templates.iter().map(|it| (TargetKind::ResourceTemplate, &it.uri_template));
    tools.chain(resources).chain(templates).chain(file.prompts.iter().map(|it| (TargetKind::Prompt, &it.name)))
}

/// The errors of refused methods; for each method the first file applies.
fn method_errors(sources: &[MockSource<'_>]) -> HashMap<String, ErrorReply> {
    let mut all = HashMap::new();
    for (method, written) in sources.iter().flat_map(|source| &source.mock.refuses) {
        let error = ErrorReply::new(written.code, written.message.as_str());
        let error = written.data.iter().fold(error, |error, data| error.with_data(data));
        all.entry(method.clone()).or_insert(error);
    }
    all
}

fn revisions(sources: &[MockSource<'_>], errors: &mut Vec<ScriptError>) -> Vec<Revision> {
    let Some((file, written)) = sources.iter().find_map(|it| Some((it.file, it.mock.versions.as_ref()?))) else {
        return Revision::ALL.to_vec();
    };
    let mut problems = Vec::new();
    let mut revisions: Vec<Revision> = Vec::new();
    for version in written.iter() {
        match version.value.parse() {
            Ok(revision) => revisions.push(revision),
            Err(error) => problems.push(ScriptProblem::new(version.at, error.to_string())),
        }
    }
    if !problems.is_empty() {
        errors.push(ScriptError { file: file.to_owned(), problems });
    }
    revisions.sort();
    revisions.dedup();
    if revisions.is_empty() { Revision::ALL.to_vec() } else { revisions }
}

fn implementation(written: &WithKeyOrder<Implementation>) -> Value {
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

/// Whether a file declares tasks, in any version.
fn declares_tasks(file: &MockFile) -> bool {
    let declared = &file.capabilities;
    let extension = declared.get("extensions").and_then(|all| all.get(meta::TASKS_EXTENSION));
    declared.get("tasks").or(extension).is_some_and(|tasks| !tasks.is_null())
}

/// The capabilities of the files, and those that follow from the offers; `null` removes one.
fn capabilities(mock: &Mock, sources: &[MockSource<'_>]) -> Map<String, Value> {
    let mut all = Map::new();
    for (key, value) in sources.iter().flat_map(|source| &source.mock.capabilities) {
        all.entry(key.as_str()).or_insert_with(|| value.clone());
    }
    let mut declare = |key: &str, value: Value| {
        all.entry(key).or_insert(value);
    };
    let [tools, resources, templates, prompts] = mock.counts();
    if tools > 0 {
        declare("tools", json!({"listChanged": true}));
    }
    if resources + templates > 0 {
        declare("resources", json!({"subscribe": true, "listChanged": true}));
    }
    if prompts > 0 {
        declare("prompts", json!({"listChanged": true}));
    }
    if mock.any_answer(&|answer| answer.steps.iter().any(|step| matches!(step, CompiledStep::Log { .. }))) {
        declare("logging", json!({}));
    }
    let has_completions = mock.targets.iter().flatten().any(|target| target.has_completions());
    if has_completions || mock.find(TargetKind::Method, Method::COMPLETE.as_str()).is_some() {
        declare("completions", json!({}));
    }
    if mock.targets.iter().flatten().any(|target| target.has_tasks()) {
        declare("tasks", json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}));
        declare("extensions", json!({meta::TASKS_EXTENSION: {}}));
    }
    all.retain(|_, value| !value.is_null());
    all
}
