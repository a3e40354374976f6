//! Checks a mock file that was parsed, without running it.

use std::collections::BTreeMap;

use base64::Engine as _;
use serde_json::{Map, Value};

use crate::json::{Path, Segment};
use crate::matcher::{Matcher, MatcherError, Schema, closest_operator};
use crate::protocol::Revision;
use crate::script::mock::identifiers::{has_scheme, is_tool_name, variables};
use crate::script::mock::parse::{has_property, properties};
use crate::script::mock::{
    AnswerRule, ContentBlock, ContentKind, ContentsEntry, ElicitationMode, FaultKind, FaultRule, InputRequestEntry,
    MissingAnswers, MockFile, PromptEntry, RequestEntry, ResourceEntry, Step, ToolEntry, Validate,
};
use crate::script::{Located, ParseValue, Parsed, ScriptProblem, Span, When};
use crate::shape::{check_written_result, misspelled_keys};
use crate::suggest::closest;

/// Another correction for an item without an answer.
const SCHEMA_FILL_HINT: &str = "or have answers invented with --schema-fill";

/// A problem whose place is a path inside a located value.
#[derive(Debug)]
pub(crate) struct NestedProblem {
    pub(crate) problem: ScriptProblem,
    pub(crate) path: Path,
    pub(crate) about: ProblemTarget,
}

/// The part of a place that a problem refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProblemTarget {
    /// The value.
    Value,
    /// The key of the value.
    Key,
}

/// Collects problems.
#[derive(Debug)]
pub(crate) struct Checker {
    missing: MissingAnswers,
    found: Vec<NestedProblem>,
}

/// Checks a mock file for a use, and returns every problem.
pub(crate) fn check(mock: &MockFile, missing: MissingAnswers) -> Vec<NestedProblem> {
    let mut checker = Checker { missing, found: Vec::new() };
    checker.file(mock);
    checker.found
}

impl Checker {
    pub(super) fn problem(&mut self, at: Span, message: impl Into<String>) -> &mut ScriptProblem {
        self.found.push(NestedProblem {
            problem: ScriptProblem::new(at, message),
            path: Path::root(),
            about: ProblemTarget::Value,
        });
        &mut self.found.last_mut().expect("one was just put there").problem
    }

    pub(super) fn problem_with_hint(&mut self, at: Span, message: impl Into<String>, hint: impl Into<String>) {
        self.problem(at, message).hint = Some(hint.into());
    }

    /// Adds a problem at a path inside a located value.
    pub(super) fn inside(&mut self, at: Span, path: Path, message: String, hint: String) {
        self.found.push(NestedProblem {
            problem: ScriptProblem::new(at, message).hint(hint),
            path,
            about: ProblemTarget::Value,
        });
    }

    fn file(&mut self, mock: &MockFile) {
        for version in mock.versions.iter().flatten() {
            if version.parse::<Revision>().is_err() {
                self.unknown_version(&version.value, version.at);
            }
        }
        if let Some(versions) = &mock.versions
            && versions.is_empty()
        {
            let hint = "name a version, or remove the key to support every version";
            self.problem_with_hint(Span::START, "`versions` is empty", hint);
        }
        self.capabilities(&mock.capabilities);
        if let Some(size) = &mock.page_size
            && size.value == 0
        {
            self.problem(size.at, "`page_size` must be at least 1");
        }
        self.unique("tool", mock.tools.iter().map(|tool| &tool.name));
        self.unique("prompt", mock.prompts.iter().map(|prompt| &prompt.name));
        self.unique("resource", mock.resources.iter().map(|resource| &resource.uri));
        for tool in &mock.tools {
            self.tool(tool);
            let validate = tool.validate.or(mock.validate).unwrap_or_default();
            self.check_schemas(tool, validate);
            if validate == Validate::Strict {
                self.check_input_schema(tool);
            }
        }
        mock.prompts.iter().for_each(|prompt| self.prompt(prompt));
        mock.resources.iter().for_each(|resource| self.resource(resource));
        for template in &mock.resource_templates {
            self.listed_name("uriTemplate", &template.uri_template, template.listed.as_ref());
            if template.listed.is_none() {
                self.uri_template(&template.uri_template, &template.complete);
            }
            let sources = [template.text.is_some(), template.blob.is_some(), !template.answers.is_empty()];
            self.one_source(template.uri_template.at, &sources, "`text`, `blob` or `answers`");
            self.base64(template.blob.as_ref());
            self.answers(&template.answers, AnsweredItem::Resource);
        }
        self.unique("method", mock.requests.iter().map(|request| &request.method));
        for request in &mock.requests {
            if let Some(why) = RequestEntry::rule_conflict(&request.method) {
                let message = format!("`requests` cannot answer `{}`", request.method.value);
                self.problem_with_hint(request.method.at, message, why);
            }
            self.answers(&request.answers, AnsweredItem::Request);
        }
        mock.faults.iter().for_each(|fault| self.fault(fault));
        self.results(mock);
        let own = || mock.requests.iter().map(|request| request.method.value.as_str());
        let tools = mock.tools.iter().flat_map(|tool| &tool.faults);
        tools.chain(&mock.faults).for_each(|fault| self.method_exists(fault, own()));
    }

