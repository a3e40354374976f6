//! What happens when a rule fits: steps, and an answer in the end.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use super::content::{Fields, Workshop};
use super::finish::Finished;
use super::given::{Given, when};
use super::question::QuestionDraft;
use super::template::Draft;
use crate::matcher::Matcher;
use crate::protocol::Revision;
use crate::script::mock::{AnswerRule, Delay, FaultKind, LogLevel, Step as WrittenStep};
use crate::script::{Located, Span, mock};

/// What happens when a rule fits.
#[derive(Debug)]
pub(super) struct Scene {
    /// How long nothing happens.
    pub(super) delay: Option<Delay>,
    /// Whether the rest is the work of a task.
    pub(super) task: Option<TaskTerms>,
    /// What the task says about itself.
    pub(super) status_message: Option<Draft>,
    /// What happens before the answer.
    pub(super) steps: Vec<Step>,
    /// Whether a client that is sent away is given state to bring back.
    pub(super) request_state: bool,
    /// Scenes of which the first that fits goes on.
    pub(super) choose: Vec<Choice>,
    /// The answer; `None` only where one of `choose` must fit.
    pub(super) outcome: Option<Outcome>,
    /// What goes wrong with it.
    pub(super) fault: Option<FaultKind>,
}

/// A scene that depends on what the client said.
#[derive(Debug)]
pub(super) struct Choice {
    /// What to call it in reports.
    pub(super) name: Arc<str>,
    /// What the client's answers must be.
    pub(super) when: Option<Matcher>,
    /// What everything else must be.
    pub(super) given: Given,
    /// What happens.
    pub(super) scene: Scene,
}

/// How a task works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskTerms {
    /// How long it works before it goes on.
    pub after: Option<Delay>,
    /// How long it is kept.
    pub ttl_ms: Option<u64>,
    /// How often to ask.
    pub poll_interval_ms: Option<u64>,
    /// In words.
    pub status_message: Option<String>,
    /// Whether a client that knows no tasks is refused.
    pub required: bool,
}

/// What is answered.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A result, and the bytes of one that is always the same, by version.
    Result { draft: Draft, wording: Wording, written: Box<[OnceLock<Result<Finished, String>>; Revision::ALL.len()]> },
    /// An error.
    Error { code: i64, message: Draft, data: Option<Draft> },
}

/// What a version changes about a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wording {
    /// What it does not know is left out, or said in its way.
    OfItsVersion,
    /// Nothing.
    AsWritten,
}

/// One thing that is done before the answer.
#[derive(Debug)]
pub(super) enum Step {
    Wait(Delay),
    Progress { progress: f64, total: Option<f64>, message: Option<Draft> },
    Log { level: LogLevel, logger: Option<String>, data: Draft },
    Notify { method: String, params: Option<Draft> },
    Changed(Changed),
    Ask(Vec<QuestionDraft>, Unanswered),
    Again,
    Set(Vec<(String, Draft)>),
    Append(Vec<(String, Draft)>),
    Delete(Vec<String>),
    CloseStream { retry: Option<Delay> },
}

/// What becomes of a question that a client refuses, or that it cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// Whatever it was needed for fails.
    Fails,
    /// Its answer is `null`.
    IsNull,
}

/// What changed.
#[derive(Debug)]
pub(super) enum Changed {
    Tools,
    Prompts,
    Resources,
    Resource(Draft),
}

/// What the answers of something look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Tool,
    Prompt,
    Resource,
    Request,
}

/// What is known about whatever a rule belongs to.
#[derive(Debug)]
pub(super) struct Owner<'a> {
    pub(super) kind: Kind,
    /// The URI of a resource that has one.
    pub(super) uri: Option<&'a str>,
    /// The kind of contents of a resource.
    pub(super) mime_type: Option<&'a str>,
    /// What is said about a prompt.
    pub(super) description: Option<&'a str>,
    /// The result of a rule that says nothing about it.
    pub(super) otherwise: Option<Draft>,
}

