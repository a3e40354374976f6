//! A recorded answer as a mock gives it.

use std::time::Duration;

use rehearsal_core::script::mock::write::{DraftAnswer, DraftQuestion, DraftStep, Says};
use serde_json::Value;

use super::learned::{Answered, Before, Question, Said};

/// Some clients hear the answer first where a notification comes at the same time, and the notification never.
const PAUSE: Duration = Duration::from_millis(5);

/// What was said, after what happened before it.
pub(super) fn answer(answered: &Answered) -> DraftAnswer {
    let mut steps: Vec<_> = answered.before.iter().map(step).collect();
    if let Some(Before::Told { .. }) = answered.before.last() {
        steps.push(DraftStep::Wait(PAUSE));
    }
    let says = match &answered.said {
        Said::Error(error) => Says::Error(error.clone()),
        Said::Result(result) => Says::Result(Value::Object(result.clone())),
    };
    DraftAnswer { steps, ..DraftAnswer::new(says) }
}

fn step(before: &Before) -> DraftStep {
    match before {
        Before::SentAway => DraftStep::Again,
        Before::Told { method, params, unwanted } => {
            DraftStep::Notify { method: method.as_str().to_owned(), params: params.clone(), exactly: *unwanted }
        }
        Before::Asked(questions) => {
            let question = |it: &Question| DraftQuestion {
                name: it.name.clone(),
                method: it.method.as_str().to_owned(),
                params: it.params.clone(),
                exactly: false,
            };
            let drafts = questions.iter().map(question).collect();
            match questions.iter().any(|question| question.refused) {
                true => DraftStep::TryAsk(drafts),
                false => DraftStep::Ask(drafts),
            }
        }
    }
}
