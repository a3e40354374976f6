//! A recording as a mock file: one rule a distinct request, all recorded answers of it in order, the default last.

use std::collections::BTreeSet;

use rehearsal_core::answer::UriTemplate;
use rehearsal_core::matcher::{Matcher, Schema};
use rehearsal_core::message::{ErrorReply, Method};
use rehearsal_core::protocol::code;
use serde_json::{Map, Value, json};

use super::generated::Generated;
use super::learned::{Answered, Learned, Request, Said};
use super::mock_answer::{answer, snake};
use super::mock_yaml::mock_yaml;
use super::rule_name::RuleNames;

/// Writes the mock that answers like the recording; `source` is what to call the recording.
pub fn generate_mock(learned: &Learned, source: &str) -> Generated {
    let mut writer = Writer { learned, invented: invented_templates(learned), left_out: learned.left_out.clone() };
    let file = writer.file();
    let source = source.replace(char::is_control, "?");
    let head = format!(
        "# Answers like {source}. Edit it: rules are tried in order, and the first that fits answers.\n\
         # `rehearse check` says what is wrong with it, `rehearse mock` serves it.\n\n"
    );
    let text = head + &mock_yaml(&Value::Object(file));
    Generated { files: vec![("server.mock.yaml".to_owned(), text)], left_out: writer.left_out }
}

struct Writer<'a> {
    learned: &'a Learned,
    /// Patterns for what was read though the server did not list it.
    invented: Vec<Value>,
    left_out: Vec<String>,
}

