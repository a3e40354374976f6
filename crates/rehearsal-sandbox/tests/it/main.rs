//! Plans in real worker processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod compile;
mod escapes;
mod kit;
mod limits;
mod places;
mod values;
