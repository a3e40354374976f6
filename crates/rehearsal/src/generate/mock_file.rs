//! Writes a mock file: one rule for each distinct request, with all its recorded answers in order, and a default.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use rehearsal_core::answer::{UriTemplate, declaring};
use rehearsal_core::message::{ErrorReply, Method};
use rehearsal_core::protocol::{Revision, code};
use rehearsal_core::script::mock::write::{DraftAnswer, DraftBody, DraftInputRequest, DraftItem, DraftStep, MockDraft};
use rehearsal_core::script::mock::{RequestEntry, Validate};
use serde_json::{Map, Value, json};

use super::request_rules::{distinguishing_params, requests_needing_rules, suggestions};
use super::rule_name::{ANYTHING_ELSE, RuleNames};
use super::secret::{matcher, uri_pattern};
use super::server_model::{
    DistinctRequest, Generated, ListedItems, ModelAnswer, PrecedingEvent, RecordedInputRequest, RecordedReply,
    ServerModel,
};

/// The gap between a notification and the answer. Some clients lose a notification that arrives together with the
/// answer.
const NOTIFICATION_GAP: Duration = Duration::from_millis(5);

/// Writes the mock that answers like the recording; `source` is the name of the recording.
pub fn generate_mock(model: &ServerModel, source: &str) -> Generated {
    let mut requests: HashMap<_, HashMap<_, Vec<_>>> = HashMap::new();
    for request in &model.requests {
        let subject = request.subject().unwrap_or_default();
        requests.entry(request.method.as_str()).or_default().entry(subject).or_default().push(request);
    }
    let source = source.replace(char::is_control, "?");
    let comment = format!(
        "Answers like {source}. Edit it: rules are tried in order, and the first that fits answers.\n\
         `rehearse check` reports its mistakes, `rehearse mock` serves it.\n"
    );
    let mut left_out = model.left_out;
    let mut draft = MockFileWriter { model, requests }.draft(comment);
    for (method, requests) in requests_needing_rules(model, &draft) {
        match RequestEntry::rule_conflict(method.as_str()) {
            Some(_) => left_out.others += requests.iter().map(|request| request.answers.len()).sum::<usize>(),
            None => draft.requests.push((method.as_str().to_owned(), request_rules(&requests))),
        }
    }
    let draft = match &model.capabilities {
        Some(capabilities) => declaring(draft, capabilities),
        None => draft,
    };
    Generated { files: vec![("server.mock.yaml".to_owned(), draft.to_text())], left_out }
}

struct MockFileWriter<'a> {
    model: &'a ServerModel,
    /// The requests, by method and subject.
    requests: HashMap<&'a str, HashMap<&'a str, Vec<&'a DistinctRequest>>>,
}

impl<'a> MockFileWriter<'a> {
    fn draft(&self, comment: String) -> MockDraft {
        let mut server = self.model.server.clone();
        server.insert("name".to_owned(), self.model.name().into());
        server.insert("version".to_owned(), self.model.version().into());
        MockDraft {
            comment,
            server: Some(server.into()),
            instructions: self.model.instructions.clone(),
            // The recorded answers show which arguments the server rejected.
            validate: Some(Validate::Off),
            versions: self.versions(),
            refuses: self.model.refuses.clone(),
            tools: self.tools(),
            resources: self.resources(),
            resource_templates: self.resource_templates(),
            prompts: self.prompts(),
            ..MockDraft::default()
        }
    }

    /// The supported versions, if the recording shows that the server does not support all of them.
    fn versions(&self) -> Vec<Revision> {
        let newest = self.model.newest_legacy;
        let is_supported =
            |revision: &Revision| newest.is_some_and(|newest| !revision.has_handshake() || *revision <= newest);
        Revision::ALL.into_iter().filter(is_supported).collect()
    }

    fn tools(&self) -> Vec<DraftItem> {
        let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        let tools = offers(&self.model.tools, self.unlisted(&self.model.tools, &Method::TOOLS_CALL, tool));
        tools.map(|offer| self.with_arguments(&Method::TOOLS_CALL, offer)).collect()
    }

    fn prompts(&self) -> Vec<DraftItem> {
        let unlisted =
            self.unlisted(&self.model.prompts, &Method::PROMPTS_GET, |name| self.model.unlisted_prompt(name));
        let mut prompts = Vec::new();
        for offer in offers(&self.model.prompts, unlisted) {
            let name = offer.listed["name"].as_str().unwrap_or_default();
            let arguments = offer.listed.get("arguments").and_then(Value::as_array).into_iter().flatten();
            let arguments = arguments.filter_map(|argument| argument.get("name")?.as_str());
            let complete = arguments
                .map(|argument| (argument.to_owned(), suggestions(self.model, "ref/prompt", "name", name, argument)));
            let complete = complete.filter(|(_, values)| !values.is_empty()).collect();
            prompts.push(DraftItem { complete, ..self.with_arguments(&Method::PROMPTS_GET, offer) });
        }
        prompts
    }

