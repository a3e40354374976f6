//! A recording as a mock file: one rule a distinct request, all recorded answers of it in order, the default last.

use std::collections::BTreeSet;

use rehearsal_core::answer::{UriTemplate, declaring};
use rehearsal_core::message::{ErrorReply, Method};
use rehearsal_core::protocol::code;
use rehearsal_core::protocol::meta::TASKS_EXTENSION;
use rehearsal_core::script::mock::Validate;
use rehearsal_core::script::mock::write::{Draft, DraftAnswer, Offer, Says};
use serde_json::{Map, Value, json};

use super::beyond::beyond_rules;
use super::completion::suggestions;
use super::generated::Generated;
use super::learn::not_always;
use super::learned::{Answered, Learned, Request};
use super::listed::Listed;
use super::mock_answer::answer;
use super::rule_name::RuleNames;

/// Writes the mock that answers like the recording; `source` is what to call the recording.
pub fn generate_mock(learned: &Learned, source: &str) -> Generated {
    let mut writer = Writer { learned, left_out: learned.left_out.clone() };
    let source = source.replace(char::is_control, "?");
    let comment = format!(
        "Answers like {source}. Edit it: rules are tried in order, and the first that fits answers.\n\
         `rehearse check` says what is wrong with it, `rehearse mock` serves it.\n"
    );
    let text = writer.draft(comment).written();
    Generated { files: vec![("server.mock.yaml".to_owned(), text)], left_out: writer.left_out }
}

struct Writer<'a> {
    learned: &'a Learned,
    left_out: Vec<String>,
}

