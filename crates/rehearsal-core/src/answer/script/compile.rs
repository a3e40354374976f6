//! Compiles the answers of a mock file to steps and a reply.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answer_target::TargetKind;
use super::conditions::{CompiledConditions, when};
use super::content::{CompileContext, ObjectBuilder};
use super::template::TemplateValue;
use crate::answer::answer::WrittenFor;
use crate::answer::respond::{
    AnswerBody, CompiledAnswer, CompiledChange, CompiledStep, ConditionalAnswer, InputRequestTemplate, OnDecline,
    TaskOptions,
};
use crate::answer::subscription::ChangeNotice;
use crate::matcher::Matcher;
use crate::script::mock::{AnswerRule, Step as WrittenStep};
use crate::script::{Located, Span, mock};

/// The tool, resource, prompt or method that a rule belongs to.
#[derive(Debug)]
pub(in crate::answer) struct RuleOwner<'a> {
    pub(super) kind: TargetKind,
    /// The URI of a resource that has one.
    pub(in crate::answer) uri: Option<&'a str>,
    /// The media type of a resource.
    pub(in crate::answer) mime_type: Option<&'a str>,
    /// The description of a prompt.
    pub(in crate::answer) description: Option<&'a str>,
    /// The result of a rule without a reply of its own.
    pub(in crate::answer) otherwise: Option<TemplateValue>,
}

impl RuleOwner<'_> {
    /// An owner without further properties.
    pub(super) fn new(kind: TargetKind) -> Self {
        RuleOwner { kind, uri: None, mime_type: None, description: None, otherwise: None }
    }
}

impl CompiledAnswer {
    /// Compiles one answer.
    pub(in crate::answer) fn compile(
        rule: &AnswerRule,
        owner: &RuleOwner<'_>,
        context: &mut CompileContext<'_>,
    ) -> CompiledAnswer {
        let steps = rule.steps.iter().map(|step| compile_step(step, context)).collect();
        let choose = rule
            .choose
            .iter()
            .enumerate()
            .map(|(index, choice)| compile_choice(index, choice, owner, context))
            .collect();
        let body = compile_body(rule, owner, context);
        let task = rule.task.as_ref().map(|task| TaskOptions {
            after: task.after,
            ttl_ms: task.ttl_ms,
            poll_interval_ms: task.poll_interval_ms,
            status_message: None,
            required: task.required.as_ref().is_some_and(|required| required.value),
        });
        let status_message = rule.task.as_ref().and_then(|task| task.status_message.as_ref());
        let status_message = status_message.map(|message| context.text_template(message.at, message));
        CompiledAnswer {
            delay: rule.delay,
            task,
            status_message,
            steps,
            request_state: rule.request_state.as_ref().is_none_or(|it| it.value),
            choose,
            body,
            after: Vec::new(),
            fault: rule.fault.as_ref().map(|it| it.value.clone()),
        }
    }
}

fn compile_choice(
    index: usize,
    written: &AnswerRule,
    owner: &RuleOwner<'_>,
    context: &mut CompileContext<'_>,
) -> ConditionalAnswer {
    let when = when(written.when.as_ref(), context.problems);
    let given = CompiledConditions::compile(written.given.as_ref(), context.problems);
    let name = rule_name(written, when.as_ref(), &given, index);
    ConditionalAnswer { name, when, given, answer: CompiledAnswer::compile(written, owner, context) }
}

/// The name of a rule in reports: its own, or else its conditions.
pub(in crate::answer) fn rule_name(
    written: &AnswerRule,
    when: Option<&Matcher>,
    given: &CompiledConditions,
    index: usize,
) -> Arc<str> {
    if let Some(name) = &written.name {
        return name.value.as_str().into();
    }
    let mut conditions: Vec<String> = when.iter().map(ToString::to_string).collect();
    if !given.is_empty() {
        conditions.push(given.describe());
    }
    if conditions.is_empty() { format!("answer {}", index + 1).into() } else { conditions.join(", ").into() }
}

