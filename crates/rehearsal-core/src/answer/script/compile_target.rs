//! Compiles the tools, resources, prompts and methods of a mock file.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::answer_target::{AnswerTarget, CompiledArgument, CompiledTemplate, CompiledTool, Details, TargetKind};
use super::compile::{RuleOwner, rule_name};
use super::conditions::{CompiledConditions, parsed_or_report, when};
use super::content::{CompileContext, ObjectBuilder, annotations, icons, ordered, tool_annotations};
use super::rule::{CompiledRule, CompiledRules, SequencedAnswer};
use super::template::TemplateValue;
use super::uri_template::UriTemplate;
use crate::answer::fault::FaultRules;
use crate::answer::protocol::ListedForm;
use crate::answer::respond::CompiledAnswer;
use crate::matcher::Schema;
use crate::script::mock::{self, AnswerRule, ContentsEntry, FaultRule, MockFile, TaskSupport, Validate};
use crate::script::{Located, ScriptProblem, WithKeyOrder};

/// Compiles the targets of a file.
pub(super) fn compile_targets(file: &MockFile, context: &mut CompileContext<'_>) -> Vec<(TargetKind, AnswerTarget)> {
    let validate = file.validate.unwrap_or_default();
    let mut all = Vec::new();
    all.extend(file.tools.iter().map(|it| (TargetKind::Tool, tool(it, validate, context))));
    all.extend(file.resources.iter().map(|it| (TargetKind::Resource, resource(it, validate, context))));
    let templates = file.resource_templates.iter();
    all.extend(templates.filter_map(|it| Some((TargetKind::ResourceTemplate, template(it, validate, context)?))));
    all.extend(file.prompts.iter().map(|it| (TargetKind::Prompt, prompt(it, validate, context))));
    all.extend(file.requests.iter().map(|it| (TargetKind::Method, method(it, context))));
    all
}

pub(super) fn faults(written: &[FaultRule], context: &mut CompileContext<'_>) -> FaultRules {
    FaultRules::compile(written, &mut context.numbers.faults, context.problems)
}

fn next(number: &mut usize) -> usize {
    *number += 1;
    *number - 1
}

fn listed_form<T>(
    written: &WithKeyOrder<T>,
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

fn rules(written: &[AnswerRule], owner: &RuleOwner<'_>, context: &mut CompileContext<'_>) -> CompiledRules {
    let (mut rules, mut answers) = (Vec::with_capacity(written.len() + 1), Vec::with_capacity(written.len() + 1));
    for (at, rule) in written.iter().enumerate() {
        let when = when(rule.when.as_ref(), context.problems);
        let given = CompiledConditions::compile(rule.given.as_ref(), context.problems);
        let name = rule_name(rule, when.as_ref(), &given, at);
        let (number, start, several) = (next(&mut context.numbers.rules), answers.len(), rule.in_turn.len());
        let mut until = 0_u64;
        for (at, answer) in rule.answers_in_turn().enumerate() {
            let name = match &answer.name {
                _ if several == 0 => Arc::clone(&name),
                Some(own) => own.value.as_str().into(),
                None => format!("{name} ({} of {several})", at + 1).into(),
            };
            until = until.saturating_add(answer.times.as_ref().map_or(1, |times| times.value));
            let answer = CompiledAnswer::compile(answer, owner, context).into();
            answers.push(SequencedAnswer { rule: number, until, name, answer });
        }
        let times = rule.times();
        rules.push(CompiledRule { number, name, when, given, times, answers: start..answers.len() });
    }
    if let Some(fixed) = &owner.otherwise {
        let (number, name): (_, Arc<str>) = (next(&mut context.numbers.rules), "its contents".into());
        let only = answers.len()..answers.len() + 1;
        let answer = CompiledAnswer::only(fixed.clone()).into();
        answers.push(SequencedAnswer { rule: number, until: u64::MAX, name: Arc::clone(&name), answer });
        rules.push(CompiledRule {
            number,
            name,
            when: None,
            given: CompiledConditions::default(),
            times: None,
            answers: only,
        });
    }
    CompiledRules::new(rules, answers)
}

fn insert(object: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value.into());
    }
}

