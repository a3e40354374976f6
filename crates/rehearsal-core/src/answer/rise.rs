//! How far a call is, where several became one.
//!
//! ```text
//! recorded:  1 of 1, then the next round: 1 of 1, then: 0 of 1, 1 of 1
//! said:      1 of 1                       2 of 2                3 of 3
//! ```

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// The progress of several requests, said to a client that makes one: for one token it has to rise.
#[derive(Debug, Default)]
pub struct Rise {
    /// The request that is told of: which round, and its token.
    request: Option<(usize, Option<Value>)>,
    /// Whether it is the first that tells how far it is.
    is_first: bool,
    /// How far those before it came, where it does not go on from there by itself.
    base: Option<Number>,
    /// How far all of them are.
    reached: Option<Number>,
}

impl Rise {
    /// What is said of how far a round is: what those before it reached is added, where it begins anew. `None` where that does not
    /// rise. The first is said as it is, whatever its server made of it.
    pub fn lift(&mut self, round: usize, mut params: Value) -> Option<Value> {
        let Some(Value::Number(said)) = params.get("progress").cloned() else { return Some(params) };
        let request = Some((round, params.get("progressToken").cloned()));
        if self.request != request {
            self.is_first = self.request.is_none();
            self.request = request;
            self.base = self.reached.clone().filter(|reached| !is_more(&said, reached));
        }
        let far = self.base.as_ref().map_or(Some(said.clone()), |base| sum(base, &said))?;
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