    fn unknown_version(&mut self, version: &str, at: Span) {
        let known = Revision::ALL.map(Revision::as_str).join(", ");
        self.problem_with_hint(
            at,
            format!("unknown protocol version `{version}`"),
            format!("the known versions are {known}"),
        );
    }

    /// A capability that is nearly one of the protocol's is reported; others are the server's own.
    fn capabilities(&mut self, capabilities: &Map<String, Value>) {
        let capabilities = Value::Object(capabilities.clone());
        for (path, meant) in misspelled_keys("ServerCapabilities", &capabilities) {
            let Some(Segment::Key(key)) = path.segments().last() else { continue };
            let message = format!("unknown capability `{key}`");
            let hint = format!(
                "did you mean `{meant}`? a capability of your own belongs under `experimental` or `extensions`"
            );
            let path = Path::root().join("capabilities").concat(&path);
            self.found.push(NestedProblem {
                problem: ScriptProblem::new(Span::START, message).hint(hint),
                path,
                about: ProblemTarget::Key,
            });
        }
    }

    fn unique<'a>(&mut self, kind: &str, names: impl Iterator<Item = &'a Located<String>>) {
        let mut seen = BTreeMap::new();
        for name in names {
            if let Some(line) = seen.insert(name.value.as_str(), name.at.line) {
                self.problem(name.at, format!("duplicate {kind} `{}`; the first is on line {line}", name.value));
            }
        }
    }

    /// Checks that the name of a listed item is the name under which it answers.
    fn listed_name(&mut self, key: &str, name: &Located<String>, listed: Option<&Located<Map<String, Value>>>) {
        if let Some(listed) = listed
            && listed.get(key).and_then(Value::as_str) != Some(&name.value)
        {
            let message = format!("`listed` has another `{key}`");
            self.problem_with_hint(listed.at, message, format!("write `{}`, as on line {}", name.value, name.at.line));
        }
    }

    fn tool(&mut self, tool: &ToolEntry) {
        if tool.listed.is_none() && !is_tool_name(&tool.name) {
            let message = format!("`{}` is not a valid tool name", tool.name.value);
            self.problem_with_hint(tool.name.at, message, "a tool name has 1 to 128 letters, digits, `_`, `-` and `.`");
        }
        self.listed_name("name", &tool.name, tool.listed.as_ref());
        for schema in [&tool.input_schema, &tool.output_schema].into_iter().flatten() {
            self.check_parsed(schema);
        }
        if let Some(schema) = &tool.input_schema
            && schema.written.get("type").is_some_and(|kind| kind != "object")
        {
            self.problem_with_hint(schema.at, "the arguments of a tool are an object", "write `type: object`");
        }
        if let Some(needs) = &tool.needs {
            self.check_parsed(needs);
        }
        if tool.answers.is_empty() && self.missing == MissingAnswers::Refused {
            let message = format!("the tool `{}` has no answer", tool.name.value);
            self.problem_with_hint(
                tool.name.at,
                message,
                format!("add `answers: [{{ text: … }}]`, {SCHEMA_FILL_HINT}"),
            );
        }
        self.answers(&tool.answers, AnsweredItem::Tool);
        tool.faults.iter().for_each(|fault| self.fault(fault));
    }

    fn prompt(&mut self, prompt: &PromptEntry) {
        self.listed_name("name", &prompt.name, prompt.listed.as_ref());
        self.unique("argument", prompt.arguments.iter().map(|argument| &argument.name));
        let sources = [prompt.messages.is_some(), !prompt.answers.is_empty()];
        self.one_source(prompt.name.at, &sources, "`messages` or `answers`");
        prompt.messages.iter().flatten().for_each(|message| self.content(&message.content));
        self.answers(&prompt.answers, AnsweredItem::Prompt);
        prompt.faults.iter().for_each(|fault| self.fault(fault));
    }

    fn resource(&mut self, resource: &ResourceEntry) {
        self.listed_name("uri", &resource.uri, resource.listed.as_ref());
        if resource.listed.is_none() && !has_scheme(&resource.uri) {
            let message = format!("`{}` is not a URI", resource.uri.value);
            self.problem_with_hint(resource.uri.at, message, "a URI has a scheme: `file:///notes.md`, `notes://today`");
        }
        let sources =
            [resource.text.is_some(), resource.blob.is_some(), resource.file.is_some(), !resource.answers.is_empty()];
        self.one_source(resource.uri.at, &sources, "`text`, `blob`, `file` or `answers`");
        self.base64(resource.blob.as_ref());
        self.answers(&resource.answers, AnsweredItem::Resource);
        resource.faults.iter().for_each(|fault| self.fault(fault));
    }

    fn one_source(&mut self, at: Span, sources: &[bool], names: &str) {
        match (sources.iter().filter(|given| **given).count(), self.missing) {
            (1, _) | (0, MissingAnswers::Allowed) => {}
            (0, MissingAnswers::Refused) => {
                self.problem_with_hint(at, "this has no answer", format!("add {names}, {SCHEMA_FILL_HINT}"));
            }
            (_, MissingAnswers::Refused | MissingAnswers::Allowed) => {
                self.problem_with_hint(at, "this has more than one answer", format!("keep one of {names}"));
            }
        }
    }

    fn uri_template(&mut self, template: &Located<String>, complete: &BTreeMap<String, Vec<String>>) {
        let Some(variables) = variables(template) else {
            self.problem_with_hint(template.at, "unclosed `{`", "add the `}`");
            return;
        };
        if variables.is_empty() {
            let message = "a template without variables is a resource";
            self.problem_with_hint(
                template.at,
                message,
                "write `{name}` for the part that varies, or move it to `resources`",
            );
        }
        for name in complete.keys().filter(|name| !variables.contains(name.as_str())) {
            self.problem(template.at, format!("`complete` has `{name}`, which is not a variable of the template"));
        }
    }

    fn answers(&mut self, answers: &[AnswerRule], kind: AnsweredItem) {
        // The rules after one that always matches can never be used.
        let mut hides: Option<Span> = None;
        for answer in answers {
            let place = self.answer(answer, kind);
            if let Some(hidden_by) = hides {
                let message =
                    format!("this answer is never used: the answer on line {} always matches", hidden_by.line);
                self.problem_with_hint(place, message, "move the answer without `when` to the end, or give it `times`");
                hides = None;
            }
            if answer.when.is_none() && answer.given.is_none() && answer.times().is_none() {
                hides = Some(place);
            }
        }
    }

    /// Checks one answer; returns a place to refer to it.
    pub(super) fn answer(&mut self, answer: &AnswerRule, kind: AnsweredItem) -> Span {
        let bodies = bodies(answer);
        let place = place_of(answer).unwrap_or(Span::START);
        for (name, at) in &bodies {
            if !kind.allows(name) {
                self.problem_with_hint(
                    *at,
                    format!("{} has no `{name}`", kind.name()),
                    format!("write one of {}", kind.bodies().join(", ")),
                );
            }
        }
        let together = |name: &str| ["text", "content", "structured_content"].contains(&name);
        if let [(first, _), .., (second, at)] = &bodies[..]
            && !(together(first) && together(second))
        {
            let message = format!("`{first}` and `{second}` exclude each other");
            self.problem_with_hint(*at, message, "keep one of the two");
        }
        self.text_is_sent(answer);
        if bodies.is_empty() && answer.choose.is_empty() && answer.in_turn.is_empty() && answer.fault.is_none() {
            self.problem_with_hint(place, "this answer is empty", format!("add one of {}", kind.bodies().join(", ")));
        }
        if !bodies.is_empty() && !answer.choose.is_empty() {
            self.problem_with_hint(
                place,
                "a reply and `choose` exclude each other",
                "move the reply to the end of `choose`, without `when`",
            );
        }
        if let Some(times) = &answer.times
            && times.value == 0
        {
            self.problem(times.at, "an answer with `times: 0` is never used");
        }
        if let Some(when) = &answer.when {
            self.when(when);
        }
        if let Some(given) = &answer.given {
            let matchers = [
                &given.headers,
                &given.client,
                &given.capabilities,
                &given.meta,
                &given.call,
                &given.version,
                &given.state,
            ];
            matchers.into_iter().flatten().for_each(|matcher| self.check_parsed(matcher));
            given.version.iter().for_each(|version| self.version_exists(version));
        }
        answer.content.iter().flat_map(|content| &content.value).for_each(|block| self.content(block));
        answer.messages.iter().flat_map(|messages| &messages.value).for_each(|message| self.content(&message.content));
        answer.contents.iter().flat_map(|contents| &contents.value).for_each(|contents| self.contents(contents, place));
        answer.steps.iter().for_each(|step| self.step(step));
        answer.fault.iter().for_each(|fault| self.fault_kind(fault));
        if !answer.choose.is_empty() && answer.steps.iter().all(|step| step.value.input_requests().is_empty()) {
            self.problem_with_hint(place, "`choose` without an input request", "add `steps: [{ ask: … }]`");
        }
        self.answers(&answer.choose, kind);
        for choice in answer.choose.iter().filter(|choice| !choice.in_turn.is_empty()) {
            let place = place_of(choice).unwrap_or(place);
            self.problem_with_hint(place, "`choose` cannot contain `in_turn`", "move `in_turn` to a rule of its own");
        }
        self.in_turn(answer, place, kind);
        place
    }

    fn step(&mut self, step: &Located<Step>) {
        if let Step::Ask(requests) | Step::TryAsk(requests) = &step.value
            && requests.is_empty()
        {
            self.problem(step.at, "`ask` without an input request");
        }
        for (_, request) in step.value.input_requests() {
            match request {
                InputRequestEntry::Elicitation(form) => {
                    match (&form.requested_schema, &form.url) {
                        (Some(schema), None) => self.check_parsed(schema),
                        (None, Some(_)) => {}
                        (None, None) | (Some(_), Some(_)) => {
                            self.problem(form.message.at, "an elicitation needs either `requested_schema` or `url`");
                        }
                    };
                    let is_url = |mode: &Located<ElicitationMode>| mode.value == ElicitationMode::Url;
                    if let Some(mode) = form.mode.as_ref().filter(|mode| is_url(mode) != form.url.is_some()) {
                        self.problem(mode.at, "`mode` must be `form` for a `requested_schema` and `url` for a `url`");
                    }
                }
                InputRequestEntry::Sampling(sampling) => {
                    if sampling.messages.is_some() == sampling.prompt.is_some() {
                        self.problem(step.at, "sampling needs either `messages` or `prompt`");
                    }
                }
                InputRequestEntry::Request { method, .. } if method.trim().is_empty() => {
                    let hint = "write `elicitation/create`, `sampling/createMessage` or `roots/list`";
                    self.problem_with_hint(method.at, "the method is empty", hint);
                }
                InputRequestEntry::Roots | InputRequestEntry::Request { .. } => {}
            }
        }
    }

    fn fault(&mut self, rule: &FaultRule) {
        for matcher in [&rule.method, &rule.call].into_iter().flatten() {
            self.check_parsed(matcher);
        }
        if let Some(probability) = &rule.probability
            && !(0.0..=1.0).contains(&probability.value)
        {
            self.problem(probability.at, "`probability` must be from 0 to 1");
        }
        self.fault_kind(&rule.fault);
    }

    fn fault_kind(&mut self, fault: &Located<FaultKind>) {
        if let Err(what) = fault.check() {
            self.problem(fault.at, what);
        }
    }

    fn check_parsed<T: ParseValue>(&mut self, written: &Located<Parsed<T>>) {
        if let Err(error) = written.parsed() {
            self.matcher_problem(written.at, error.clone());
        }
    }

    fn when(&mut self, written: &Located<Parsed<When>>) {
        if written.written.is_object() {
            self.check_parsed(written);
        } else {
            self.problem_with_hint(
                written.at,
                "`when` must be an object whose keys are the names of arguments",
                "write `when: { city: Oslo }`",
            );
        }
    }

    fn matcher_problem(&mut self, at: Span, error: MatcherError) {
        let about = if error.is_about_key() { ProblemTarget::Key } else { ProblemTarget::Value };
        let problem = ScriptProblem { at, message: error.problem.to_string(), hint: error.hint };
        self.found.push(NestedProblem { problem, path: error.path, about });
    }
}

