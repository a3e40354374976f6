//! What a mock offers: tools, resources and prompts, ready to be listed and asked for.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::compile::{Kind, Owner, rule_name};
use super::content::{Fields, Workshop, annotations, icons, ordered, tool_annotations};
use super::given::{CompiledConditions, meant, when};
use super::rule::{InTurn, Rule, Rules};
use super::template::TemplateValue;
use super::uri_template::UriTemplate;
use crate::answer::fault::Faults;
use crate::answer::protocol::{ListItem, ListedForm};
use crate::answer::request_context::IncomingRequest;
use crate::answer::respond::CompiledAnswer;
use crate::matcher::{Matcher, Schema};
use crate::script::mock::{self, AnswerRule, Contents, FaultRule, TaskSupport, Validate};
use crate::script::{InOrder, Located, Problem, Span};

/// A tool.
#[derive(Debug)]
pub(in crate::answer) struct Tool {
    pub(in crate::answer) name: String,
    /// What to call it in reports.
    pub(in crate::answer) label: Arc<str>,
    /// Its number among everything that can be asked for.
    pub(in crate::answer) number: usize,
    pub(in crate::answer) listed: ListedForm,
    /// Any object will do where there is none.
    pub(in crate::answer) input: Option<Schema>,
    pub(in crate::answer) output: Option<Schema>,
    pub(in crate::answer) validate: Validate,
    pub(in crate::answer) needs: Option<Matcher>,
    pub(in crate::answer) task_support: Option<TaskSupport>,
    pub(in crate::answer) rules: Rules,
    pub(in crate::answer) faults: Faults,
}

/// A resource.
#[derive(Debug)]
pub(in crate::answer) struct Resource {
    pub(in crate::answer) uri: String,
    pub(in crate::answer) label: Arc<str>,
    pub(in crate::answer) number: usize,
    pub(in crate::answer) listed: ListedForm,
    pub(in crate::answer) validate: Validate,
    pub(in crate::answer) rules: Rules,
    pub(in crate::answer) faults: Faults,
}

/// Resources by pattern.
#[derive(Debug)]
pub(in crate::answer) struct ResourceTemplate {
    pub(in crate::answer) written: String,
    pub(in crate::answer) label: Arc<str>,
    pub(in crate::answer) number: usize,
    pub(in crate::answer) listed: ListedForm,
    pub(in crate::answer) pattern: UriTemplate,
    pub(in crate::answer) complete: Vec<(String, Vec<String>)>,
    pub(in crate::answer) validate: Validate,
    pub(in crate::answer) rules: Rules,
}

/// A prompt.
#[derive(Debug)]
pub(in crate::answer) struct Prompt {
    pub(in crate::answer) name: String,
    pub(in crate::answer) label: Arc<str>,
    pub(in crate::answer) number: usize,
    pub(in crate::answer) listed: ListedForm,
    pub(in crate::answer) arguments: Vec<Argument>,
    /// What is done where an argument is missing, or an answer of the client's makes no sense.
    pub(in crate::answer) validate: Validate,
    pub(in crate::answer) rules: Rules,
    pub(in crate::answer) faults: Faults,
}

/// What a prompt takes.
#[derive(Debug)]
pub(in crate::answer) struct Argument {
    pub(in crate::answer) name: String,
    pub(in crate::answer) required: bool,
    pub(in crate::answer) complete: Vec<String>,
}

fn listed_form<T>(
    written: &InOrder<T>,
    listed: Map<String, Value>,
    verbatim: &Option<Located<Map<String, Value>>>,
    hidden: bool,
) -> ListedForm {
    match verbatim {
        _ if hidden => ListedForm::Hidden(ordered(written, listed)),
        Some(verbatim) => ListedForm::Verbatim(verbatim.value.clone().into()),
        None => ListedForm::Newest(ordered(written, listed)),
    }
}

/// Numbers for what can be asked for and for rules.
#[derive(Debug, Default)]
pub(in crate::answer) struct Numbers {
    pub(in crate::answer) targets: usize,
    pub(in crate::answer) rules: usize,
    pub(in crate::answer) faults: usize,
}

impl Numbers {
    pub(in crate::answer) fn faults(&mut self, written: &[FaultRule], shop: &mut Workshop<'_>) -> Faults {
        Faults::compile(written, &mut self.faults, shop.problems)
    }

    pub(in crate::answer) fn target(&mut self) -> usize {
        self.targets += 1;
        self.targets - 1
    }

    fn rule(&mut self) -> usize {
        self.rules += 1;
        self.rules - 1
    }
}

