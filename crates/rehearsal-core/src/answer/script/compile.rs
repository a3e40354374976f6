//! Answers of a mock file, compiled: from what an author wrote to steps and a reply.

use std::sync::Arc;

use serde_json::{Value, json};

use super::content::{CompileContext, ObjectBuilder};
use super::given::{CompiledConditions, when};
use super::target::TargetKind;
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

/// What is known about whatever a rule belongs to.
#[derive(Debug)]
pub(in crate::answer) struct RuleOwner<'a> {
    pub(super) kind: TargetKind,
    /// The URI of a resource that has one.
    pub(in crate::answer) uri: Option<&'a str>,
    /// The kind of contents of a resource.
    pub(in crate::answer) mime_type: Option<&'a str>,
    /// What is said about a prompt.
    pub(in crate::answer) description: Option<&'a str>,
    /// The result of a rule that says nothing about it.
    pub(in crate::answer) otherwise: Option<TemplateValue>,
}

impl RuleOwner<'_> {
    /// An owner of which nothing else is known.
    pub(super) fn new(kind: TargetKind) -> Self {
        RuleOwner { kind, uri: None, mime_type: None, description: None, otherwise: None }
    }
}

impl CompiledAnswer {
    /// Compiles what a rule says.
    pub(in crate::answer) fn compile(
        rule: &AnswerRule,
        owner: &RuleOwner<'_>,
        shop: &mut CompileContext<'_>,
    ) -> CompiledAnswer {
        let steps = rule.steps.iter().map(|step| compile_step(step, shop)).collect();
        let choose =
            rule.choose.iter().enumerate().map(|(at, choice)| compile_choice(at, choice, owner, shop)).collect();
        let body = compile_body(rule, owner, shop);
        let task = rule.task.as_ref().map(|task| TaskOptions {
            after: task.after,
            ttl_ms: task.ttl_ms,
            poll_interval_ms: task.poll_interval_ms,
            status_message: None,
            required: task.required.as_ref().is_some_and(|required| required.value),
        });
        let status_message = rule.task.as_ref().and_then(|task| task.status_message.as_ref());
        let status_message = status_message.map(|message| shop.text_template(message.at, message));
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
    at: usize,
    written: &AnswerRule,
    owner: &RuleOwner<'_>,
    shop: &mut CompileContext<'_>,
) -> ConditionalAnswer {
    let when = when(written.when.as_ref(), shop.problems);
    let given = CompiledConditions::compile(written.given.as_ref(), shop.problems);
    let name = rule_name(written, when.as_ref(), &given, at);
    ConditionalAnswer { name, when, given, answer: CompiledAnswer::compile(written, owner, shop) }
}

/// What to call a rule: its name, else what it wants.
pub(in crate::answer) fn rule_name(
    written: &AnswerRule,
    when: Option<&Matcher>,
    given: &CompiledConditions,
    at: usize,
) -> Arc<str> {
    if let Some(name) = &written.name {
        return name.value.as_str().into();
    }
    let mut words: Vec<String> = when.iter().map(ToString::to_string).collect();
    if !given.is_empty() {
        words.push(given.in_words());
    }
    if words.is_empty() { format!("answer {}", at + 1).into() } else { words.join(", ").into() }
}

fn compile_body(rule: &AnswerRule, owner: &RuleOwner<'_>, shop: &mut CompileContext<'_>) -> Option<AnswerBody> {
    if let Some(error) = &rule.error {
        let message = shop.text_template(error.message.at, &error.message);
        let data = error.data.as_ref().map(|data| shop.value(data.at, data));
        return Some(AnswerBody::Error { code: error.code, message, data });
    }
    if let Some(result) = &rule.result {
        return Some(AnswerBody::result(shop.object(result.at, result), WrittenFor::Verbatim));
    }
    let mut fields = ObjectBuilder::new();
    let mut said = false;
    match owner.kind {
        TargetKind::Tool => {
            if let Some(content) = &rule.content {
                said = true;
                let blocks = shop.blocks(content);
                fields.draft("content", blocks);
            } else if let Some(text) = &rule.text {
                said = true;
                let text = shop.text_template(text.at, text);
                fields.draft("content", TemplateValue::list(vec![text_block(text)]));
            }
            if let Some(structured) = &rule.structured_content {
                said = true;
                let structured = shop.value(structured.at, structured);
                fields.draft("structuredContent", structured);
            }
            if let Some(is_error) = rule.is_error {
                said = true;
                fields.fixed("isError", is_error);
            }
        }
        TargetKind::Prompt => {
            fields.optional("description", owner.description);
            if let Some(messages) = &rule.messages {
                said = true;
                let messages = shop.messages(messages);
                fields.draft("messages", messages);
            } else if let Some(text) = &rule.text {
                said = true;
                let text = shop.text_template(text.at, text);
                fields.draft("messages", TemplateValue::list(vec![user_message(text)]));
            }
        }
        TargetKind::Resource | TargetKind::ResourceTemplate => {
            if let Some(contents) = &rule.contents {
                said = true;
                let at = contents.at;
                let all = contents.iter().map(|contents| {
                    let mut contents = contents.clone();
                    contents.mime_type = contents.mime_type.or_else(|| owner.mime_type.map(str::to_owned));
                    shop.contents(&contents, at, owner.uri)
                });
                let all = all.collect();
                fields.draft("contents", TemplateValue::list(all));
            } else if let Some(text) = &rule.text {
                said = true;
                let (at, text) = (text.at, text.clone());
                let mime_type = owner.mime_type.map(str::to_owned);
                let contents = mock::ContentsEntry { uri: None, mime_type, text: Some(text), blob: None, meta: None };
                let contents = shop.contents(&contents, at, owner.uri);
                fields.draft("contents", TemplateValue::list(vec![contents]));
            }
        }
        TargetKind::Method => {}
    }
    if let Some(meta) = &rule.meta {
        let at = rule.name.as_ref().map_or(Span::START, |name| name.at);
        let meta = shop.object(at, meta);
        fields.draft("_meta", meta);
    }
    if said {
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

fn compile_step(step: &Located<WrittenStep>, shop: &mut CompileContext<'_>) -> CompiledStep {
    let at = step.at;
    let values = |fields: &serde_json::Map<String, Value>, shop: &mut CompileContext<'_>| {
        fields.iter().map(|(key, value)| (key.clone(), shop.value(at, value))).collect()
    };
    match &step.value {
        WrittenStep::Wait(delay) => CompiledStep::Wait(*delay),
        WrittenStep::Progress(it) => CompiledStep::Progress {
            progress: it.progress,
            total: it.total,
            message: it.message.as_ref().map(|message| shop.text_template(message.at, message)),
        },
        WrittenStep::Log { level, logger, data } => {
            CompiledStep::Log { level: *level, logger: logger.clone(), data: shop.value(data.at, data) }
        }
        WrittenStep::Notify { method, params } => CompiledStep::Notify {
            method: method.as_str().into(),
            params: params.as_ref().map(|params| shop.object(at, params)),
        },
        WrittenStep::Changed(changed) => CompiledStep::Change(match changed {
            mock::ChangedEntry::Tools => CompiledChange::Fixed(ChangeNotice::Tools),
            mock::ChangedEntry::Prompts => CompiledChange::Fixed(ChangeNotice::Prompts),
            mock::ChangedEntry::Resources => CompiledChange::Fixed(ChangeNotice::Resources),
            mock::ChangedEntry::Resource(uri) => CompiledChange::Resource(shop.text_template(at, uri)),
        }),
        WrittenStep::Ask(questions) => CompiledStep::Ask(compile_questions(questions, at, shop), OnDecline::Fails),
        WrittenStep::TryAsk(questions) => CompiledStep::Ask(compile_questions(questions, at, shop), OnDecline::IsNull),
        WrittenStep::Again(_) => CompiledStep::EmptyRound,
        WrittenStep::Set(fields) => CompiledStep::Set(values(fields, shop)),
        WrittenStep::Append(fields) => CompiledStep::Append(values(fields, shop)),
        WrittenStep::Delete(keys) => CompiledStep::Delete(keys.iter().map(ToString::to_string).collect()),
        WrittenStep::CloseStream { retry } => CompiledStep::CloseStream { retry: *retry },
    }
}

fn compile_questions(
    questions: &[(String, mock::InputRequestEntry)],
    at: Span,
    shop: &mut CompileContext<'_>,
) -> Vec<InputRequestTemplate> {
    questions.iter().map(|(name, ask)| InputRequestTemplate::compile(name, ask, at, shop)).collect()
}