impl Scene {
    /// Compiles what a rule says.
    pub(super) fn compile(rule: &AnswerRule, owner: &Owner<'_>, shop: &mut Workshop<'_>) -> Scene {
        let steps = rule.steps.iter().map(|step| compile_step(step, shop)).collect();
        let choose =
            rule.choose.iter().enumerate().map(|(at, choice)| compile_choice(at, choice, owner, shop)).collect();
        let outcome = compile_outcome(rule, owner, shop);
        let task = rule.task.as_ref().map(|task| TaskTerms {
            after: task.after,
            ttl_ms: task.ttl_ms,
            poll_interval_ms: task.poll_interval_ms,
            status_message: None,
            required: task.required.as_ref().is_some_and(|required| required.value),
        });
        let status_message = rule.task.as_ref().and_then(|task| task.status_message.as_ref());
        let status_message = status_message.map(|message| shop.words(message.at, message));
        Scene {
            delay: rule.delay,
            task,
            status_message,
            steps,
            request_state: rule.request_state.as_ref().is_none_or(|it| it.value),
            choose,
            outcome,
            fault: rule.fault.as_ref().map(|it| it.value.clone()),
        }
    }

    /// A scene that is only an answer.
    pub(super) fn only(draft: Draft) -> Scene {
        let outcome = Some(Outcome::result(draft, Wording::OfItsVersion));
        Scene {
            delay: None,
            task: None,
            status_message: None,
            steps: Vec::new(),
            request_state: true,
            choose: Vec::new(),
            outcome,
            fault: None,
        }
    }

    /// Whether anything in it, however deep, is so.
    pub(super) fn any(&self, is_so: &dyn Fn(&Scene) -> bool) -> bool {
        is_so(self) || self.choose.iter().any(|choice| choice.scene.any(is_so))
    }
}

impl Outcome {
    fn result(draft: Draft, wording: Wording) -> Outcome {
        Outcome::Result { draft, wording, written: Default::default() }
    }
}

fn compile_choice(at: usize, written: &AnswerRule, owner: &Owner<'_>, shop: &mut Workshop<'_>) -> Choice {
    let when = when(written.when.as_ref(), shop.problems);
    let given = Given::compile(written.given.as_ref(), shop.problems);
    let name = rule_name(written, when.as_ref(), &given, at);
    Choice { name, when, given, scene: Scene::compile(written, owner, shop) }
}

/// What to call a rule: its name, else what it wants.
pub(super) fn rule_name(written: &AnswerRule, when: Option<&Matcher>, given: &Given, at: usize) -> Arc<str> {
    if let Some(name) = &written.name {
        return name.value.as_str().into();
    }
    let mut words: Vec<String> = when.iter().map(ToString::to_string).collect();
    if !given.is_empty() {
        words.push(given.in_words());
    }
    if words.is_empty() { format!("answer {}", at + 1).into() } else { words.join(", ").into() }
}