/// The bodies of an answer, by the names of their keys, with their places.
pub(super) fn bodies(answer: &AnswerRule) -> Vec<(&'static str, Span)> {
    let all = [
        ("text", answer.text.as_ref().map(|it| it.at)),
        ("content", answer.content.as_ref().map(|it| it.at)),
        ("structured_content", answer.structured_content.as_ref().map(|it| it.at)),
        ("messages", answer.messages.as_ref().map(|it| it.at)),
        ("contents", answer.contents.as_ref().map(|it| it.at)),
        ("result", answer.result.as_ref().map(|it| it.at)),
        ("error", answer.error.as_ref().map(|it| it.at)),
    ];
    all.into_iter().filter_map(|(name, at)| Some((name, at?))).collect()
}

/// A place to refer to an answer.
fn place_of(answer: &AnswerRule) -> Option<Span> {
    let first = [
        answer.name.as_ref().map(|name| name.at),
        answer.when.as_ref().map(|when| when.at),
        bodies(answer).first().map(|(_, at)| *at),
        answer.fault.as_ref().map(|fault| fault.at),
        answer.steps.first().map(|step| step.at),
        answer.choose.first().and_then(place_of),
        answer.in_turn.first().and_then(place_of),
    ];
    first.into_iter().flatten().next()
}