impl Writer<'_> {
    fn draft(&mut self, comment: String) -> Draft {
        let mut server = self.learned.server.clone();
        server.insert("name".to_owned(), self.learned.name().into());
        server.insert("version".to_owned(), self.learned.version().into());
        let draft = Draft {
            comment,
            server: Some(server.into()),
            instructions: self.learned.instructions.clone(),
            // What the server thought of arguments is in its recorded answers.
            validate: Some(Validate::Off),
            tools: self.tools(),
            resources: self.resources(),
            resource_templates: self.resource_templates(),
            prompts: self.prompts(),
            ..Draft::default()
        };
        let draft = self.declaring(draft);
        self.left_out.extend(beyond_rules(self.learned, &draft));
        draft
    }

    /// A draft that declares what was recorded.
    fn declaring(&mut self, draft: Draft) -> Draft {
        let Some(recorded) = &self.learned.capabilities.all() else { return draft };
        let differing = self.learned.capabilities.differing();
        let not_told = differing.iter().map(|key| not_always(key)).filter(|words| !self.left_out.contains(words));
        let not_told: Vec<_> = not_told.collect();
        self.left_out.extend(not_told);
        let mut wanted = recorded.clone();
        // A mock from a recording has no tasks.
        let tasks = wanted.shift_remove("tasks").map(|_| "the capability `tasks`".to_owned());
        let extensions = wanted.get_mut("extensions").and_then(Value::as_object_mut);
        let extension = extensions.and_then(|all| all.shift_remove(TASKS_EXTENSION));
        if extension.is_some() && wanted["extensions"] == json!({}) {
            wanted.shift_remove("extensions");
        }
        let extension = extension.map(|_| format!("the extension `{TASKS_EXTENSION}`"));
        self.left_out.extend(tasks.into_iter().chain(extension));
        // Where it cannot be read again, whoever reads it is told why.
        let mut draft = declaring(draft.clone(), &wanted).unwrap_or(Draft { capabilities: wanted, ..draft });
        let of_tasks = ["tasks", "extensions"];
        if of_tasks.iter().any(|key| recorded.contains_key(*key)) {
            // Those of a mock, where it has any.
            draft.capabilities.retain(|key, value| !value.is_null() || !of_tasks.contains(&key.as_str()));
        }
        draft
    }

    fn tools(&mut self) -> Vec<Offer> {
        let learned = self.learned;
        let unlisted = unlisted(learned, &learned.tools, &Method::TOOLS_CALL, |_| false);
        let mut tools = Vec::new();
        for Shown { mut listed, hidden } in all(&learned.tools, unlisted) {
            let Some(name) = listed.get("name").and_then(Value::as_str).map(str::to_owned) else { continue };
            if listed.pointer("/execution/taskSupport").is_some_and(|support| support == "required") {
                // Recorded answers come at once; nobody has to wait for a task.
                self.left_out.push(format!("that the tool {name} is always a task"));
                listed["execution"]["taskSupport"] = "optional".into();
            }
            let requests = learned.requests_of(&Method::TOOLS_CALL).filter(|it| it.subject() == Some(&name));
            let requests: Vec<_> =
                requests.map(|request| (request, Some(request.arguments().cloned().unwrap_or_default()))).collect();
            let nothing = format!("nothing was recorded for these arguments of {name}");
            let answers = self.answers(&listed, &requests, ErrorReply::new(code::INVALID_PARAMS, nothing));
            tools.push(Offer { hidden, ..Offer::new(listed, answers) });
        }
        tools
    }

    fn resources(&mut self) -> Vec<Offer> {
        let learned = self.learned;
        let templates: Vec<_> = self.templates();
        let by_pattern = |uri: &str| templates.iter().any(|it| it.matches(uri).is_some());
        let unlisted = unlisted(learned, &learned.resources, &Method::RESOURCES_READ, by_pattern);
        let mut resources = Vec::new();
        for Shown { listed, hidden } in all(&learned.resources, unlisted) {
            let Some(uri) = listed.get("uri").and_then(Value::as_str) else { continue };
            let requests = learned.requests_of(&Method::RESOURCES_READ).filter(|it| it.subject() == Some(uri));
            let requests: Vec<_> = requests.map(|request| (request, None)).collect();
            let nothing = ErrorReply::new(code::RESOURCE_NOT_FOUND, format!("nothing was recorded for {uri}"));
            let answers = self.answers(&listed, &requests, nothing);
            resources.push(Offer { hidden, ..Offer::new(listed, answers) });
        }
        resources
    }

    fn templates(&self) -> Vec<UriTemplate> {
        let Listed { items, gone, .. } = &self.learned.resource_templates;
        items.iter().chain(gone).filter_map(|it| UriTemplate::read(it.get("uriTemplate")?.as_str()?).ok()).collect()
    }

    fn resource_templates(&mut self) -> Vec<Offer> {
        let mut templates = Vec::new();
        let mut taken: BTreeSet<&str> = BTreeSet::new();
        let learned = self.learned;
        let gone = learned.resource_templates.gone.iter();
        let gone = gone.map(|listed| Shown { listed: listed.clone(), hidden: true }).collect();
        for Shown { listed, hidden } in all(&learned.resource_templates, gone) {
            let Some(written) = listed.get("uriTemplate").and_then(Value::as_str) else { continue };
            let pattern = UriTemplate::read(written).ok().filter(|it| !it.variables().is_empty());
            let (mut requests, mut complete) = (Vec::new(), Vec::new());
            if pattern.is_none() {
                self.left_out.push(format!("what belongs to {written:?}, which cannot be read backwards"));
            }
            for variable in pattern.iter().flat_map(UriTemplate::variables) {
                let values = suggestions(learned, "ref/resource", "uri", written, variable);
                complete.extend((!values.is_empty()).then(|| (variable.clone(), values)));
            }
            for request in learned.requests_of(&Method::RESOURCES_READ) {
                let Some(uri) = request.subject().filter(|uri| !is_known(&learned.resources, uri)) else {
                    continue;
                };
                let variables = pattern.as_ref().and_then(|pattern| pattern.matches(uri));
                if let Some(variables) = variables.filter(|_| taken.insert(uri)) {
                    requests.push((request, Some(variables)));
                }
            }
            let nothing = ErrorReply::new(code::RESOURCE_NOT_FOUND, "nothing was recorded for this resource");
            let answers = self.answers(&listed, &requests, nothing);
            templates.push(Offer { exactly: pattern.is_none(), hidden, complete, ..Offer::new(listed, answers) });
        }
        templates
    }

    fn prompts(&mut self) -> Vec<Offer> {
        let learned = self.learned;
        let unlisted = unlisted(learned, &learned.prompts, &Method::PROMPTS_GET, |_| false);
        let mut prompts = Vec::new();
        for Shown { listed, hidden } in all(&learned.prompts, unlisted) {
            let Some(name) = listed.get("name").and_then(Value::as_str) else { continue };
            let arguments = listed.get("arguments").and_then(Value::as_array).into_iter().flatten();
            let arguments = arguments.filter_map(|argument| argument.get("name")?.as_str());
            let complete = arguments.filter_map(|argument| {
                let values = suggestions(learned, "ref/prompt", "name", name, argument);
                (!values.is_empty()).then(|| (argument.to_owned(), values))
            });
            let complete = complete.collect();
            let requests = learned.requests_of(&Method::PROMPTS_GET).filter(|it| it.subject() == Some(name));
            let requests: Vec<_> =
                requests.map(|request| (request, Some(request.arguments().cloned().unwrap_or_default()))).collect();
            let nothing = format!("nothing was recorded for these arguments of {name}");
            let answers = self.answers(&listed, &requests, ErrorReply::new(code::INVALID_PARAMS, nothing));
            prompts.push(Offer { hidden, complete, ..Offer::new(listed, answers) });
        }
        prompts
    }

    /// The rules for requests with these arguments.
    fn answers(
        &mut self,
        listed: &Value,
        requests: &[(&Request, Option<Map<String, Value>>)],
        otherwise: ErrorReply,
    ) -> Vec<DraftAnswer> {
        let mut rules = Vec::new();
        let mut names = RuleNames::new(requests.iter().map(|(_, arguments)| arguments.as_ref()));
        let mut has_default = false;
        for (request, arguments) in requests {
            let when = arguments.as_ref().map(|arguments| exactly(arguments, listed));
            has_default |= when.is_none();
            let name = Some(names.name(arguments.as_ref()));
            let mut groups = grouped(&request.answers);
            // The last answer is given for ever.
            let Some((last, _)) = groups.pop() else { continue };
            let last = answer(last, &mut self.left_out);
            if groups.is_empty() {
                rules.push(DraftAnswer { name, when, ..last });
                continue;
            }
            let mut in_turn: Vec<_> = groups
                .into_iter()
                .map(|(answered, times)| DraftAnswer {
                    times: (times > 1).then_some(times),
                    ..answer(answered, &mut self.left_out)
                })
                .collect();
            in_turn.push(last);
            rules.push(DraftAnswer { name, when, ..DraftAnswer::new(Says::InTurn(in_turn)) });
        }
        if !has_default {
            let name = Some("anything else".to_owned());
            rules.push(DraftAnswer { name, ..DraftAnswer::new(Says::Error(otherwise)) });
        }
        rules
    }
}

