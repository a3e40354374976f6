//! What speaks for a question to belong to one of several calls that were open when it was asked.
//!
//! ```text
//! > trigger-sampling {"prompt": "a poem"}       the words of the call …
//! > add {"a": 1, "b": 2}
//! < sampling/createMessage "… a poem"           … are in the question,
//! > "Roses are red"                             and those of its answer
//! < {"content": [{"text": "Roses are red"}]}    are in the result
//! ```

use std::hash::{DefaultHasher, Hasher};

use serde_json::Value;

use super::Call;
use crate::exchange::Side;
use crate::message::{Message, Reply};

/// How many different words of a message count.
const WORDS: usize = 256;
/// How long a word must be to tell something.
const LETTERS: usize = 3;
/// What says how something is written, and nothing about it.
const FORM: [&str; 6] = ["type", "role", "mimeType", "_meta", "resultType", "action"];

/// The words of a request and of its answer, each as a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    asked: Vec<u64>,
    answered: Vec<u64>,
}

impl Evidence {
    pub(super) fn of(call: &Call) -> Evidence {
        let mut asked = Words::default();
        if let Some(method) = call.request.message.method().filter(|_| call.asker == Side::Server) {
            asked.text(method.as_str());
        }
        asked.params(&call.request.message);
        let mut answered = Words::default();
        let answer = call.response.as_ref().and_then(|answer| answer.message.as_response());
        if let Some(Reply::Result(result)) = answer.map(|answer| &answer.reply)
            && let Ok(result) = result.value()
        {
            answered.value(&result);
        }
        Evidence { asked: asked.sorted(), answered: answered.sorted() }
    }

    /// How much speaks for a question to be that of a call.
    pub(super) fn speaks_for(&self, call: &Evidence) -> i64 {
        let shared = |ours: &[u64], theirs: &[u64]| ours.iter().filter(|it| theirs.binary_search(it).is_ok()).count();
        let count = shared(&self.asked, &call.asked) + shared(&self.answered, &call.answered);
        i64::try_from(count).unwrap_or(i64::MAX)
    }
}

#[derive(Default)]
struct Words(Vec<u64>);

impl Words {
    fn params(&mut self, message: &Message) {
        if let Some(Ok(params)) = message.params().map(|params| params.value()) {
            self.value(&params);
        }
    }

    fn value(&mut self, value: &Value) {
        if self.0.len() >= WORDS {
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
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= LETTERS);
        for word in words {
            if self.0.len() >= WORDS {
                return;
            }
            let mut hasher = DefaultHasher::new();
            word.chars().flat_map(char::to_lowercase).for_each(|c| hasher.write_u32(c.into()));
            let word = hasher.finish();
            if !self.0.contains(&word) {
                self.0.push(word);
            }
        }
    }

    fn sorted(mut self) -> Vec<u64> {
        self.0.sort_unstable();
        self.0
    }
}
