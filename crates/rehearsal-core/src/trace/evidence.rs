//! What speaks for a question to belong to one of several calls that were open when it was asked.
//!
//! ```text
//! > trigger-sampling {"prompt": "a poem"}       the words of the call …
//! > add {"a": 1, "b": 2}
//! < sampling/createMessage "… a poem"           … are in the question,
//! > "Roses are red"                             and those of its answer
//! < {"content": [{"text": "Roses are red"}]}    are in the result
//! ```

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};

use serde_json::Value;

use super::tie::Mark;
use super::{Call, subject};
use crate::exchange::Side;
use crate::message::{Message, Reply};

/// How many different words of a message count.
const WORDS: usize = 256;
/// How many short ones.
const SHORT: usize = 64;
/// How long a word must be to tell something by itself.
const LETTERS: usize = 3;
/// What says how something is written, and nothing about it.
const FORM: [&str; 6] = ["type", "role", "mimeType", "_meta", "resultType", "action"];

/// The words of a request and of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    /// The tool, prompt or resource that is used, where this is such a request: only those ask back.
    pub(super) tool: Option<Mark>,
    asked: Words,
    answered: Words,
}

/// Words, each as a number, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Words {
    long: Vec<u64>,
    short: Vec<u64>,
}

/// How many words are in both of two; short ones count where the others do not decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shared {
    long: usize,
    short: usize,
}

impl Evidence {
    pub(super) fn of(call: &Call) -> Evidence {
        let mut asked = Reading::default();
        if let Some(method) = call.request.message.method().filter(|_| call.asker == Side::Server) {
            asked.text(method.as_str());
        }
        asked.params(&call.request.message);
        let mut answered = Reading::default();
        let answer = call.response.as_ref().and_then(|answer| answer.message.as_response());
        if let Some(Reply::Result(result)) = answer.map(|answer| &answer.reply)
            && let Ok(result) = result.value()
        {
            answered.value(&result);
        }
        Evidence { tool: tool(call), asked: asked.words(), answered: answered.words() }
    }

    /// What of a question and its answer is in a call and its result.
    pub(super) fn shared(&self, call: &Evidence) -> Shared {
        let both = |ours: &[u64], theirs: &[u64]| ours.iter().filter(|it| theirs.binary_search(it).is_ok()).count();
        Shared {
            long: both(&self.asked.long, &call.asked.long) + both(&self.answered.long, &call.answered.long),
            short: both(&self.asked.short, &call.asked.short) + both(&self.answered.short, &call.answered.short),
        }
    }
}

fn tool(call: &Call) -> Option<Mark> {
    let message = &call.request.message;
    let method = message.method().filter(|_| call.asker == Side::Client)?.as_str();
    let asks = matches!(method, "tools/call" | "prompts/get" | "resources/read" | "tasks/result");
    asks.then(|| Mark::of(&format!("{method} {}", subject(message).unwrap_or_default())))
}

/// Words on their way out of a message.
#[derive(Default)]
struct Reading {
    long: HashSet<u64>,
    short: HashSet<u64>,
}

impl Reading {
    fn params(&mut self, message: &Message) {
        if let Some(Ok(params)) = message.params().map(|params| params.value()) {
            self.value(&params);
        }
    }

    fn value(&mut self, value: &Value) {
        if self.is_full() {
            return;
        }
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                let telling = fields.iter().filter(|(key, _)| !FORM.contains(&key.as_str()));
                telling.for_each(|(_, value)| self.value(value));
            }
            Value::Number(number) => self.text(&number.to_string()),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn text(&mut self, text: &str) {
        // `c1-q2` and `file:///a` tell more than their words.
        for piece in text.split(|c: char| c.is_whitespace() || "\"'`,;()[]{}<>".contains(c)) {
            if self.is_full() {
                return;
            }
            if piece.chars().any(char::is_alphanumeric) && !piece.chars().all(char::is_alphanumeric) {
                self.word(piece);
            }
            piece
                .split(|c: char| !c.is_alphanumeric())
                .filter(|word| !word.is_empty())
                .for_each(|word| self.word(word));
        }
    }

    fn word(&mut self, word: &str) {
        let (words, most) = match word.chars().nth(LETTERS - 1) {
            Some(_) => (&mut self.long, WORDS),
            None => (&mut self.short, SHORT),
        };
        if words.len() < most {
            let mut hasher = DefaultHasher::new();
            word.chars().flat_map(char::to_lowercase).for_each(|c| hasher.write_u32(c.into()));
            words.insert(hasher.finish());
        }
    }

    fn is_full(&self) -> bool {
        self.long.len() >= WORDS
    }

    fn words(self) -> Words {
        let sorted = |words: HashSet<u64>| {
            let mut words: Vec<u64> = words.into_iter().collect();
            words.sort_unstable();
            words
        };
        Words { long: sorted(self.long), short: sorted(self.short) }
    }
}
