//! A recorded answer as a mock gives it.

use std::time::Duration;

use rehearsal_core::message::Method;
use rehearsal_core::script::mock::write::{DraftAnswer, DraftStep, Says};
use serde_json::Value;

use super::learned::{Answered, Before, Said};

/// Some clients hear the answer first where a notification comes at the same time, and the notification never.
const PAUSE: Duration = Duration::from_millis(5);

/// What was said, after what happened before it.
pub(super) fn answer(answered: &Answered, left_out: &mut Vec<String>) -> DraftAnswer {
    let mut steps: Vec<_> = answered.before.iter().filter_map(|before| step(before, left_out)).collect();
    if let Some(Before::Told { .. }) = answered.before.last() {
        steps.push(DraftStep::Wait(PAUSE));
    }
    let says = match &answered.said {
        Said::Error(error) => Says::Error(error.clone()),
        Said::Result(result) => Says::Result(Value::Object(result.clone())),
    };
    DraftAnswer { steps, ..DraftAnswer::new(says) }
}

fn step(before: &Before, left_out: &mut Vec<String>) -> Option<DraftStep> {
    match before {
        Before::SentAway => Some(DraftStep::Again),
        Before::Told { method, params } => {
            Some(DraftStep::Notify { method: method.as_str().to_owned(), params: params.clone() })
        }
        Before::Asked(questions) => {
            let mut asked = Vec::new();
            for question in questions {
                if [Method::ELICITATION, Method::SAMPLING, Method::ROOTS_LIST].contains(&question.method) {
                    asked.push((question.name.clone(), question.method.as_str().to_owned(), question.params.clone()));
                } else {
                    left_out.push(format!("{}, which a mock cannot ask", question.method));
                }
            }
            (!asked.is_empty()).then_some(DraftStep::Ask(asked))
        }
    }
}
