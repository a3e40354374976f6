//! The lists that a server may say are others than they were.

use rehearsal_core::message::Method;
use rehearsal_core::trace::RequestKey;

use super::key::method_key;

/// A list that clients are told about when it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replay) enum List {
    Tools,
    Prompts,
    /// That of templates too.
    Resources,
}

impl List {
    /// The list that a client asks for.
    pub(in crate::replay) fn asked(method: &Method) -> Option<List> {
        match method.as_str() {
            "tools/list" => Some(List::Tools),
            "prompts/list" => Some(List::Prompts),
            "resources/list" | "resources/templates/list" => Some(List::Resources),
            _ => None,
        }
    }

    /// The list that is another, where a notification says so.
    pub(super) fn changed(method: &Method) -> Option<List> {
        [List::Tools, List::Prompts, List::Resources].into_iter().find(|list| list.notification() == *method)
    }

    /// The key under which the exchanges are found during or after which it changed.
    pub(in crate::replay) fn key(self) -> RequestKey {
        method_key(self.notification().as_str())
    }

    fn notification(self) -> Method {
        match self {
            List::Tools => Method::TOOLS_CHANGED,
            List::Prompts => Method::PROMPTS_CHANGED,
            List::Resources => Method::RESOURCES_CHANGED,
        }
    }

    /// As it stands in an index; 0 for none.
    pub(super) fn write(list: Option<List>) -> u8 {
        match list {
            None => 0,
            Some(List::Tools) => 1,
            Some(List::Prompts) => 2,
            Some(List::Resources) => 3,
        }
    }

    pub(super) fn read(byte: u8) -> Option<List> {
        match byte {
            1 => Some(List::Tools),
            2 => Some(List::Prompts),
            3 => Some(List::Resources),
            _ => None,
        }
    }
}
