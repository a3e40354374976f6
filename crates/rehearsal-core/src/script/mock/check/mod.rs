//! What is wrong with a mock that was understood: everything that can be told without running it.

mod arguments;
mod checker;
pub(crate) use checker::{About, Inner, check};
