//! The progress of several requests that are one call for an older client.
//!
//! ```text
//! recorded:  1 of 1, then the next round: 1 of 1, then: 0 of 1, 1 of 1
//! sent:      1 of 1                       2 of 2                3 of 3
//! ```

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// The progress of several requests for a client that makes one: for one token it must increase.
#[derive(Debug, Default)]
pub(in crate::answer) struct CombinedProgress {
    /// The request that is reported: its round and its token.
    request: Option<(usize, Option<Value>)>,
    /// Whether it is the first with progress.
    is_first: bool,
    /// What the requests before it reached, if it starts below that.
    base: Option<Number>,
    /// What all of them reached.
    reached: Option<Number>,
}

impl CombinedProgress {
    /// The params of a progress notification of a round. If the round starts from the beginning, what the rounds before it
    /// reached is added. `None` if the progress does not increase; that of the first request is always sent.
    pub(in crate::answer) fn combine(&mut self, round: usize, mut params: Value) -> Option<Value> {
        let Some(Value::Number(own)) = params.get("progress").cloned() else { return Some(params) };
        let request = Some((round, params.get("progressToken").cloned()));
        if self.request != request {
            self.is_first = self.request.is_none();
            self.request = request;
            self.base = self.reached.clone().filter(|reached| !is_more(&own, reached));
        }
        let far = self.base.as_ref().map_or(Some(own.clone()), |base| sum(base, &own))?;
        let rises = self.reached.as_ref().is_none_or(|reached| is_more(&far, reached));
        if !rises && !self.is_first {
            return None;
        }
        if let Some(base) = &self.base {
            params["progress"] = Value::Number(far.clone());
            if let Some(Value::Number(total)) = params.get("total") {
                params["total"] = Value::Number(sum(base, total)?);
            }
        }
        if rises {
            self.reached = Some(far);
        }
        Some(params)
    }
}

fn is_more(one: &Number, other: &Number) -> bool {
    one.as_f64().partial_cmp(&other.as_f64()) == Some(Ordering::Greater)
}

fn sum(one: &Number, other: &Number) -> Option<Number> {
    let whole = one.as_i64().zip(other.as_i64()).and_then(|(one, other)| one.checked_add(other));
    whole.map(Number::from).or_else(|| Number::from_f64(one.as_f64()? + other.as_f64()?))
}