/// The kind of item that an answer belongs to.
#[derive(Clone, Copy)]
pub(super) enum AnsweredItem {
    Tool,
    Prompt,
    Resource,
    Request,
}

impl AnsweredItem {
    fn name(self) -> &'static str {
        match self {
            AnsweredItem::Tool => "the answer of a tool",
            AnsweredItem::Prompt => "the answer of a prompt",
            AnsweredItem::Resource => "the answer of a resource",
            AnsweredItem::Request => "the answer of another method",
        }
    }

    fn bodies(self) -> &'static [&'static str] {
        match self {
            AnsweredItem::Tool => &["text", "content", "structured_content", "result", "error"],
            AnsweredItem::Prompt => &["messages", "text", "result", "error"],
            AnsweredItem::Resource => &["contents", "text", "result", "error"],
            AnsweredItem::Request => &["result", "error"],
        }
    }

    fn allows(self, body: &str) -> bool {
        self.bodies().contains(&body)
    }
}

impl Checker {
    pub(super) fn content(&mut self, block: &ContentBlock) {
        let at = block.kind.at;
        let has = |key: &str| match key {
            "text" => block.text.is_some(),
            "data" => block.data.is_some() || block.file.is_some(),
            "mime_type" => block.mime_type.is_some(),
            "resource" => block.resource.is_some(),
            "uri" => block.uri.is_some(),
            _ => block.name.is_some(),
        };
        let (kind, needs): (&str, &[&str]) = match block.kind.value {
            ContentKind::Text => ("text", &["text"]),
            ContentKind::Image => ("image", &["data", "mime_type"]),
            ContentKind::Audio => ("audio", &["data", "mime_type"]),
            ContentKind::Resource => ("resource", &["resource"]),
            ContentKind::ResourceLink => ("resource_link", &["uri", "name"]),
        };
        for needed in needs.iter().filter(|needed| !has(needed)) {
            self.problem(at, format!("a block of type `{kind}` needs `{needed}`"));
        }
        let only_others = ["text", "data", "resource", "uri"];
        for other in only_others.iter().filter(|other| !needs.contains(other) && has(other)) {
            self.problem(at, format!("a block of type `{kind}` has no `{other}`"));
        }
        self.base64(block.data.as_ref());
        if let Some(resource) = &block.resource {
            self.contents(resource, at);
            if resource.uri.is_none() {
                self.problem(at, "an embedded resource needs `uri`");
            }
        }
        if let Some(priority) = block.annotations.as_ref().and_then(|it| it.priority.as_ref())
            && !priority.value.as_f64().is_some_and(|it| (0.0..=1.0).contains(&it))
        {
            self.problem(priority.at, "`priority` must be from 0 to 1");
        }
    }