    fn resources(&self) -> Vec<DraftItem> {
        let of_templates = self.of_templates();
        let mut unlisted =
            self.unlisted(&self.model.resources, &Method::RESOURCES_READ, |uri| json!({"uri": uri, "name": uri}));
        unlisted.retain(|offer| {
            let uri = offer.listed["uri"].as_str().unwrap_or_default();
            !of_templates.contains(uri) && uri_pattern(uri).is_none()
        });
        let resources = offers(&self.model.resources, unlisted);
        let with_answers = |offer: DraftItem| {
            let uri = offer.listed["uri"].as_str().unwrap_or_default();
            let requests: Vec<_> = self.about(&Method::RESOURCES_READ, uri).iter().map(|it| (*it, None)).collect();
            let no_match = ErrorReply::new(code::RESOURCE_NOT_FOUND, format!("nothing was recorded for {uri}"));
            DraftItem { answers: rules(&offer.listed, &requests, no_match), ..offer }
        };
        resources.map(with_answers).collect()
    }

    /// The URIs that were read and are not listed, but fit a template.
    fn of_templates(&self) -> BTreeSet<&'a str> {
        let written = self.model.resource_templates.items.iter().filter_map(|it| it.get("uriTemplate")?.as_str());
        let templates: Vec<_> = written.filter_map(|written| UriTemplate::read(written).ok()).collect();
        let fits = |uri: &&str| templates.iter().any(|it| !it.variables().is_empty() && it.matches(uri).is_some());
        let uris = self.model.requests_of(&Method::RESOURCES_READ).filter_map(|request| request.subject());
        uris.filter(|uri| !self.model.resources.contains(uri)).filter(fits).collect()
    }

    fn resource_templates(&self) -> Vec<DraftItem> {
        let (model, of_templates) = (self.model, self.of_templates());
        let no_match = || ErrorReply::new(code::RESOURCE_NOT_FOUND, "nothing was recorded for this resource");
        let mut templates = Vec::new();
        let mut used: BTreeSet<&str> = BTreeSet::new();
        for listed in &model.resource_templates.items {
            let written = listed["uriTemplate"].as_str().unwrap_or_default();
            let pattern = UriTemplate::read(written).ok().filter(|pattern| !pattern.variables().is_empty());
            let mut complete = Vec::new();
            for variable in pattern.iter().flat_map(UriTemplate::variables) {
                let values = suggestions(model, "ref/resource", "uri", written, variable);
                complete.extend((!values.is_empty()).then(|| (variable.clone(), values)));
            }
            let mut requests = Vec::new();
            for request in model.requests_of(&Method::RESOURCES_READ) {
                let Some(uri) = request.subject().filter(|uri| of_templates.contains(uri)) else { continue };
                let variables = pattern.as_ref().and_then(|pattern| pattern.matches(uri));
                if let Some(variables) = variables.filter(|_| used.insert(uri)) {
                    requests.push((request, Some(variables)));
                }
            }
            let answers = rules(listed, &requests, no_match());
            templates.push(DraftItem {
                verbatim: pattern.is_none(),
                complete,
                ..DraftItem::new(listed.clone(), answers)
            });
        }
        // An unlisted resource may be requested with any secret in its URI.
        for request in model.requests_of(&Method::RESOURCES_READ) {
            let Some(uri) = request.subject().filter(|uri| !model.resources.contains(uri)) else { continue };
            if let Some(pattern) = uri_pattern(uri).filter(|_| used.insert(uri)) {
                let listed = json!({"uriTemplate": pattern, "name": pattern});
                let answers = rules(&listed, &[(request, None)], no_match());
                templates.push(DraftItem { hidden: true, ..DraftItem::new(listed, answers) });
            }
        }
        templates
    }

    /// The items that were requested and never listed. They are hidden if the list was requested.
    fn unlisted(&self, list: &ListedItems, method: &Method, item: impl Fn(&str) -> Value) -> Vec<DraftItem> {
        let mut seen = BTreeSet::new();
        let names = self.model.requests_of(method).filter_map(DistinctRequest::subject);
        let unlisted = names.filter(|name| !list.contains(name) && seen.insert(*name));
        unlisted
            .map(|name| DraftItem { hidden: list.was_requested, ..DraftItem::new(item(name), Vec::new()) })
            .collect()
    }

    fn about(&self, method: &Method, subject: &str) -> &[&'a DistinctRequest] {
        self.requests.get(method.as_str()).and_then(|all| all.get(subject)).map_or(&[], Vec::as_slice)
    }

    /// Adds the rules for the arguments that an item was called with.
    fn with_arguments(&self, method: &Method, offer: DraftItem) -> DraftItem {
        let name = offer.listed["name"].as_str().unwrap_or_default();
        let arguments = |request: &DistinctRequest| request.arguments().cloned().unwrap_or_default();
        let requests: Vec<_> = self.about(method, name).iter().map(|it| (*it, Some(arguments(it)))).collect();
        let no_match = format!("nothing was recorded for these arguments of {name}");
        let answers = rules(&offer.listed, &requests, ErrorReply::new(code::INVALID_PARAMS, no_match));
        DraftItem { answers, ..offer }
    }
}

