//! A recording as a mock file: one rule a distinct request, all recorded answers of it in order, the default last.

use std::collections::BTreeSet;

use rehearsal_core::answer::UriTemplate;
use rehearsal_core::message::{ErrorReply, Method};
use rehearsal_core::protocol::code;
use rehearsal_core::script::mock::Validate;
use rehearsal_core::script::mock::write::{Draft, DraftAnswer, Offer, Says};
use serde_json::{Map, Value, json};

use super::beyond::beyond_rules;
use super::generated::Generated;
use super::learned::{Answered, Learned, Request, Said};
use super::mock_answer::answer;
use super::rule_name::RuleNames;

/// Writes the mock that answers like the recording; `source` is what to call the recording.
pub fn generate_mock(learned: &Learned, source: &str) -> Generated {
    let mut writer = Writer { learned, invented: invented_templates(learned), left_out: learned.left_out.clone() };
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
    /// Patterns for what was read though the server did not list it.
    invented: Vec<Value>,
    left_out: Vec<String>,
}

impl Writer<'_> {
    fn draft(&mut self, comment: String) -> Draft {
        let mut server = self.learned.server.clone();
        server.insert("name".to_owned(), self.learned.name().into());
        server.insert("version".to_owned(), self.learned.version().into());
        let mut draft = Draft {
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
        draft.capabilities = self.capabilities(&draft);
        self.left_out.extend(beyond_rules(self.learned, &draft));
        draft
    }

    /// What does not follow from what is offered; `null` takes away what would follow.
    fn capabilities(&mut self, draft: &Draft) -> Map<String, Value> {
        let mut all = Map::new();
        if self.learned.capabilities.is_empty() {
            return all;
        }
        let has_resources = !draft.resources.is_empty() || !draft.resource_templates.is_empty();
        let offered = [
            ("tools", !draft.tools.is_empty(), &["listChanged"][..]),
            ("resources", has_resources, &["subscribe", "listChanged"]),
            ("prompts", !draft.prompts.is_empty(), &["listChanged"]),
        ];
        for (key, value) in &self.learned.capabilities {
            if key == "tasks" || key == "extensions" {
                // The extension of tasks comes with tasks, which a mock from a recording has none of.
                self.left_out.push(format!("the capability `{key}`"));
            } else if !offered.iter().any(|(name, is, _)| name == key && *is) {
                all.insert(key.clone(), value.clone());
            }
        }
        for (key, _, parts) in offered.iter().filter(|(_, is_offered, _)| *is_offered) {
            let declared = self.learned.capabilities.get(*key);
            let said = |part: &&str| declared.and_then(|it| it.get(*part)).and_then(Value::as_bool) == Some(true);
            if !parts.iter().all(said) {
                let parts: Map<_, _> = parts.iter().map(|part| ((*part).to_owned(), said(part).into())).collect();
                all.insert((*key).to_owned(), parts.into());
            }
        }
        all
    }

    fn tools(&mut self) -> Vec<Offer> {
        let learned = self.learned;
        let unlisted =
            self.unlisted(&Method::TOOLS_CALL, "tool", |learned, name| learned.tools.find("name", name).is_some());
        let mut tools = Vec::new();
        for listed in learned.tools.items.iter().chain(&unlisted) {
            let Some(name) = listed.get("name").and_then(Value::as_str) else { continue };
            let mut listed = listed.clone();
            if listed.pointer("/execution/taskSupport").is_some_and(|support| support == "required") {
                // Recorded answers come at once; nobody has to wait for a task.
                self.left_out.push(format!("that the tool {name} is always a task"));
                listed["execution"]["taskSupport"] = "optional".into();
            }
            let requests = learned.requests_of(&Method::TOOLS_CALL).filter(|it| it.subject() == Some(name));
            let requests: Vec<_> =
                requests.map(|request| (request, Some(request.arguments().cloned().unwrap_or_default()))).collect();
            let nothing = format!("nothing was recorded for these arguments of {name}");
            let answers = self.answers(&listed, &requests, ErrorReply::new(code::INVALID_PARAMS, nothing));
            tools.push(Offer::new(listed, answers));
        }
        tools
    }

    fn resources(&mut self) -> Vec<Offer> {
        let learned = self.learned;
        let templates: Vec<_> = self.templates();
        let unlisted = self.unlisted(&Method::RESOURCES_READ, "resource", |learned, uri| {
            learned.resources.find("uri", uri).is_some() || templates.iter().any(|it| it.matches(uri).is_some())
        });
        let mut resources = Vec::new();
        for listed in learned.resources.items.iter().chain(&unlisted) {
            let Some(uri) = listed.get("uri").and_then(Value::as_str) else { continue };
            let requests = learned.requests_of(&Method::RESOURCES_READ).filter(|it| it.subject() == Some(uri));
            let requests: Vec<_> = requests.map(|request| (request, None)).collect();
            let nothing = ErrorReply::new(code::RESOURCE_NOT_FOUND, format!("nothing was recorded for {uri}"));
            resources.push(Offer::new(listed.clone(), self.answers(listed, &requests, nothing)));
        }
        resources
    }

    fn templates(&self) -> Vec<UriTemplate> {
        let written = self.learned.resource_templates.items.iter().chain(&self.invented);
        written.filter_map(|it| UriTemplate::read(it.get("uriTemplate")?.as_str()?).ok()).collect()
    }

    fn resource_templates(&mut self) -> Vec<Offer> {
        let mut templates = Vec::new();
        let mut taken: BTreeSet<&str> = BTreeSet::new();
        let learned = self.learned;
        let invented = self.invented.clone();
        for listed in learned.resource_templates.items.iter().chain(&invented) {
            let Some(written) = listed.get("uriTemplate").and_then(Value::as_str) else { continue };
            let pattern = UriTemplate::read(written).ok().filter(|it| !it.variables().is_empty());
            let (mut requests, mut complete) = (Vec::new(), Vec::new());
            if pattern.is_none() {
                self.left_out.push(format!("what belongs to {written:?}, which cannot be read backwards"));
            }
            for variable in pattern.iter().flat_map(UriTemplate::variables) {
                let values = self.completions("ref/resource", "uri", written, variable);
                complete.extend((!values.is_empty()).then(|| (variable.clone(), values)));
            }
            for request in learned.requests_of(&Method::RESOURCES_READ) {
                let Some(uri) = request.subject().filter(|uri| learned.resources.find("uri", uri).is_none()) else {
                    continue;
                };
                let variables = pattern.as_ref().and_then(|pattern| pattern.matches(uri));
                if let Some(variables) = variables.filter(|_| taken.insert(uri)) {
                    requests.push((request, Some(variables)));
                }
            }
            let nothing = ErrorReply::new(code::RESOURCE_NOT_FOUND, "nothing was recorded for this resource");
            let answers = self.answers(listed, &requests, nothing);
            templates.push(Offer { exactly: pattern.is_none(), complete, ..Offer::new(listed.clone(), answers) });
        }
        templates
    }

    fn prompts(&mut self) -> Vec<Offer> {
        let learned = self.learned;
        let unlisted =
            self.unlisted(&Method::PROMPTS_GET, "prompt", |learned, name| learned.prompts.find("name", name).is_some());
        let mut prompts = Vec::new();
        for listed in learned.prompts.items.iter().chain(&unlisted) {
            let Some(name) = listed.get("name").and_then(Value::as_str) else { continue };
            let arguments = listed.get("arguments").and_then(Value::as_array).into_iter().flatten();
            let arguments = arguments.filter_map(|argument| argument.get("name")?.as_str());
            let complete = arguments.filter_map(|argument| {
                let values = self.completions("ref/prompt", "name", name, argument);
                (!values.is_empty()).then(|| (argument.to_owned(), values))
            });
            let complete = complete.collect();
            let requests = learned.requests_of(&Method::PROMPTS_GET).filter(|it| it.subject() == Some(name));
            let requests: Vec<_> =
                requests.map(|request| (request, Some(request.arguments().cloned().unwrap_or_default()))).collect();
            let nothing = format!("nothing was recorded for these arguments of {name}");
            let answers = self.answers(listed, &requests, ErrorReply::new(code::INVALID_PARAMS, nothing));
            prompts.push(Offer { complete, ..Offer::new(listed.clone(), answers) });
        }
        prompts
    }

    /// What was asked for and answered though it was never listed; what was refused is refused by a mock too.
    fn unlisted(&mut self, method: &Method, kind: &str, is_listed: impl Fn(&Learned, &str) -> bool) -> Vec<Value> {
        let mut found: Vec<Value> = Vec::new();
        let (mut seen, mut refused) = (BTreeSet::new(), BTreeSet::new());
        for request in self.learned.requests_of(method) {
            let Some(name) = request.subject().filter(|name| !is_listed(self.learned, name)) else { continue };
            if !request.succeeded() {
                refused.insert(name);
            } else if seen.insert(name) {
                found.push(match method.as_str() {
                    "resources/read" => json!({"uri": name, "name": name}),
                    "tools/call" => json!({"name": name, "inputSchema": {"type": "object"}}),
                    _ => json!({"name": name}),
                });
            }
        }
        let of_kind = match kind {
            "tool" => self.learned.tools.was_asked,
            "prompt" => self.learned.prompts.was_asked,
            _ => self.learned.resources.was_asked,
        };
        for name in seen.iter().filter(|_| of_kind) {
            self.left_out.push(format!("that the {kind} {name} was not listed: a mock lists all that it has"));
        }
        for name in refused.difference(&seen) {
            self.left_out.push(format!("the words in which the unknown {kind} {name} was refused"));
        }
        found
    }

    /// Everything that was ever suggested.
    fn completions(&self, kind: &str, key: &str, of: &str, argument: &str) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for request in self.learned.requests_of(&Method::COMPLETE) {
            let (reference, asked) = (&request.params["ref"], &request.params["argument"]);
            if reference["type"] != kind || reference[key] != of || asked["name"] != argument {
                continue;
            }
            for answer in &request.answers {
                let Said::Result(result) = &answer.said else { continue };
                let suggested = result.get("completion").and_then(|it| it.get("values")).and_then(Value::as_array);
                for value in suggested.into_iter().flatten().filter_map(Value::as_str) {
                    if !values.iter().any(|known| known == value) {
                        values.push(value.to_owned());
                    }
                }
            }
        }
        values
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
            let groups = grouped(&request.answers);
            let several = groups.len() > 1;
            let last = groups.len().saturating_sub(1);
            for (at, (answered, times)) in groups.into_iter().enumerate() {
                let name = Some(names.name(arguments.as_ref(), several.then_some((at, last))));
                // The last answer is given for ever.
                let times = (at < last).then_some(times);
                rules.push(DraftAnswer { name, when: when.clone(), times, ..answer(answered, &mut self.left_out) });
            }
        }
        if !has_default {
            let name = Some("anything else".to_owned());
            rules.push(DraftAnswer { name, ..DraftAnswer::new(Says::Error(otherwise)) });
        }
        rules
    }
}

/// Patterns for resources that were read, but are in no list: a mock lists all resources that it has.
fn invented_templates(learned: &Learned) -> Vec<Value> {
    let known: Vec<_> =
        learned.resource_templates.items.iter().filter_map(|it| it.get("uriTemplate")?.as_str()).collect();
    let known: Vec<_> = known.into_iter().filter_map(|written| UriTemplate::read(written).ok()).collect();
    let mut invented: Vec<Value> = Vec::new();
    for request in learned.requests_of(&Method::RESOURCES_READ).filter(|request| request.succeeded()) {
        let Some(uri) = request.subject() else { continue };
        let listed = learned.resources.find("uri", uri).is_some() || known.iter().any(|it| it.matches(uri).is_some());
        let Some((folder, _)) = uri.rsplit_once('/').filter(|_| learned.resources.was_asked && !listed) else {
            continue;
        };
        let written = format!("{}/{{name}}", folder);
        let fits = UriTemplate::read(&written).is_ok_and(|pattern| pattern.matches(uri).is_some());
        let template = json!({"uriTemplate": written, "name": written});
        if fits && !invented.contains(&template) {
            invented.push(template);
        }
    }
    invented
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