pub(in crate::answer) fn rules(
    written: &[AnswerRule],
    owner: &Owner<'_>,
    fixed: Option<TemplateValue>,
    numbers: &mut Numbers,
    shop: &mut Workshop<'_>,
) -> Rules {
    let (mut rules, mut turns) = (Vec::with_capacity(written.len() + 1), Vec::with_capacity(written.len() + 1));
    for (at, rule) in written.iter().enumerate() {
        let when = when(rule.when.as_ref(), shop.problems);
        let given = CompiledConditions::compile(rule.given.as_ref(), shop.problems);
        let name = rule_name(rule, when.as_ref(), &given, at);
        let (number, start, several) = (numbers.rule(), turns.len(), rule.in_turn.len());
        let mut until = 0_u64;
        for (at, answer) in rule.answers_in_turn().enumerate() {
            let name = match &answer.name {
                _ if several == 0 => Arc::clone(&name),
                Some(own) => own.value.as_str().into(),
                None => format!("{name} ({} of {several})", at + 1).into(),
            };
            until = until.saturating_add(answer.times.as_ref().map_or(1, |times| times.value));
            turns.push(InTurn {
                rule: number,
                until,
                name,
                answer: CompiledAnswer::compile(answer, owner, shop).into(),
            });
        }
        let times = rule.times();
        rules.push(Rule { number, name, when, given, times, turns: start..turns.len() });
    }
    if let Some(draft) = fixed {
        let (number, name): (_, Arc<str>) = (numbers.rule(), "its contents".into());
        let only = turns.len()..turns.len() + 1;
        turns.push(InTurn {
            rule: number,
            until: u64::MAX,
            name: Arc::clone(&name),
            answer: CompiledAnswer::only(draft).into(),
        });
        rules.push(Rule { number, name, when: None, given: CompiledConditions::default(), times: None, turns: only });
    }
    Rules::new(rules, turns)
}

fn insert(object: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value.into());
    }
}

impl Tool {
    pub(in crate::answer) fn compile(
        written: &InOrder<mock::Tool>,
        validate: Validate,
        numbers: &mut Numbers,
        shop: &mut Workshop<'_>,
    ) -> Tool {
        let name = written.name.value.clone();
        // What is listed exactly need not be usable: nobody who wrote it here has made its schemas.
        let exactly = |key: &str| Schema::compile(written.listed.as_ref()?.get(key)?).ok();
        let input = written.input_schema.as_ref().and_then(|schema| meant(schema, shop.problems));
        let input = input.or_else(|| exactly("inputSchema"));
        let output = written.output_schema.as_ref().and_then(|schema| meant(schema, shop.problems));
        let output = output.or_else(|| exactly("outputSchema"));
        let mut listed = Map::new();
        listed.insert("name".to_owned(), name.as_str().into());
        insert(&mut listed, "title", written.title.as_deref());
        insert(&mut listed, "description", written.description.as_deref());
        let any_object = || json!({"type": "object"});
        listed.insert("inputSchema".to_owned(), input.as_ref().map_or_else(any_object, |it| it.as_value().clone()));
        insert(&mut listed, "outputSchema", output.as_ref().map(|schema| schema.as_value().clone()));
        insert(&mut listed, "annotations", written.annotations.as_ref().map(tool_annotations));
        insert(&mut listed, "icons", icons(&written.icons));
        insert(&mut listed, "_meta", written.meta.clone());
        let support = written.task_support.map(|support| match support {
            TaskSupport::Forbidden => "forbidden",
            TaskSupport::Optional => "optional",
            TaskSupport::Required => "required",
        });
        insert(&mut listed, "execution", support.map(|support| json!({"taskSupport": support})));
        let owner = Owner { kind: Kind::Tool, uri: None, mime_type: None, description: None, otherwise: None };
        let rules = rules(&written.answers, &owner, None, numbers, shop);
        Tool {
            label: format!("tool {name}").into(),
            name,
            number: numbers.target(),
            listed: listed_form(written, listed, &written.listed, written.hidden),
            input,
            output,
            validate: written.validate.unwrap_or(validate),
            needs: written.needs.as_ref().and_then(|needs| meant(needs, shop.problems)),
            task_support: written.task_support,
            rules,
            faults: numbers.faults(&written.faults, shop),
        }
    }

    /// Its element in `tools/list`.
    pub(super) fn item(&self) -> ListItem {
        ListItem { id: self.name.clone(), form: self.listed.clone(), needs: self.needs.clone() }
    }

    /// Whether a client can see and call it.
    pub(super) fn is_offered(&self, request: &IncomingRequest) -> bool {
        self.needs.as_ref().is_none_or(|needs| needs.matches(&request.context.capabilities))
    }