/// The listed items, followed by the unlisted ones.
fn offers(list: &ListedItems, unlisted: Vec<DraftItem>) -> impl Iterator<Item = DraftItem> {
    list.items.iter().map(|listed| DraftItem::new(listed.clone(), Vec::new())).chain(unlisted)
}

/// The rules for requests with these arguments, and the default.
fn rules(
    listed: &Value,
    requests: &[(&DistinctRequest, Option<Map<String, Value>>)],
    default: ErrorReply,
) -> Vec<DraftAnswer> {
    let mut rules = Vec::new();
    let mut names = RuleNames::new(requests.iter().map(|(_, arguments)| arguments.as_ref()));
    let mut has_default = false;
    for (request, arguments) in requests {
        let when = arguments.as_ref().map(|arguments| exactly(arguments, listed));
        has_default |= when.is_none();
        let name = Some(names.name(arguments.as_ref()));
        rules.extend(rule(request).map(|rule| DraftAnswer { name, when, ..rule }));
    }
    if !has_default {
        let name = Some(ANYTHING_ELSE.to_owned());
        rules.push(DraftAnswer { name, ..DraftAnswer::new(DraftBody::Error(default)) });
    }
    rules
}

/// The rules for requests of one other method.
fn request_rules(requests: &[&DistinctRequest]) -> Vec<DraftAnswer> {
    let distinguishing: Vec<_> = requests.iter().map(|request| distinguishing_params(request)).collect();
    let mut names = RuleNames::new(distinguishing.iter().map(Some));
    let mut rules = Vec::new();
    for (request, distinguishing) in requests.iter().zip(&distinguishing) {
        let params = request.params.as_object().cloned().unwrap_or_default();
        let (name, when) = (Some(names.name(Some(distinguishing))), Some(exactly(&params, &Value::Null)));
        rules.extend(rule(request).map(|rule| DraftAnswer { name, when, ..rule }));
    }
    rules
}

/// All answers to a request, in turn if there are several; the last answer is repeated.
fn rule(request: &DistinctRequest) -> Option<DraftAnswer> {
    let mut groups: Vec<(&ModelAnswer, u64)> = Vec::new();
    for answer in &request.answers {
        match groups.last_mut() {
            Some((last, times)) if *last == answer => *times += 1,
            Some(_) | None => groups.push((answer, 1)),
        }
    }
    let (last, _) = groups.pop()?;
    if groups.is_empty() {
        return Some(draft_answer(last));
    }
    let times = |times: u64| (times > 1).then_some(times);
    let sequence = groups.iter().map(|(answer, count)| DraftAnswer { times: times(*count), ..draft_answer(answer) });
    Some(DraftAnswer::new(DraftBody::InTurn(sequence.chain([draft_answer(last)]).collect())))
}

fn draft_answer(answer: &ModelAnswer) -> DraftAnswer {
    let mut steps: Vec<_> = answer.before.iter().map(step).collect();
    if let Some(PrecedingEvent::Notification { .. }) = answer.before.last() {
        steps.push(DraftStep::Wait(NOTIFICATION_GAP));
    }
    let body = match &answer.reply {
        RecordedReply::Error(error) => DraftBody::Error(error.clone()),
        RecordedReply::Result(result) => DraftBody::Result(Value::Object(result.clone())),
    };
    DraftAnswer { steps, ..DraftAnswer::new(body) }
}

fn step(event: &PrecedingEvent) -> DraftStep {
    match event {
        PrecedingEvent::EmptyRound => DraftStep::EmptyRound,
        PrecedingEvent::Notification { method, params } => {
            DraftStep::Notify { method: method.as_str().to_owned(), params: params.clone() }
        }
        PrecedingEvent::InputRequests(requests) => {
            let input_request = |it: &RecordedInputRequest| DraftInputRequest {
                name: it.name.clone(),
                method: it.method.as_str().to_owned(),
                params: it.params.clone(),
            };
            let requested = requests.iter().map(input_request).collect();
            match requests.iter().any(|request| request.optional) {
                true => DraftStep::TryAsk(requested),
                false => DraftStep::Ask(requested),
            }
        }
    }
}

/// A matcher for these arguments and no others, of something that is listed like this.
fn exactly(arguments: &Map<String, Value>, listed: &Value) -> Value {
    let exact = matcher(arguments);
    // If there is an argument of this name, it would be taken for that; so would `length` be everywhere.
    let of_prompt = listed.get("arguments").and_then(Value::as_array).into_iter().flatten();
    let is_argument = listed.pointer("/inputSchema/properties/exact").is_some()
        || of_prompt.into_iter().any(|argument| argument["name"] == "exact");
    if is_argument || exact.get("exact").is_none() { json!({"all_of": [exact]}) } else { exact }
}