fn tool(written: &WithKeyOrder<mock::ToolEntry>, validate: Validate, context: &mut CompileContext<'_>) -> AnswerTarget {
    let id = written.name.value.clone();
    // A `listed` element may come from another server, so its schemas may be invalid.
    let verbatim_schema = |key: &str| Schema::compile(written.listed.as_ref()?.get(key)?).ok();
    let input = written.input_schema.as_ref().and_then(|schema| parsed_or_report(schema, context.problems));
    let input = input.or_else(|| verbatim_schema("inputSchema"));
    let output = written.output_schema.as_ref().and_then(|schema| parsed_or_report(schema, context.problems));
    let output = output.or_else(|| verbatim_schema("outputSchema"));
    let mut listed = Map::new();
    listed.insert("name".to_owned(), id.as_str().into());
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
    AnswerTarget {
        label: format!("tool {id}").into(),
        id,
        number: next(&mut context.numbers.targets),
        listed: listed_form(written, listed, &written.listed, written.hidden),
        needs: written.needs.as_ref().and_then(|needs| parsed_or_report(needs, context.problems)),
        validate: written.validate.unwrap_or(validate),
        rules: rules(&written.answers, &RuleOwner::new(TargetKind::Tool), context),
        faults: faults(&written.faults, context),
        details: Details::Tool(CompiledTool { input, output, task_support: written.task_support }),
    }
}

fn resource(
    written: &WithKeyOrder<mock::ResourceEntry>,
    validate: Validate,
    context: &mut CompileContext<'_>,
) -> AnswerTarget {
    let id = written.uri.value.clone();
    let mut listed = Map::new();
    listed.insert("uri".to_owned(), id.as_str().into());
    let last = id.trim_end_matches('/').rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or(&id);
    listed.insert("name".to_owned(), written.name.as_deref().unwrap_or(last).into());
    insert(&mut listed, "title", written.title.as_deref());
    insert(&mut listed, "description", written.description.as_deref());
    insert(&mut listed, "mimeType", written.mime_type.as_deref());
    insert(&mut listed, "annotations", written.annotations.as_ref().map(annotations));
    insert(&mut listed, "size", written.size);
    insert(&mut listed, "icons", icons(&written.icons));
    insert(&mut listed, "_meta", written.meta.clone());
    let owner = RuleOwner {
        uri: Some(&id),
        mime_type: written.mime_type.as_deref(),
        otherwise: fixed_contents(written, context),
        ..RuleOwner::new(TargetKind::Resource)
    };
    AnswerTarget {
        label: format!("resource {id}").into(),
        number: next(&mut context.numbers.targets),
        listed: listed_form(written, listed, &written.listed, written.hidden),
        needs: None,
        validate,
        rules: rules(&written.answers, &owner, context),
        faults: faults(&written.faults, context),
        details: Details::Resource,
        id,
    }
}

/// The fixed contents of a resource, if it has any.
fn fixed_contents(
    written: &WithKeyOrder<mock::ResourceEntry>,
    context: &mut CompileContext<'_>,
) -> Option<TemplateValue> {
    let at = written.uri.at;
    let mime_type = written.mime_type.clone();
    let contents = match (&written.text, &written.blob, &written.file) {
        (None, None, None) => return None,
        (None, None, Some(file)) => {
            let bytes = (context.read_file)(&file.value).unwrap_or_else(|why| {
                context.problems.push(ScriptProblem::new(file.at, format!("cannot read {}: {why}", file.value)));
                Vec::new()
            });
            let mut fields = ObjectBuilder::new();
            fields.fixed("uri", written.uri.value.as_str());
            fields.optional("mimeType", mime_type);
            // The contents of a file are never a template.
            match String::from_utf8(bytes) {
                Ok(text) => fields.fixed("text", text),
                Err(_) => fields.fixed("blob", context.file(file)),
            }
            fields.finish()
        }
        (text, blob, _) => {
            let contents = ContentsEntry { uri: None, mime_type, text: text.clone(), blob: blob.clone(), meta: None };
            context.contents(&contents, at, Some(&written.uri.value))
        }
    };
    Some(contents_of(contents))
}

/// The result of `resources/read` with these contents.
fn contents_of(contents: TemplateValue) -> TemplateValue {
    TemplateValue::fields(vec![("contents".to_owned(), TemplateValue::list(vec![contents]))])
}

