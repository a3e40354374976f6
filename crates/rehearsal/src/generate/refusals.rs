//! Requests that were refused whatever they asked for.

use std::collections::{BTreeMap, HashSet};

use rehearsal_core::message::{ErrorReply, Method};
use rehearsal_core::protocol::{Revision, code};
use rehearsal_core::shape::may_be_asked;
use serde_json::Value;

use super::fate::{Account, Fate};

/// Which methods were refused, and which were not.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Methods that were answered by a result.
    served: HashSet<Method>,
    refused: BTreeMap<String, Vec<ErrorReply>>,
}

impl Refusals {
    pub(super) fn serve(&mut self, method: &Method) {
        self.served.insert(method.clone());
    }

    pub(super) fn take(&mut self, method: &Method, error: ErrorReply) {
        self.refused.entry(method.as_str().to_owned()).or_default().push(error);
    }

    /// What was always refused, each with the same error. What was not is entered as left out.
    pub(super) fn always(self, account: &mut Account) -> BTreeMap<String, ErrorReply> {
        let mut refuses = BTreeMap::new();
        for (method, errors) in self.refused {
            let always = !self.served.contains(&Method::from(method.as_str()));
            match &errors[..] {
                [first, others @ ..] if always && others.iter().all(|other| other == first) => {
                    account.enter(Fate::Used, errors.len());
                    refuses.insert(method, first.clone());
                }
                _ => account.enter(left_out(&method), errors.len()),
            }
        }
        refuses
    }
}

/// What becomes of a refusal in a version that says nothing about the next request of this method; `None` for one that does.
pub(super) fn once(
    method: &Method,
    params: Option<&Value>,
    error: &ErrorReply,
    spoken: Option<Revision>,
) -> Option<Fate> {
    let has_cursor = params.is_some_and(|params| params.get("cursor").is_some());
    let is_known = Method::KNOWN.contains(&method.as_str());
    let is_unspoken = is_known && spoken.is_some_and(|spoken| !may_be_asked(method.as_str(), spoken));
    let is_handshake = *method == Method::INITIALIZE || *method == Method::DISCOVER;
    match error.code {
        // What a version does not have is refused by every server of it.
        code::METHOD_NOT_FOUND if is_unspoken && !is_handshake => Some(Fate::Used),
        _ => (is_handshake || has_cursor || is_unspoken).then(|| left_out(method.as_str())),
    }
}

fn left_out(method: &str) -> Fate {
    Fate::left_out(format!("{method}, which was refused"))
}