    pub(super) fn contents(&mut self, contents: &ContentsEntry, at: Span) {
        match (&contents.text, &contents.blob) {
            (Some(_), None) | (None, Some(_)) => {}
            (None, None) | (Some(_), Some(_)) => {
                self.problem(at, "contents need either `text` or `blob`");
            }
        }
        self.base64(contents.blob.as_ref());
    }

    pub(super) fn base64(&mut self, data: Option<&Located<String>>) {
        let Some(data) = data.filter(|data| !data.contains("{{")) else { return };
        if let Err(error) = base64::engine::general_purpose::STANDARD.decode(data.as_bytes()) {
            let hint =
                "for invalid base64 on purpose write `fault: invalid_base64`; for the bytes of a file `file: logo.png`";
            self.problem_with_hint(data.at, format!("not base64: {error}"), hint);
        }
    }
}

impl Checker {
    /// Checks answers in turn: the rule has the conditions, and each answer has a body.
    pub(super) fn in_turn(&mut self, rule: &AnswerRule, place: Span, kind: AnsweredItem) {
        if rule.in_turn.is_empty() {
            return;
        }
        let own = [
            ("a reply", bodies(rule).first().map(|(_, at)| *at)),
            ("`choose`", (!rule.choose.is_empty()).then_some(place)),
            ("`steps`", rule.steps.first().map(|step| step.at)),
            ("`request_state`", rule.request_state.as_ref().map(|it| it.at)),
            ("`delay`", rule.delay.map(|_| place)),
            ("`times`", rule.times.as_ref().map(|times| times.at)),
            ("`task`", rule.task.as_ref().map(|_| place)),
            ("`fault`", rule.fault.as_ref().map(|fault| fault.at)),
            ("`is_error`", rule.is_error.map(|_| place)),
            ("`meta`", rule.meta.as_ref().map(|_| place)),
        ];
        for (what, at) in own.into_iter().filter_map(|(what, at)| Some((what, at?))) {
            self.problem_with_hint(
                at,
                format!("{what} and `in_turn` exclude each other"),
                "move it into the answers of `in_turn`",
            );
        }
        for answer in &rule.in_turn {
            let place = self.answer(answer, kind);
            let misplaced = [
                ("`when`", answer.when.is_some()),
                ("`given`", answer.given.is_some()),
                ("`in_turn`", !answer.in_turn.is_empty()),
            ];
            for (what, _) in misplaced.into_iter().filter(|(_, given)| *given) {
                let hint = "move it to the rule that has `in_turn`, or to a rule of its own";
                self.problem_with_hint(place, format!("`in_turn` cannot contain {what}"), hint);
            }
        }
    }
}