fn template(
    written: &WithKeyOrder<mock::ResourceTemplateEntry>,
    validate: Validate,
    context: &mut CompileContext<'_>,
) -> Option<AnswerTarget> {
    let (id, at) = (written.uri_template.value.clone(), written.uri_template.at);
    let pattern = match UriTemplate::read(&id) {
        Ok(pattern) => pattern,
        // A `listed` element may come from another server, so its URI template may be invalid.
        Err(_) if written.listed.is_some() => UriTemplate::nothing(),
        Err(why) => {
            context.problems.push(ScriptProblem::new(at, why));
            return None;
        }
    };
    let mut listed = Map::new();
    listed.insert("uriTemplate".to_owned(), id.as_str().into());
    listed.insert("name".to_owned(), written.name.as_deref().unwrap_or(&id).into());
    insert(&mut listed, "title", written.title.as_deref());
    insert(&mut listed, "description", written.description.as_deref());
    insert(&mut listed, "mimeType", written.mime_type.as_deref());
    insert(&mut listed, "annotations", written.annotations.as_ref().map(annotations));
    insert(&mut listed, "icons", icons(&written.icons));
    insert(&mut listed, "_meta", written.meta.clone());
    let fixed = (written.text.is_some() || written.blob.is_some()).then(|| {
        let (mime_type, text, blob) = (written.mime_type.clone(), written.text.clone(), written.blob.clone());
        contents_of(context.contents(&ContentsEntry { uri: None, mime_type, text, blob, meta: None }, at, None))
    });
    let mime_type = written.mime_type.as_deref();
    let owner = RuleOwner { mime_type, otherwise: fixed, ..RuleOwner::new(TargetKind::ResourceTemplate) };
    let complete = written.complete.iter().map(|(name, values)| (name.to_string(), values.clone())).collect();
    Some(AnswerTarget {
        label: format!("resource template {id}").into(),
        id,
        number: next(&mut context.numbers.targets),
        listed: listed_form(written, listed, &written.listed, written.hidden),
        needs: None,
        validate,
        rules: rules(&written.answers, &owner, context),
        faults: FaultRules::default(),
        details: Details::ResourceTemplate(CompiledTemplate { pattern, complete }),
    })
}

fn prompt(
    written: &WithKeyOrder<mock::PromptEntry>,
    validate: Validate,
    context: &mut CompileContext<'_>,
) -> AnswerTarget {
    let id = written.name.value.clone();
    let mut listed = Map::new();
    listed.insert("name".to_owned(), id.as_str().into());
    insert(&mut listed, "title", written.title.as_deref());
    insert(&mut listed, "description", written.description.as_deref());
    if !written.arguments.is_empty() {
        listed.insert("arguments".to_owned(), written.arguments.iter().map(listed_argument).collect());
    }
    insert(&mut listed, "icons", icons(&written.icons));
    insert(&mut listed, "_meta", written.meta.clone());
    let description = written.description.as_deref();
    let fixed = written.messages.as_ref().map(|messages| {
        let mut fields = ObjectBuilder::new();
        fields.optional("description", description);
        let messages = context.messages(messages);
        fields.template("messages", messages);
        fields.finish()
    });
    let owner = RuleOwner { description, otherwise: fixed, ..RuleOwner::new(TargetKind::Prompt) };
    let arguments = written.arguments.iter().map(|argument| CompiledArgument {
        name: argument.name.value.clone(),
        required: argument.required.unwrap_or(false),
        complete: argument.complete.clone(),
    });
    AnswerTarget {
        label: format!("prompt {id}").into(),
        id,
        number: next(&mut context.numbers.targets),
        listed: listed_form(written, listed, &written.listed, written.hidden),
        needs: None,
        validate,
        rules: rules(&written.answers, &owner, context),
        faults: faults(&written.faults, context),
        details: Details::Prompt(arguments.collect()),
    }
}

fn listed_argument(argument: &WithKeyOrder<mock::ArgumentEntry>) -> Value {
    let mut object = Map::new();
    object.insert("name".to_owned(), argument.name.value.as_str().into());
    insert(&mut object, "title", argument.title.as_deref());
    insert(&mut object, "description", argument.description.as_deref());
    insert(&mut object, "required", argument.required);
    ordered(argument, object)
}

fn method(written: &mock::RequestEntry, context: &mut CompileContext<'_>) -> AnswerTarget {
    let id = written.method.value.clone();
    AnswerTarget {
        label: id.as_str().into(),
        id,
        number: next(&mut context.numbers.targets),
        listed: ListedForm::Hidden(Value::Null),
        needs: None,
        validate: Validate::Off,
        rules: rules(&written.answers, &RuleOwner::new(TargetKind::Method), context),
        faults: FaultRules::default(),
        details: Details::Method,
    }
}
