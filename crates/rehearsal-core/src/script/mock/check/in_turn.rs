//! Answers that one rule gives one after the other.

use super::checker::{Checker, Kind, bodies};
use crate::script::Span;
use crate::script::mock::AnswerRule;

impl Checker {
    /// What is given one after the other: the rule says when, and each of them what.
    pub(super) fn in_turn(&mut self, rule: &AnswerRule, place: Span, kind: Kind) {
        if rule.in_turn.is_empty() {
            return;
        }
        let own = [
            ("an answer", bodies(rule).first().map(|(_, at)| *at)),
            ("`choose`", (!rule.choose.is_empty()).then_some(place)),
            ("`steps`", rule.steps.first().map(|step| step.at)),
            ("`request_state`", rule.request_state.as_ref().map(|it| it.at)),
            ("`delay`", rule.delay.map(|_| place)),
            ("`times`", rule.times.as_ref().map(|times| times.at)),
            ("`task`", rule.task.as_ref().map(|_| place)),
            ("`fault`", rule.fault.as_ref().map(|fault| fault.at)),
            ("`is_error`", rule.is_error.map(|_| place)),
            ("`meta`", rule.meta.as_ref().map(|_| place)),
        ];
        for (what, at) in own.into_iter().filter_map(|(what, at)| Some((what, at?))) {
            self.advise(at, format!("{what} beside `in_turn`"), "put it into the answers that it is for");
        }
        for answer in &rule.in_turn {
            let place = self.answer(answer, kind);
            let wanted = [
                ("`when`", answer.when.is_some()),
                ("`given`", answer.given.is_some()),
                ("`in_turn`", !answer.in_turn.is_empty()),
            ];
            for (what, _) in wanted.into_iter().filter(|(_, given)| *given) {
                let hint = "put it beside `in_turn`, or make it a rule of its own";
                self.advise(place, format!("{what} in `in_turn`"), hint);
            }
        }
    }
}
