//! Answers that follow each other and are one, given more often.

use std::collections::BTreeSet;

use rehearsal_core::answer::adapted;
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::protocol::Revision;
use rehearsal_core::script::mock::write::DraftAnswer;
use serde_json::Value;

use super::learned::{Answered, Request, Said};
use super::mock_answer::answer;

/// Answers that are one.
pub(super) struct Group<'a> {
    /// The one that says it all.
    whole: &'a Answered,
    /// How often it was given.
    pub(super) times: u64,
    /// The versions in which all of it was said.
    heard: BTreeSet<Revision>,
    /// Whether clients that are sent away before it are given state, as far as anybody knows.
    request_state: Option<bool>,
}

impl<'a> Group<'a> {
    fn new(whole: &'a Answered) -> Group<'a> {
        let Answered { revision, request_state, .. } = *whole;
        Group { whole, times: 1, heard: revision.into_iter().collect(), request_state }
    }

    /// Takes in an answer that is the same, or would be in the same version; gives back whether it is.
    fn take(&mut self, answer: &'a Answered, method: &Method) -> bool {
        if self.whole.says_the_same(answer) {
            self.heard.extend(answer.revision);
        } else if is_less(self.whole, answer, method) {
            (self.whole, self.heard) = (answer, answer.revision.into_iter().collect());
        } else if !is_less(answer, self.whole, method) {
            return false;
        }
        self.times += 1;
        self.request_state = self.request_state.or(answer.request_state);
        true
    }

    pub(super) fn draft(&self) -> DraftAnswer {
        let request_state = self.request_state.unwrap_or(true);
        DraftAnswer { heard: self.heard.iter().copied().collect(), request_state, ..answer(self.whole) }
    }
}

pub(super) fn grouped(request: &Request) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for answer in &request.answers {
        if !groups.last_mut().is_some_and(|last| last.take(answer, &request.method)) {
            groups.push(Group::new(answer));
        }
    }
    groups
}

/// Whether an answer is what its version, which knows less, makes of another.
fn is_less(less: &Answered, more: &Answered, method: &Method) -> bool {
    let (Some(to), Some(from)) = (less.revision, more.revision) else { return false };
    if to >= from || less.before != more.before {
        return false;
    }
    let (Said::Result(less), Said::Result(more)) = (&less.said, &more.said) else { return false };
    let more = Reply::Result(RawJson::from_value(&Value::Object(more.clone())));
    match adapted(&more, method, Some(from), to, &Value::Null) {
        Reply::Result(result) => result.exact().is_ok_and(|result| result.as_object() == Some(less)),
        Reply::Error(_) => false,
    }
}
