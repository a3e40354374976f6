//! A draft whose mock says in each version what was heard there.
//!
//! ```text
//! Draft ──► compiled ──► what a client of the version would be told ──► the same as was heard?
//!   └── its words, or where they would say something else, what was on the wire ◄──┘
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::Mock;
use super::faithful::{compiled, introduce, lists};
use super::rule::{InTurn, Rules};
use super::scene::{Kind, Outcome, Step};
use super::shape;
use super::template::Scope;
use crate::protocol::Revision;
use crate::script::mock::write::{Draft, DraftAnswer, DraftIntroduced, DraftQuestion, DraftStep, Offer, Says};
use crate::shape::forget_in_notification;

/// What a server said about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hello {
    /// What it can do, whatever the version; `None` where nobody knows.
    pub capabilities: Option<Map<String, Value>>,
    /// What it said in each version.
    pub heard: BTreeMap<Revision, DraftIntroduced>,
}

/// The same draft, but a mock of it says of itself, lists, answers and asks in each version what was heard there; and what
/// it says otherwise all the same, in words.
///
/// What cannot be read again stays as it is: whoever checks the file is told why.
pub fn as_heard(mut draft: Draft, hello: &Hello) -> (Draft, Vec<String>) {
    let mut mock = compiled(&draft);
    if mock.is_err() {
        lists(&mut draft).into_iter().flat_map(|(_, offers)| offers).for_each(|offer| offer.exactly = true);
        mock = compiled(&draft);
    }
    let mut left_out = Vec::new();
    if let Ok(words) = &mock {
        let changed = lists(&mut draft).map(|(key, offers)| list(words, key, offers, &mut left_out));
        if changed.contains(&true) {
            mock = compiled(&draft);
        }
    }
    let Ok(mock) = mock else {
        draft.capabilities = hello.capabilities.clone().unwrap_or_default();
        return (draft, left_out);
    };
    let mut unsaid = BTreeSet::new();
    for (key, offers) in lists(&mut draft) {
        for (at, offer) in offers.iter_mut().enumerate() {
            let (kind, rules) = rules(&mock, key, at);
            answers(&mock, kind, rules, &mut offer.answers, &mut unsaid);
        }
    }
    left_out.extend(unsaid);
    if let Some(capabilities) = &hello.capabilities {
        introduce(&mut draft, mock, capabilities, &hello.heard);
    }
    (draft, left_out)
}

/// Finds out what of a list has to be there as it was on the wire; gives back whether there is more of that now.
fn list(mock: &Mock, key: &str, offers: &mut [Offer], otherwise: &mut Vec<String>) -> bool {
    let mut changed = false;
    let mut seen: BTreeMap<Revision, Vec<Value>> = BTreeMap::new();
    for (at, offer) in offers.iter_mut().filter(|offer| !offer.hidden).enumerate() {
        let mut in_words = |revision: Revision| {
            let all = seen.entry(revision).or_insert_with(|| {
                let written = mock.listed(key, revision).into_iter();
                written.map(|element| serde_json::from_str(element).unwrap_or_default()).collect()
            });
            all.get(at).cloned().unwrap_or_default()
        };
        let heard = std::mem::take(&mut offer.heard);
        let wrong: Vec<_> = heard.iter().filter(|(revision, was)| in_words(**revision) != **was).collect();
        let wrong_exactly: Vec<_> = heard.iter().filter(|(_, was)| **was != offer.listed).collect();
        if wrong_exactly.len() < wrong.len() && !offer.exactly {
            (offer.exactly, changed) = (true, true);
        }
        let wrong = if offer.exactly { wrong_exactly } else { wrong };
        let name = ["name", "uri", "uriTemplate"].into_iter().rev().find_map(|key| offer.listed.get(key)?.as_str());
        let name = name.unwrap_or_default();
        otherwise.extend(wrong.iter().map(|(revision, _)| format!("how {name} was listed in {revision}")));
        offer.heard = heard;
    }
    changed
}

fn rules<'a>(mock: &'a Mock, key: &str, at: usize) -> (Kind, Option<&'a Rules>) {
    match key {
        "tools" => (Kind::Tool, mock.tools.get(at).map(|it| &it.rules)),
        "prompts" => (Kind::Prompt, mock.prompts.get(at).map(|it| &it.rules)),
        "resources" => (Kind::Resource, mock.resources.get(at).map(|it| &it.rules)),
        _ => (Kind::Resource, mock.resource_templates.get(at).map(|it| &it.rules)),
    }
}

