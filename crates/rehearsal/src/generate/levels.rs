//! What of a recording is not nested too deep for a file that people edit.

use std::borrow::Cow;

use rehearsal_core::script::DEPTH_LIMIT;
use serde_json::Value;

use super::learned::{Answered, Before, Learned, Request, Said};

/// How many levels a value may have: those of a file without its own keys around it.
const LEVELS: usize = DEPTH_LIMIT - 14;

/// What was learned that a file can hold, and what it cannot, in words.
pub(super) fn within_levels(learned: &Learned) -> (Cow<'_, Learned>, Vec<String>) {
    let mut too_deep = Vec::new();
    let mut within = Cow::Borrowed(learned);
    let has_deep_items = |learned: &Learned| {
        let lists = learned.lists();
        lists.iter().any(|list| list.items.iter().chain(&list.gone).any(is_too_deep))
    };
    if has_deep_items(learned) {
        for list in within.to_mut().lists_mut() {
            too_deep.extend(list.take_out(is_too_deep).into_iter().map(|name| words(&format!("how {name} is listed"))));
        }
    }
    let is_deep = |request: &Request| is_too_deep(&request.params) || request.answers.iter().any(says_too_deep);
    if learned.requests.iter().any(is_deep) {
        for request in &mut within.to_mut().requests {
            let about = format!("{} of {}", request.method, request.subject().unwrap_or_default());
            let before = request.answers.len();
            let asked = is_too_deep(&request.params);
            request.answers.retain(|answer| !asked && !says_too_deep(answer));
            let lost = before - request.answers.len();
            let words = words(&format!("what {about} was answered with"));
            too_deep.extend(std::iter::repeat_n(words, lost));
        }
        within.to_mut().requests.retain(|request| !request.answers.is_empty());
    }
    too_deep.dedup();
    (within, too_deep)
}

fn words(what: &str) -> String {
    format!("{what}, which has more than {LEVELS} levels")
}

fn says_too_deep(answer: &Answered) -> bool {
    let said = match &answer.said {
        Said::Result(result) => result.values().any(is_too_deep),
        Said::Error(error) => {
            error.data.as_ref().and_then(|data| data.exact().ok()).is_some_and(|data| is_too_deep(&data))
        }
    };
    said || answer.before.iter().any(|before| match before {
        Before::Told { params, .. } => is_too_deep(params),
        Before::Asked(questions) => questions.iter().any(|question| is_too_deep(&question.params)),
        Before::SentAway => false,
    })
}

fn is_too_deep(value: &Value) -> bool {
    fn reaches(value: &Value, levels: usize) -> bool {
        match value {
            Value::Array(elements) => levels == 0 || elements.iter().any(|inner| reaches(inner, levels - 1)),
            Value::Object(fields) => levels == 0 || fields.values().any(|inner| reaches(inner, levels - 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
    reaches(value, LEVELS)
}
