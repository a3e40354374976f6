//! The tools: what is listed, and what each of them does.

mod call;
mod list;

pub(crate) use call::call;
pub(crate) use list::all;