/// Finds out which answers, and which questions before them, have to be there as they were on the wire.
fn answers(
    mock: &Mock,
    kind: Kind,
    rules: Option<&Rules>,
    answers: &mut [DraftAnswer],
    left_out: &mut BTreeSet<String>,
) {
    let drafts = answers.iter_mut().flat_map(|answer| match &mut answer.says {
        Says::InTurn(_) => in_turn(answer),
        Says::Result(_) | Says::Exactly(_) | Says::Template(_) | Says::Error(_) => std::slice::from_mut(answer),
    });
    let turns = rules.into_iter().flat_map(Rules::turns);
    for (draft, turn) in drafts.zip(turns) {
        let versions = draft.heard.clone();
        if let Says::Result(said) = &draft.says
            && versions.iter().any(|revision| answered(mock, kind, turn, *revision).as_ref() != Some(said))
        {
            draft.says = Says::Exactly(said.clone());
        }
        for (step, written) in draft.steps.iter_mut().zip(&turn.scene.steps) {
            match (step, written) {
                (DraftStep::Ask(questions) | DraftStep::TryAsk(questions), Step::Ask(..)) => {
                    for (at, question) in questions.iter_mut().enumerate() {
                        question.exactly |=
                            versions.iter().any(|revision| !asks(mock, written, at, question, *revision));
                    }
                }
                (DraftStep::Notify { method, params, .. }, Step::Progress { .. }) => {
                    let unknown = versions.iter().filter(|revision| !is_known(method, params, **revision));
                    left_out.extend(unknown.map(|revision| format!("what of {method} is newer than {revision}")));
                }
                (
                    DraftStep::Wait(_)
                    | DraftStep::Notify { .. }
                    | DraftStep::Again
                    | DraftStep::Ask(_)
                    | DraftStep::TryAsk(_),
                    _,
                ) => {}
            }
        }
    }
}

/// Whether a version knows everything that a notification says.
fn is_known(method: &str, params: &Value, revision: Revision) -> bool {
    let mut known = params.clone();
    forget_in_notification(method, &mut known, revision);
    known == *params
}

fn in_turn(answer: &mut DraftAnswer) -> &mut [DraftAnswer] {
    match &mut answer.says {
        Says::InTurn(answers) => answers,
        Says::Result(_) | Says::Exactly(_) | Says::Template(_) | Says::Error(_) => &mut [],
    }
}

/// What is answered in a version, without what every result of that version carries.
fn answered(mock: &Mock, kind: Kind, turn: &InTurn, revision: Revision) -> Option<Value> {
    let Some(Outcome::Result { draft, wording, .. }) = &turn.scene.outcome else { return None };
    let mut result = nobody(revision, |scope| draft.render(&mock.templates, scope)).ok()?;
    shape::answered(kind, *wording, &mut result, revision);
    Some(result)
}

/// Whether the client is asked this in a version.
fn asks(mock: &Mock, step: &Step, at: usize, question: &DraftQuestion, revision: Revision) -> bool {
    let Step::Ask(questions, _) = step else { return false };
    let Some(draft) = questions.get(at).filter(|draft| draft.is_known_to(revision)) else { return false };
    let rendered = nobody(revision, |scope| draft.render(revision, &mock.templates, scope));
    let nothing = json!({});
    let params = |params: &Value| if params.is_null() { nothing.clone() } else { params.clone() };
    rendered.is_ok_and(|it| it.method.as_str() == question.method && params(&it.params) == params(&question.params))
}

/// What a template sees where nobody asks.
fn nobody<T>(revision: Revision, render: impl FnOnce(&Scope<'_>) -> T) -> T {
    let (null, empty) = (Value::Null, Map::new());
    render(&Scope {
        arguments: &null,
        state: &empty,
        call: 1,
        client: &null,
        capabilities: &null,
        headers: &null,
        meta: &null,
        answers: &empty,
        // Nothing was recorded under this one, so what would be added is seen.
        uri: Some(""),
        version: revision.as_str(),
    })
}