fn compile_outcome(rule: &AnswerRule, owner: &Owner<'_>, shop: &mut Workshop<'_>) -> Option<Outcome> {
    if let Some(error) = &rule.error {
        let message = shop.words(error.message.at, &error.message);
        let data = error.data.as_ref().map(|data| shop.value(data.at, data));
        return Some(Outcome::Error { code: error.code, message, data });
    }
    if let Some(result) = &rule.result {
        return Some(Outcome::result(shop.object(result.at, result), Wording::AsWritten));
    }
    let mut fields = Fields::new();
    let mut said = false;
    match owner.kind {
        Kind::Tool => {
            if let Some(content) = &rule.content {
                said = true;
                let blocks = shop.blocks(content);
                fields.draft("content", blocks);
            } else if let Some(text) = &rule.text {
                said = true;
                let text = shop.words(text.at, text);
                fields.draft("content", Draft::list(vec![text_block(text)]));
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
        Kind::Prompt => {
            fields.optional("description", owner.description);
            if let Some(messages) = &rule.messages {
                said = true;
                let messages = shop.messages(messages);
                fields.draft("messages", messages);
            } else if let Some(text) = &rule.text {
                said = true;
                let text = shop.words(text.at, text);
                fields.draft("messages", Draft::list(vec![user_message(text)]));
            }
        }
        Kind::Resource => {
            if let Some(contents) = &rule.contents {
                said = true;
                let at = contents.at;
                let all = contents.iter().map(|contents| {
                    let mut contents = contents.clone();
                    contents.mime_type = contents.mime_type.or_else(|| owner.mime_type.map(str::to_owned));
                    shop.contents(&contents, at, owner.uri)
                });
                let all = all.collect();
                fields.draft("contents", Draft::list(all));
            } else if let Some(text) = &rule.text {
                said = true;
                let (at, text) = (text.at, text.clone());
                let mime_type = owner.mime_type.map(str::to_owned);
                let contents = mock::Contents { uri: None, mime_type, text: Some(text), blob: None, meta: None };
                let contents = shop.contents(&contents, at, owner.uri);
                fields.draft("contents", Draft::list(vec![contents]));
            }
        }
        Kind::Request => {}
    }
    if let Some(meta) = &rule.meta {
        let at = rule.name.as_ref().map_or(Span::START, |name| name.at);
        let meta = shop.object(at, meta);
        fields.draft("_meta", meta);
    }
    if said {
        return Some(Outcome::result(fields.finish(), Wording::OfItsVersion));
    }
    if !rule.choose.is_empty() {
        return None;
    }
    let empty = match owner.kind {
        Kind::Tool => json!({"content": []}),
        Kind::Prompt => json!({"messages": []}),
        Kind::Resource => json!({"contents": []}),
        Kind::Request => json!({}),
    };
    Some(Outcome::result(owner.otherwise.clone().unwrap_or(Draft::Fixed(empty)), Wording::OfItsVersion))
}

fn text_block(text: Draft) -> Draft {
    Draft::fields(vec![("type".to_owned(), Draft::Fixed("text".into())), ("text".to_owned(), text)])
}

fn user_message(text: Draft) -> Draft {
    Draft::fields(vec![("role".to_owned(), Draft::Fixed("user".into())), ("content".to_owned(), text_block(text))])
}

fn compile_step(step: &Located<WrittenStep>, shop: &mut Workshop<'_>) -> Step {
    let at = step.at;
    let values = |fields: &serde_json::Map<String, Value>, shop: &mut Workshop<'_>| {
        fields.iter().map(|(key, value)| (key.clone(), shop.value(at, value))).collect()
    };
    match &step.value {
        WrittenStep::Wait(delay) => Step::Wait(*delay),
        WrittenStep::Progress(it) => Step::Progress {
            progress: it.progress,
            total: it.total,
            message: it.message.as_ref().map(|message| shop.words(message.at, message)),
        },
        WrittenStep::Log { level, logger, data } => {
            Step::Log { level: *level, logger: logger.clone(), data: shop.value(data.at, data) }
        }
        WrittenStep::Notify { method, params } => {
            Step::Notify { method: method.to_string(), params: params.as_ref().map(|params| shop.object(at, params)) }
        }
        WrittenStep::Changed(changed) => Step::Changed(match changed {
            mock::Changed::Tools => Changed::Tools,
            mock::Changed::Prompts => Changed::Prompts,
            mock::Changed::Resources => Changed::Resources,
            mock::Changed::Resource(uri) => Changed::Resource(shop.words(at, uri)),
        }),
        WrittenStep::Ask(questions) => Step::Ask(compile_questions(questions, at, shop), Unanswered::Fails),
        WrittenStep::TryAsk(questions) => Step::Ask(compile_questions(questions, at, shop), Unanswered::IsNull),
        WrittenStep::Again(_) => Step::Again,
        WrittenStep::Set(fields) => Step::Set(values(fields, shop)),
        WrittenStep::Append(fields) => Step::Append(values(fields, shop)),
        WrittenStep::Delete(keys) => Step::Delete(keys.iter().map(ToString::to_string).collect()),
        WrittenStep::CloseStream { retry } => Step::CloseStream { retry: *retry },
    }
}

fn compile_questions(questions: &[(String, mock::Ask)], at: Span, shop: &mut Workshop<'_>) -> Vec<QuestionDraft> {
    questions.iter().map(|(name, ask)| QuestionDraft::compile(name, ask, at, shop)).collect()
}