impl Checker {
    /// Checks every `result` against its method's result in the versions of the file.
    fn results(&mut self, mock: &MockFile) {
        let versions = mock.versions.iter().flatten().filter_map(|version| version.parse().ok());
        let mut revisions: Vec<Revision> = versions.collect();
        if revisions.is_empty() {
            revisions.extend(Revision::ALL);
        }
        let strict = |of: Option<Validate>| of.or(mock.validate).unwrap_or_default() == Validate::Strict;
        for tool in mock.tools.iter().filter(|tool| strict(tool.validate)) {
            tool.answers.iter().for_each(|answer| self.result(answer, "tools/call", &revisions));
        }
        if !strict(None) {
            return;
        }
        let prompts = mock.prompts.iter().flat_map(|prompt| &prompt.answers);
        prompts.for_each(|answer| self.result(answer, "prompts/get", &revisions));
        let templates = mock.resource_templates.iter().flat_map(|template| &template.answers);
        let resources = mock.resources.iter().flat_map(|resource| &resource.answers);
        resources.chain(templates).for_each(|answer| self.result(answer, "resources/read", &revisions));
        for request in &mock.requests {
            request.answers.iter().for_each(|answer| self.result(answer, &request.method, &revisions));
        }
    }

    fn result(&mut self, answer: &AnswerRule, method: &str, revisions: &[Revision]) {
        answer.choose.iter().chain(&answer.in_turn).for_each(|answer| self.result(answer, method, revisions));
        // A fault may be an answer that is wrong on purpose.
        let Some(result) = answer.result.as_ref().filter(|_| answer.fault.is_none()) else { return };
        for mismatch in check_written_result(method, result, revisions, is_fixed) {
            let message = format!("the result of {method} is wrong: {mismatch}");
            let hint = "correct it, or send it unchanged with `validate: warn`".to_owned();
            self.inside(result.at, mismatch.path, message, hint);
        }
    }

