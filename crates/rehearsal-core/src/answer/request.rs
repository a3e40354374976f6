//! Requests of any other method, answered by rules.

use std::sync::Arc;

use serde_json::Value;

use super::act::World;
use super::asked::Facts;
use super::begin::{Begun, entered};
use super::content::Workshop;
use super::offer::{Numbers, rules};
use super::play::{Cast, Play};
use super::rule::Rules;
use super::scene::{Kind, Owner};
use super::state::State;
use super::target::Target;
use super::terms::Memory;
use super::{Asked, Mock};
use crate::message::Method;
use crate::script::mock;

/// The rules of a method.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) label: Arc<str>,
    pub(super) number: usize,
    pub(super) rules: Rules,
}

impl Request {
    pub(super) fn compile(written: &mock::Request, numbers: &mut Numbers, shop: &mut Workshop<'_>) -> Request {
        let owner = Owner { kind: Kind::Request, uri: None, mime_type: None, description: None, otherwise: None };
        let rules = rules(&written.answers, &owner, None, numbers, shop);
        let method = written.method.value.clone();
        Request { label: method.as_str().into(), method, number: numbers.target(), rules }
    }
}

impl Mock {
    /// Begins to answer a request whose method has rules, by its position; gives it back where none of them fits.
    pub(super) fn request(
        self: &Arc<Mock>,
        at: usize,
        asked: Asked,
        memory: &mut Memory,
        state: &mut State,
        world: &World<'_>,
    ) -> Result<Begun, Box<Asked>> {
        let request = &self.requests[at];
        let mut arguments = asked.params.clone();
        arguments.as_object_mut().and_then(|params| params.shift_remove("_meta"));
        let call = state.call(request.number);
        let values = state.snapshot();
        let found = request.rules.find(&arguments, &Facts { asked: &asked, call, state: &values }, state);
        drop(values);
        let Some(position) = found else { return Err(Box::new(asked)) };
        if let Some(turn) = request.rules.get(position) {
            state.give(turn.rule);
        }
        let uri = asked.params.get("uri").and_then(Value::as_str).unwrap_or_default();
        match &asked.method {
            method if *method == Method::RESOURCES_SUBSCRIBE => drop(memory.subscriptions.insert(uri.to_owned())),
            method if *method == Method::RESOURCES_UNSUBSCRIBE => drop(memory.subscriptions.remove(uri)),
            _ => {}
        }
        let target = Target::Request(at);
        let cast = Cast { mock: Arc::clone(self), asked: Arc::new(asked), target, arguments, remarks: Vec::new() };
        Ok(entered(Play::new(cast, position, call), state, world))
    }
}
