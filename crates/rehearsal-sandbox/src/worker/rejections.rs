//! Promises that were rejected and that nothing handles: failures that a plan would not notice.

use std::cell::RefCell;

use rquickjs::{Ctx, Persistent, Value};

/// The most rejections that are kept.
const MAX_REJECTIONS: usize = 100;

type Rejection = (Persistent<Value<'static>>, Persistent<Value<'static>>);

/// Rejected promises with their reasons.
#[derive(Default)]
pub(super) struct Rejections(RefCell<Vec<Rejection>>);

impl Rejections {
    /// The engine calls this when a promise without handlers is rejected, and when a handler is added later.
    pub(super) fn track<'js>(&self, ctx: &Ctx<'js>, promise: Value<'js>, reason: Value<'js>, is_handled: bool) {
        let mut rejections = self.0.borrow_mut();
        if is_handled {
            rejections.retain(|(other, _)| other.clone().restore(ctx).is_ok_and(|other| other != promise));
        } else if rejections.len() < MAX_REJECTIONS {
            rejections.push((Persistent::save(ctx, promise), Persistent::save(ctx, reason)));
        }
    }

    /// The reasons of the promises that nothing handled, in the order of their rejection.
    pub(super) fn take<'js>(&self, ctx: &Ctx<'js>) -> Vec<Value<'js>> {
        let rejections = std::mem::take(&mut *self.0.borrow_mut());
        rejections.into_iter().filter_map(|(_, reason)| reason.restore(ctx).ok()).collect()
    }

    /// Drops what is left.
    pub(super) fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}