    /// Whether some answer of it comes from a task.
    pub(in crate::answer) fn has_tasks(&self) -> bool {
        let supports = matches!(self.task_support, Some(TaskSupport::Optional | TaskSupport::Required));
        supports || self.rules.turns().any(|turn| turn.answer.any(&|answer| answer.task.is_some()))
    }
}

impl Resource {
    pub(in crate::answer) fn compile(
        written: &InOrder<mock::Resource>,
        validate: Validate,
        numbers: &mut Numbers,
        shop: &mut Workshop<'_>,
    ) -> Resource {
        let uri = written.uri.value.clone();
        let mut listed = Map::new();
        listed.insert("uri".to_owned(), uri.as_str().into());
        let last = uri.trim_end_matches('/').rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or(&uri);
        listed.insert("name".to_owned(), written.name.as_deref().unwrap_or(last).into());
        insert(&mut listed, "title", written.title.as_deref());
        insert(&mut listed, "description", written.description.as_deref());
        insert(&mut listed, "mimeType", written.mime_type.as_deref());
        insert(&mut listed, "annotations", written.annotations.as_ref().map(annotations));
        insert(&mut listed, "size", written.size);
        insert(&mut listed, "icons", icons(&written.icons));
        insert(&mut listed, "_meta", written.meta.clone());
        let fixed = fixed_contents(written, shop);
        let owner = Owner {
            kind: Kind::Resource,
            uri: Some(&uri),
            mime_type: written.mime_type.as_deref(),
            description: None,
            otherwise: fixed.clone(),
        };
        let rules = rules(&written.answers, &owner, fixed, numbers, shop);
        let label = format!("resource {uri}").into();
        let faults = numbers.faults(&written.faults, shop);
        let listed = listed_form(written, listed, &written.listed, written.hidden);
        Resource { label, number: numbers.target(), listed, validate, rules, faults, uri }
    }

    /// Its element in the list.
    pub(super) fn item(&self) -> ListItem {
        ListItem { id: self.uri.clone(), form: self.listed.clone(), needs: None }
    }
}

/// The contents of a resource that has some of its own.
fn fixed_contents(written: &InOrder<mock::Resource>, shop: &mut Workshop<'_>) -> Option<TemplateValue> {
    let at = written.uri.at;
    let mime_type = written.mime_type.clone();
    let contents = match (&written.text, &written.blob, &written.file) {
        (None, None, None) => return None,
        (None, None, Some(file)) => {
            let bytes = (shop.read_file)(&file.value).unwrap_or_else(|why| {
                shop.problems.push(Problem::new(file.at, format!("cannot read {}: {why}", file.value)));
                Vec::new()
            });
            let mut fields = Fields::new();
            fields.fixed("uri", written.uri.value.as_str());
            fields.optional("mimeType", mime_type);
            // A file is what it is, and never a template.
            match String::from_utf8(bytes) {
                Ok(text) => fields.fixed("text", text),
                Err(_) => fields.fixed("blob", shop.file(file)),
            }
            fields.finish()
        }
        (text, blob, _) => {
            let contents = Contents { uri: None, mime_type, text: text.clone(), blob: blob.clone(), meta: None };
            shop.contents(&contents, at, Some(&written.uri.value))
        }
    };
    Some(TemplateValue::fields(vec![("contents".to_owned(), TemplateValue::list(vec![contents]))]))
}

impl ResourceTemplate {
    pub(in crate::answer) fn compile(
        written: &InOrder<mock::ResourceTemplate>,
        validate: Validate,
        numbers: &mut Numbers,
        shop: &mut Workshop<'_>,
    ) -> Option<ResourceTemplate> {
        let at = written.uri_template.at;
        let pattern = match UriTemplate::read(&written.uri_template) {
            Ok(pattern) => pattern,
            // What is listed exactly need not be usable.
            Err(_) if written.listed.is_some() => UriTemplate::nothing(),
            Err(why) => {
                shop.problems.push(Problem::new(at, why));
                return None;
            }
        };
        let mut listed = Map::new();
        listed.insert("uriTemplate".to_owned(), written.uri_template.value.as_str().into());
        listed.insert("name".to_owned(), written.name.as_deref().unwrap_or(&written.uri_template.value).into());
        insert(&mut listed, "title", written.title.as_deref());
        insert(&mut listed, "description", written.description.as_deref());
        insert(&mut listed, "mimeType", written.mime_type.as_deref());
        insert(&mut listed, "annotations", written.annotations.as_ref().map(annotations));
        insert(&mut listed, "icons", icons(&written.icons));
        insert(&mut listed, "_meta", written.meta.clone());
        let fixed = (written.text.is_some() || written.blob.is_some()).then(|| {
            let (mime_type, text, blob) = (written.mime_type.clone(), written.text.clone(), written.blob.clone());
            let contents = shop.contents(&Contents { uri: None, mime_type, text, blob, meta: None }, at, None);
            TemplateValue::fields(vec![("contents".to_owned(), TemplateValue::list(vec![contents]))])
        });
        let owner = Owner {
            kind: Kind::Resource,
            uri: None,
            mime_type: written.mime_type.as_deref(),
            description: None,
            otherwise: fixed.clone(),
        };
        let rules = rules(&written.answers, &owner, fixed, numbers, shop);
        Some(ResourceTemplate {
            written: written.uri_template.value.clone(),
            label: format!("resource template {}", written.uri_template.value).into(),
            number: numbers.target(),
            listed: listed_form(written, listed, &written.listed, written.hidden),
            pattern,
            complete: written.complete.iter().map(|(name, values)| (name.to_string(), values.clone())).collect(),
            validate,
            rules,
        })
    }