/// Something that is offered, and whether nobody sees it in a list.
struct Shown {
    listed: Value,
    hidden: bool,
}

/// What is in a list, and then what is not.
fn all(list: &Listed, unlisted: Vec<Shown>) -> impl Iterator<Item = Shown> {
    list.items.iter().map(|listed| Shown { listed: listed.clone(), hidden: false }).chain(unlisted)
}

fn is_known(list: &Listed, name: &str) -> bool {
    list.find(name).is_some() || list.find_gone(name).is_some()
}

/// What was asked for though it was not listed, or not any more. Where nobody ever asked for the list, it may have been
/// in it; `elsewhere` says what answers it otherwise.
fn unlisted(learned: &Learned, list: &Listed, method: &Method, elsewhere: impl Fn(&str) -> bool) -> Vec<Shown> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for name in learned.requests_of(method).filter_map(Request::subject) {
        if list.find(name).is_some() || !seen.insert(name) {
            continue;
        }
        let listed = match (list.find_gone(name), method.as_str()) {
            (Some(gone), _) => gone.clone(),
            (None, _) if elsewhere(name) => continue,
            (None, "resources/read") => json!({"uri": name, "name": name}),
            (None, "tools/call") => json!({"name": name, "inputSchema": {"type": "object"}}),
            (None, _) => json!({"name": name}),
        };
        found.push(Shown { listed, hidden: list.was_asked });
    }
    found
}

/// Equal answers that follow each other are one, given more often.
fn grouped(answers: &[Answered]) -> Vec<(&Answered, u64)> {
    let mut groups: Vec<(&Answered, u64)> = Vec::new();
    for answer in answers {
        match groups.last_mut() {
            Some((same, times)) if *same == answer => *times += 1,
            Some(_) | None => groups.push((answer, 1)),
        }
    }
    groups
}

/// These arguments and no others, for what was listed like this.
fn exactly(arguments: &Map<String, Value>, listed: &Value) -> Value {
    let exact = json!({"exact": arguments});
    // Where there is an argument of this name, it would be taken for that.
    let of_prompt = listed.get("arguments").and_then(Value::as_array).into_iter().flatten();
    let is_argument = listed.pointer("/inputSchema/properties/exact").is_some()
        || of_prompt.into_iter().any(|argument| argument["name"] == "exact");
    if is_argument { json!({"all_of": [exact]}) } else { exact }
}