impl Writer<'_> {
    fn file(&mut self) -> Map<String, Value> {
        let mut file = Map::new();
        let mut server = Map::new();
        server.insert("name".to_owned(), self.learned.name().into());
        server.insert("version".to_owned(), self.learned.version().into());
        server.extend(snake(&self.learned.server, &["title", "description", "websiteUrl"]));
        server.extend(icons(&self.learned.server));
        file.insert("server".to_owned(), server.into());
        if let Some(instructions) = &self.learned.instructions {
            file.insert("instructions".to_owned(), instructions.as_str().into());
        }
        let (tools, resources) = (self.tools(), self.resources());
        let (templates, prompts) = (self.resource_templates(), self.prompts());
        let capabilities = self.capabilities(&tools, &resources, &templates, &prompts);
        if !capabilities.is_empty() {
            file.insert("capabilities".to_owned(), capabilities.into());
        }
        // What the server thought of arguments is in its recorded answers.
        file.insert("validate".to_owned(), "off".into());
        for (key, list) in
            [("tools", tools), ("resources", resources), ("resource_templates", templates), ("prompts", prompts)]
        {
            if !list.is_empty() {
                file.insert(key.to_owned(), list.into());
            }
        }
        file
    }

    /// What does not follow from what is offered; `null` takes away what would follow.
    fn capabilities(
        &self,
        tools: &[Value],
        resources: &[Value],
        templates: &[Value],
        prompts: &[Value],
    ) -> Map<String, Value> {
        let mut all = Map::new();
        if self.learned.capabilities.is_empty() {
            return all;
        }
        let offered = [
            ("tools", !tools.is_empty(), &["listChanged"][..]),
            ("resources", !resources.is_empty() || !templates.is_empty(), &["subscribe", "listChanged"]),
            ("prompts", !prompts.is_empty(), &["listChanged"]),
        ];
        for (key, value) in &self.learned.capabilities {
            // The extension of tasks comes with tasks, which a mock from a recording has none of.
            if key != "tasks" && key != "extensions" && !offered.iter().any(|(name, is, _)| name == key && *is) {
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

    fn tools(&mut self) -> Vec<Value> {
        let mut tools = Vec::new();
        let unlisted =
            self.unlisted(&Method::TOOLS_CALL, "tool", |learned, name| learned.tools.find("name", name).is_some());
        for listed in self.learned.tools.items.iter().chain(&unlisted) {
            let Some(name) = listed.get("name").and_then(Value::as_str) else { continue };
            if !is_tool_name(name) {
                self.left_out.push(format!("the tool {name:?}: a mock cannot have one of that name"));
                continue;
            }
            let Some(listed) = listed.as_object() else { continue };
            let mut tool = snake(listed, &["name", "title", "description"]);
            for (key, schema) in snake(listed, &["inputSchema", "outputSchema"]) {
                let is_object = key != "input_schema" || schema.get("type").is_none_or(|kind| kind == "object");
                if is_object && Schema::compile(&schema).is_ok() {
                    tool.insert(key, schema);
                } else {
                    self.left_out.push(format!("the {key} of the tool {name}, which is no schema for it"));
                }
            }
            let hints = ["title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
            if let Some(annotations) = listed.get("annotations").and_then(Value::as_object) {
                let hints = snake(annotations, &hints);
                if !hints.is_empty() {
                    tool.insert("annotations".to_owned(), hints.into());
                }
            }
            tool.extend(icons(listed));
            tool.extend(meta(listed));
            if let Some(support) = listed.get("execution").and_then(|it| it.get("taskSupport")) {
                match support.as_str() {
                    Some("forbidden" | "optional") => drop(tool.insert("task_support".to_owned(), support.clone())),
                    // Recorded answers come at once; nobody has to wait for a task.
                    _ => self.left_out.push(format!("that the tool {name} is always a task")),
                }
            }
            let learned = self.learned;
            let requests = learned.requests_of(&Method::TOOLS_CALL).filter(|it| it.subject() == Some(name));
            let requests: Vec<_> = requests.map(|request| (request, request.arguments().cloned())).collect();
            let nothing = format!("nothing was recorded for these arguments of {name}");
            let answers = self.answers(&requests, None, ErrorReply::new(code::INVALID_PARAMS, nothing));
            tool.insert("answers".to_owned(), answers);
            tools.push(tool.into());
        }
        tools
    }

    fn resources(&mut self) -> Vec<Value> {
        let mut resources = Vec::new();
        let templates: Vec<_> = self.templates();
        let unlisted = self.unlisted(&Method::RESOURCES_READ, "resource", |learned, uri| {
            learned.resources.find("uri", uri).is_some() || templates.iter().any(|it| it.matches(uri).is_some())
        });
        for listed in self.learned.resources.items.iter().chain(&unlisted) {
            let (Some(uri), Some(listed)) = (listed.get("uri").and_then(Value::as_str), listed.as_object()) else {
                continue;
            };
            if !uri.contains(':') {
                self.left_out.push(format!("the resource {uri:?}, which is no URI"));
                continue;
            }
            let mut resource = snake(listed, &["uri", "name", "title", "description", "mimeType", "size"]);
            resource.extend(annotations(listed));
            resource.extend(icons(listed));
            resource.extend(meta(listed));
            let learned = self.learned;
            let requests = learned.requests_of(&Method::RESOURCES_READ).filter(|it| it.subject() == Some(uri));
            let requests: Vec<_> = requests.map(|request| (request, None)).collect();
            let nothing = ErrorReply::new(code::RESOURCE_NOT_FOUND, format!("nothing was recorded for {uri}"));
            resource.insert("answers".to_owned(), self.answers(&requests, None, nothing));
            resources.push(resource.into());
        }
        resources
    }

    fn templates(&self) -> Vec<UriTemplate> {
        let written = self.learned.resource_templates.items.iter().chain(&self.invented);
        written.filter_map(|it| UriTemplate::read(it.get("uriTemplate")?.as_str()?).ok()).collect()
    }

    fn resource_templates(&mut self) -> Vec<Value> {
        let mut templates = Vec::new();
        let mut taken: BTreeSet<&str> = BTreeSet::new();
        let learned = self.learned;
        let invented = self.invented.clone();
        for listed in learned.resource_templates.items.iter().chain(&invented) {
            let (Some(written), Some(listed)) = (listed.get("uriTemplate").and_then(Value::as_str), listed.as_object())
            else {
                continue;
            };
            let Some(pattern) = UriTemplate::read(written).ok().filter(|it| !it.variables().is_empty()) else {
                self.left_out.push(format!("the resource template {written:?}, which cannot be read backwards"));
                continue;
            };
            let mut template = snake(listed, &["uriTemplate", "name", "title", "description", "mimeType"]);
            template.extend(annotations(listed));
            template.extend(icons(listed));
            template.extend(meta(listed));
            let mut complete = Map::new();
            for variable in pattern.variables() {
                let values = self.completions("ref/resource", "uri", written, variable);
                if !values.is_empty() {
                    complete.insert(variable.clone(), values.into());
                }
            }
            if !complete.is_empty() {
                template.insert("complete".to_owned(), complete.into());
            }
            let mut requests = Vec::new();
            for request in learned.requests_of(&Method::RESOURCES_READ) {
                let Some(uri) = request.subject().filter(|uri| learned.resources.find("uri", uri).is_none()) else {
                    continue;
                };
                if let Some(variables) = pattern.matches(uri).filter(|_| taken.insert(uri)) {
                    requests.push((request, Some(variables)));
                }
            }
            let nothing = ErrorReply::new(code::RESOURCE_NOT_FOUND, "nothing was recorded for {{ uri }}");
            template.insert("answers".to_owned(), self.answers(&requests, None, nothing));
            templates.push(template.into());
        }
        templates
    }

    fn prompts(&mut self) -> Vec<Value> {
        let mut prompts = Vec::new();
        let learned = self.learned;
        let unlisted =
            self.unlisted(&Method::PROMPTS_GET, "prompt", |learned, name| learned.prompts.find("name", name).is_some());
        for listed in learned.prompts.items.iter().chain(&unlisted) {
            let (Some(name), Some(listed)) = (listed.get("name").and_then(Value::as_str), listed.as_object()) else {
                continue;
            };
            let mut prompt = snake(listed, &["name", "title", "description"]);
            let mut arguments = Vec::new();
            for argument in listed.get("arguments").and_then(Value::as_array).into_iter().flatten() {
                let Some(argument) = argument.as_object().filter(|it| it.contains_key("name")) else { continue };
                let mut written = snake(argument, &["name", "title", "description", "required"]);
                let values = argument.get("name").and_then(Value::as_str);
                let values = values.map(|argument| self.completions("ref/prompt", "name", name, argument));
                if let Some(values) = values.filter(|values| !values.is_empty()) {
                    written.insert("complete".to_owned(), values.into());
                }
                arguments.push(Value::Object(written));
            }
            if !arguments.is_empty() {
                prompt.insert("arguments".to_owned(), arguments.into());
            }
            prompt.extend(icons(listed));
            prompt.extend(meta(listed));
            let requests = learned.requests_of(&Method::PROMPTS_GET).filter(|it| it.subject() == Some(name));
            let requests: Vec<_> = requests.map(|request| (request, request.arguments().cloned())).collect();
            let nothing = format!("nothing was recorded for these arguments of {name}");
            let description = listed.get("description").and_then(Value::as_str);
            let answers = self.answers(&requests, description, ErrorReply::new(code::INVALID_PARAMS, nothing));
            prompt.insert("answers".to_owned(), answers);
            prompts.push(prompt.into());
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
                let key = if *method == Method::RESOURCES_READ { "uri" } else { "name" };
                found.push(json!({key: name}));
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
    fn completions(&self, kind: &str, key: &str, of: &str, argument: &str) -> Vec<Value> {
        let mut values: Vec<Value> = Vec::new();
        for request in self.learned.requests_of(&Method::COMPLETE) {
            let (reference, asked) = (&request.params["ref"], &request.params["argument"]);
            if reference["type"] != kind || reference[key] != of || asked["name"] != argument {
                continue;
            }
            for answer in &request.answers {
                let Said::Result(result) = &answer.said else { continue };
                let suggested = result.get("completion").and_then(|it| it.get("values")).and_then(Value::as_array);
                for value in suggested.into_iter().flatten().filter(|value| value.is_string()) {
                    if !values.contains(value) {
                        values.push(value.clone());
                    }
                }
            }
        }
        values
    }

    /// The rules for requests with these arguments.
    fn answers(
        &mut self,
        requests: &[(&Request, Option<Map<String, Value>>)],
        description: Option<&str>,
        otherwise: ErrorReply,
    ) -> Value {
        let mut rules = Vec::new();
        let mut ordered: Vec<_> = requests.iter().collect();
        // A rule wants what it names and allows more, so those that want more come first.
        ordered.sort_by_key(|(_, arguments)| std::cmp::Reverse(arguments.as_ref().map_or(0, Map::len)));
        let keys: BTreeSet<&String> = requests.iter().flat_map(|(_, it)| it.iter().flat_map(Map::keys)).collect();
        let mut names = RuleNames::new(requests.iter().map(|(_, arguments)| arguments.as_ref()));
        let mut has_default = false;
        for (request, arguments) in ordered {
            let when = when(arguments.as_ref(), &keys);
            has_default |= when.is_none();
            let groups = grouped(&request.answers);
            let several = groups.len() > 1;
            let last = groups.len().saturating_sub(1);
            for (at, (answered, times)) in groups.into_iter().enumerate() {
                let mut rule = Map::new();
                let name = names.name(arguments.as_ref(), several.then_some((at, last)));
                rule.insert("name".to_owned(), name.into());
                if let Some(when) = &when {
                    rule.insert("when".to_owned(), when.clone());
                }
                // The last answer is given for ever.
                if at < last {
                    rule.insert("times".to_owned(), times.into());
                }
                rule.extend(answer(answered, &request.method, description, &mut self.left_out));
                rules.push(Value::Object(rule));
            }
        }
        if !has_default {
            let ErrorReply { code, message, .. } = otherwise;
            rules.push(json!({"name": "anything else", "error": {"code": code, "message": message}}));
        }
        rules.into()
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

/// What the arguments must be; `None` where anything will do.
fn when(arguments: Option<&Map<String, Value>>, keys: &BTreeSet<&String>) -> Option<Value> {
    let empty = Map::new();
    let arguments = arguments.unwrap_or(&empty);
    if arguments.is_empty() {
        // Whatever other calls gave must not be there.
        let absent: Map<_, _> = keys.iter().map(|key| ((*key).clone(), json!({"present": false}))).collect();
        return (!absent.is_empty()).then_some(Value::Object(absent));
    }
    let exactly = |value: &Value| match value {
        // Short and clear where nothing in it could be taken for an operator, and nothing could be added.
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => value.clone(),
        value => Matcher::exact(value.clone()).to_value(),
    };
    Some(arguments.iter().map(|(key, value)| (key.clone(), exactly(value))).collect())
}

fn is_tool_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    (1..=128).contains(&name.len()) && name.chars().all(legal)
}

fn annotations(listed: &Map<String, Value>) -> Option<(String, Value)> {
    let annotations = snake(listed.get("annotations")?.as_object()?, &["audience", "priority", "lastModified"]);
    (!annotations.is_empty()).then(|| ("annotations".to_owned(), annotations.into()))
}

fn icons(listed: &Map<String, Value>) -> Option<(String, Value)> {
    let icons = listed.get("icons")?.as_array()?.iter().filter_map(Value::as_object);
    let icons: Vec<Value> = icons
        .map(|icon| snake(icon, &["src", "mimeType", "sizes", "theme"]))
        .filter(|icon| icon.contains_key("src"))
        .map(Value::Object)
        .collect();
    (!icons.is_empty()).then(|| ("icons".to_owned(), icons.into()))
}

fn meta(listed: &Map<String, Value>) -> Option<(String, Value)> {
    let meta = listed.get("_meta")?.as_object().filter(|meta| !meta.is_empty())?;
    Some(("meta".to_owned(), meta.clone().into()))
}