    /// Its element in the list.
    pub(super) fn item(&self) -> ListItem {
        ListItem { id: self.written.clone(), form: self.listed.clone(), needs: None }
    }
}

impl Prompt {
    pub(in crate::answer) fn compile(
        written: &InOrder<mock::Prompt>,
        validate: Validate,
        numbers: &mut Numbers,
        shop: &mut Workshop<'_>,
    ) -> Prompt {
        let mut listed = Map::new();
        listed.insert("name".to_owned(), written.name.value.as_str().into());
        insert(&mut listed, "title", written.title.as_deref());
        insert(&mut listed, "description", written.description.as_deref());
        if !written.arguments.is_empty() {
            listed.insert("arguments".to_owned(), written.arguments.iter().map(listed_argument).collect());
        }
        insert(&mut listed, "icons", icons(&written.icons));
        insert(&mut listed, "_meta", written.meta.clone());
        let description = written.description.as_deref();
        let fixed = written.messages.as_ref().map(|messages| {
            let mut fields = Fields::new();
            fields.optional("description", description);
            let messages = shop.messages(messages);
            fields.draft("messages", messages);
            fields.finish()
        });
        let owner = Owner { kind: Kind::Prompt, uri: None, mime_type: None, description, otherwise: fixed.clone() };
        let rules = rules(&written.answers, &owner, fixed, numbers, shop);
        let arguments = written.arguments.iter().map(|argument| Argument {
            name: argument.name.value.clone(),
            required: argument.required.unwrap_or(false),
            complete: argument.complete.clone(),
        });
        Prompt {
            name: written.name.value.clone(),
            label: format!("prompt {}", written.name.value).into(),
            number: numbers.target(),
            validate,
            listed: listed_form(written, listed, &written.listed, written.hidden),
            arguments: arguments.collect(),
            rules,
            faults: numbers.faults(&written.faults, shop),
        }
    }

    /// Its element in the list.
    pub(super) fn item(&self) -> ListItem {
        ListItem { id: self.name.clone(), form: self.listed.clone(), needs: None }
    }
}

fn listed_argument(argument: &InOrder<mock::Argument>) -> Value {
    let mut object = Map::new();
    object.insert("name".to_owned(), argument.name.value.as_str().into());
    insert(&mut object, "title", argument.title.as_deref());
    insert(&mut object, "description", argument.description.as_deref());
    insert(&mut object, "required", argument.required);
    ordered(argument, object)
}

/// Names that must be unique; a second one is a problem.
pub(in crate::answer) fn unique<'a>(
    names: impl Iterator<Item = (&'a str, Span)>,
    what: &str,
    known: &mut std::collections::HashMap<String, String>,
    file: &str,
    problems: &mut Vec<Problem>,
) {
    for (name, at) in names {
        if let Some(other) = known.insert(name.to_owned(), file.to_owned()) {
            let place = if other == file { String::new() } else { format!(" (the other one is in {other})") };
            problems.push(Problem::new(at, format!("a second {what} `{name}`{place}")));
        }
    }
}

/// The rules of a method.
#[derive(Debug)]
pub(in crate::answer) struct Request {
    pub(in crate::answer) method: String,
    pub(in crate::answer) label: Arc<str>,
    pub(in crate::answer) number: usize,
    pub(in crate::answer) rules: Rules,
}

impl Request {
    pub(in crate::answer) fn compile(
        written: &mock::Request,
        numbers: &mut Numbers,
        shop: &mut Workshop<'_>,
    ) -> Request {
        let owner = Owner { kind: Kind::Request, uri: None, mime_type: None, description: None, otherwise: None };
        let rules = rules(&written.answers, &owner, None, numbers, shop);
        let method = written.method.value.clone();
        Request { label: method.as_str().into(), method, number: numbers.target(), rules }
    }
}