fn compile_body(rule: &AnswerRule, owner: &RuleOwner<'_>, context: &mut CompileContext<'_>) -> Option<AnswerBody> {
    if let Some(error) = &rule.error {
        let message = context.text_template(error.message.at, &error.message);
        let data = error.data.as_ref().map(|data| context.value(data.at, data));
        return Some(AnswerBody::Error { code: error.code, message, data });
    }
    if let Some(result) = &rule.result {
        return Some(AnswerBody::result(context.object(result.at, result), WrittenFor::Verbatim));
    }
    let mut fields = ObjectBuilder::new();
    let mut has_body = false;
    match owner.kind {
        TargetKind::Tool => {
            if let Some(content) = &rule.content {
                has_body = true;
                let blocks = context.blocks(content);
                fields.template("content", blocks);
            } else if let Some(text) = &rule.text {
                has_body = true;
                let text = context.text_template(text.at, text);
                fields.template("content", TemplateValue::list(vec![text_block(text)]));
            }
            if let Some(structured) = &rule.structured_content {
                has_body = true;
                let structured = context.value(structured.at, structured);
                fields.template("structuredContent", structured);
            }
            if let Some(is_error) = rule.is_error {
                has_body = true;
                fields.fixed("isError", is_error);
            }
        }
        TargetKind::Prompt => {
            fields.optional("description", owner.description);
            if let Some(messages) = &rule.messages {
                has_body = true;
                let messages = context.messages(messages);
                fields.template("messages", messages);
            } else if let Some(text) = &rule.text {
                has_body = true;
                let text = context.text_template(text.at, text);
                fields.template("messages", TemplateValue::list(vec![user_message(text)]));
            }
        }
        TargetKind::Resource | TargetKind::ResourceTemplate => {
            if let Some(contents) = &rule.contents {
                has_body = true;
                let at = contents.at;
                let all = contents.iter().map(|contents| {
                    let mut contents = contents.clone();
                    contents.mime_type = contents.mime_type.or_else(|| owner.mime_type.map(str::to_owned));
                    context.contents(&contents, at, owner.uri)
                });
                let all = all.collect();
                fields.template("contents", TemplateValue::list(all));
            } else if let Some(text) = &rule.text {
                has_body = true;
                let (at, text) = (text.at, text.clone());
                let mime_type = owner.mime_type.map(str::to_owned);
                let contents = mock::ContentsEntry { uri: None, mime_type, text: Some(text), blob: None, meta: None };
                let contents = context.contents(&contents, at, owner.uri);
                fields.template("contents", TemplateValue::list(vec![contents]));
            }
        }
        TargetKind::Method => {}
    }
    if let Some(meta) = &rule.meta {
        let at = rule.name.as_ref().map_or(Span::START, |name| name.at);
        let meta = context.object(at, meta);
        fields.template("_meta", meta);
    }
    if has_body {
        return Some(AnswerBody::result(fields.finish(), WrittenFor::Newest));
    }
    if !rule.choose.is_empty() {
        return None;
    }
    let empty = match owner.kind {
        TargetKind::Tool => json!({"content": []}),
        TargetKind::Prompt => json!({"messages": []}),
        TargetKind::Resource | TargetKind::ResourceTemplate => json!({"contents": []}),
        TargetKind::Method => json!({}),
    };
    Some(AnswerBody::result(owner.otherwise.clone().unwrap_or(TemplateValue::Fixed(empty)), WrittenFor::Newest))
}

fn text_block(text: TemplateValue) -> TemplateValue {
    TemplateValue::fields(vec![("type".to_owned(), TemplateValue::Fixed("text".into())), ("text".to_owned(), text)])
}

fn user_message(text: TemplateValue) -> TemplateValue {
    TemplateValue::fields(vec![
        ("role".to_owned(), TemplateValue::Fixed("user".into())),
        ("content".to_owned(), text_block(text)),
    ])
}

fn compile_step(step: &Located<WrittenStep>, context: &mut CompileContext<'_>) -> CompiledStep {
    let at = step.at;
    let values = |fields: &serde_json::Map<String, Value>, context: &mut CompileContext<'_>| {
        fields.iter().map(|(key, value)| (key.clone(), context.value(at, value))).collect()
    };
    match &step.value {
        WrittenStep::Wait(delay) => CompiledStep::Wait(*delay),
        WrittenStep::Progress(it) => CompiledStep::Progress {
            progress: it.progress,
            total: it.total,
            message: it.message.as_ref().map(|message| context.text_template(message.at, message)),
        },
        WrittenStep::Log { level, logger, data } => {
            CompiledStep::Log { level: *level, logger: logger.clone(), data: context.value(data.at, data) }
        }
        WrittenStep::Notify { method, params } => CompiledStep::Notify {
            method: method.as_str().into(),
            params: params.as_ref().map(|params| context.object(at, params)),
        },
        WrittenStep::Changed(changed) => CompiledStep::Change(match changed {
            mock::ChangedEntry::Tools => CompiledChange::Fixed(ChangeNotice::Tools),
            mock::ChangedEntry::Prompts => CompiledChange::Fixed(ChangeNotice::Prompts),
            mock::ChangedEntry::Resources => CompiledChange::Fixed(ChangeNotice::Resources),
            mock::ChangedEntry::Resource(uri) => CompiledChange::Resource(context.text_template(at, uri)),
        }),
        WrittenStep::Ask(requests) => {
            CompiledStep::Ask(compile_input_requests(requests, at, context), OnDecline::Fails)
        }
        WrittenStep::TryAsk(requests) => {
            CompiledStep::Ask(compile_input_requests(requests, at, context), OnDecline::IsNull)
        }
        WrittenStep::EmptyRound(_) => CompiledStep::EmptyRound,
        WrittenStep::Set(fields) => CompiledStep::Set(values(fields, context)),
        WrittenStep::Append(fields) => CompiledStep::Append(values(fields, context)),
        WrittenStep::Delete(keys) => CompiledStep::Delete(keys.iter().map(ToString::to_string).collect()),
        WrittenStep::CloseStream { retry } => CompiledStep::CloseStream { retry: *retry },
    }
}

fn compile_input_requests(
    requests: &[(String, mock::InputRequestEntry)],
    at: Span,
    context: &mut CompileContext<'_>,
) -> Vec<InputRequestTemplate> {
    requests.iter().map(|(name, ask)| InputRequestTemplate::compile(name, ask, at, context)).collect()
}