    /// Checks a tool's answers and conditions against its schemas.
    pub(super) fn check_schemas(&mut self, tool: &ToolEntry, validate: Validate) {
        let input = tool.input_schema.as_ref().map(|schema| &schema.written);
        for answer in &tool.answers {
            if let Some(when) = &answer.when {
                // In other modes a call may have any arguments.
                if let (Validate::Strict, Some(input)) = (validate, input) {
                    self.names_in_schema(when, input);
                }
                self.misspelled(when, &when.written, &Path::root(), input);
            }
        }
        if let (Validate::Strict, Some(schema)) = (validate, &tool.output_schema)
            && let Ok(schema) = schema.parsed()
        {
            tool.answers.iter().for_each(|answer| self.fits_output(answer, schema));
        }
    }

    /// Reports a `when` for an argument that the schema does not allow.
    fn names_in_schema(&mut self, when: &Located<Parsed<When>>, schema: &Value) {
        let Ok(When(Matcher::Object(wanted))) = when.parsed() else { return };
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
            && schema.get("patternProperties").is_none()
            && ["allOf", "anyOf", "oneOf", "$ref"].iter().all(|word| schema.get(word).is_none());
        for (key, _) in wanted.iter().filter(|(key, _)| !has_property(schema, key)) {
            let names = properties(schema);
            let meant = closest(key, names.iter().copied());
            if closed || meant.is_some() {
                let hint = match meant {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("the input_schema has {}", names.join(", ")),
                };
                let message = format!("the tool has no argument `{key}`");
                self.inside(when.at, Path::root().join(key.as_str()), message, hint);
            }
        }
    }

    /// Reports an object whose only key is nearly an operator.
    fn misspelled(&mut self, when: &Located<Parsed<When>>, written: &Value, path: &Path, schema: Option<&Value>) {
        let Value::Object(fields) = written else { return };
        for (key, value) in fields {
            let inner = path.clone().join(key.as_str());
            // The value of these operators is data.
            if ["exact", "subset", "schema"].contains(&key.as_str()) {
                continue;
            }
            let schema = schema.and_then(|schema| schema.get("properties")?.get(key));
            if let Value::Object(only) = value
                && let [key] = only.keys().collect::<Vec<_>>()[..]
                && let Some(meant) = closest_operator(key)
                && !schema.is_some_and(|schema| has_property(schema, key))
            {
                let message = format!("`{key}` is not an operator");
                let hint = format!(
                    "did you mean `{meant}`? if `{key}` is a key of the data, write {{ subset: {{ {key}: … }} }}"
                );
                self.inside(when.at, inner.clone().join(key.as_str()), message, hint);
            }
            self.misspelled(when, value, &inner, schema);
        }
    }

    /// Reports an answer that the output schema rejects.
    fn fits_output(&mut self, answer: &AnswerRule, schema: &Schema) {
        answer.choose.iter().chain(&answer.in_turn).for_each(|answer| self.fits_output(answer, schema));
        if answer.is_error == Some(true) || answer.fault.is_some() || answer.result.is_some() || answer.error.is_some()
        {
            return;
        }
        match (&answer.structured_content, answer.text.as_ref().map(|text| text.at)) {
            (Some(content), _) if is_fixed(content) => {
                for mismatch in schema.check(content) {
                    let message = format!("this does not match the output_schema: {mismatch}");
                    let hint = "change one of the two, or send it unchecked with `validate: off`".to_owned();
                    self.inside(content.at, mismatch.path, message, hint);
                }
            }
            (None, Some(at)) => self.problem_with_hint(
                at,
                "the tool has an output_schema, and this answer has no structured content",
                "add `structured_content`, or `is_error: true` if the tool fails here",
            ),
            (Some(_), _) | (None, None) => {}
        }
    }
}

/// Whether a value contains no template.
fn is_fixed(value: &Value) -> bool {
    match value {
        Value::String(text) => !["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)),
        Value::Array(items) => items.iter().all(is_fixed),
        Value::Object(fields) => fields.values().all(is_fixed),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::script::mock::{MissingAnswers, parse};

    fn check(tool: &str) -> String {
        let file = format!("tools: [{{ name: a, {tool} }}]\n");
        parse("m", &file, MissingAnswers::Refused).map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn a_result_without_a_required_member_is_a_problem_with_its_place() {
        let answer = |result: &str| format!("answers:\n      - result: {{ {result} }}\n");
        let read = |result: &str| format!("resources:\n  - uri: a://b\n    {}", answer(result));
        let tool = |result: &str| format!("tools:\n  - name: a\n    {}", answer(result));
        let table = [
            (
                read("contents: [{ text: x }]"),
                "m:4:30: the result of resources/read is wrong: $.contents[0].uri: missing",
            ),
            (read("contents: [{ uri: \"{{ uri }}\", text: x }]"), ""),
            (read("contents: \"{{ state.contents }}\""), ""),
            (
                tool("content: [{ type: text }]"),
                "m:4:29: the result of tools/call is wrong: $.content[0].text: missing",
            ),
            (tool("content: [{ type: text, text: x, own: 1 }], own: 1"), ""),
            (tool("content: [{ type: \"{{ arguments.type }}\", text: x }]"), ""),
            // Only 2026-07-28 allows structured content that is no object.
            (tool("content: [], structuredContent: [1]"), ""),
            (format!("validate: warn\n{}", read("contents: [{ text: x }]")), ""),
            (format!("versions: [2025-11-25]\n{}", tool("content: [], structuredContent: [1]")), "$.structuredContent"),
            (
                "requests: [{ method: completion/complete, answers: [{ result: {} }] }]".to_owned(),
                "$.completion: missing",
            ),
            ("requests: [{ method: acme/own, answers: [{ result: {} }] }]".to_owned(), ""),
        ];
        for (file, expected) in table {
            let problems =
                parse("m", &file, MissingAnswers::Refused).map_or_else(|error| error.to_string(), |_| String::new());
            assert!(problems.contains(expected) && problems.is_empty() == expected.is_empty(), "{file}: {problems}");
        }
    }

    #[test]
    fn a_condition_or_result_that_no_schema_allows_is_a_problem() {
        let input = "input_schema: { properties: { city: { properties: { mathces: {} } } } }";
        let closed = "input_schema: { properties: { city: {} }, additionalProperties: false }";
        let output = "output_schema: { properties: { n: { type: integer } }, required: [n] }";
        for (tool, expected) in [
            (
                format!("{input}, answers: [{{ when: {{ ctiy: x }}, text: a }}]"),
                "the tool has no argument `ctiy`; did you",
            ),
            (
                format!("{closed}, answers: [{{ when: {{ zip: 1 }}, text: a }}]"),
                "no argument `zip`; the input_schema has city",
            ),
            (format!("{input}, answers: [{{ when: {{ zip: 1 }}, text: a }}]"), ""),
            (
                "answers: [{ when: { a: { mathces: x } }, text: a }]".to_owned(),
                "`mathces` is not an operator; did you mean `matches`?",
            ),
            (format!("{input}, answers: [{{ when: {{ city: {{ mathces: x }} }}, text: a }}]"), ""),
            ("answers: [{ when: { a: { subset: { mathces: x } } }, text: a }]".to_owned(), ""),
            (
                format!("{output}, answers: [{{ structured_content: {{ n: x }} }}]"),
                "this does not match the output_schema: $.n: expected",
            ),
            (format!("{output}, answers: [{{ text: x }}]"), "this answer has no structured content"),
            (format!("{output}, validate: off, answers: [{{ text: x }}]"), ""),
            (format!("{output}, answers: [{{ text: x, is_error: true }}]"), ""),
            (format!("{output}, answers: [{{ structured_content: {{ n: \"{{{{ call }}}}\" }} }}]"), ""),
        ] {
            let problems = check(&tool);
            assert!(problems.contains(expected) && problems.is_empty() == expected.is_empty(), "{tool}: {problems}");
        }
    }
}
