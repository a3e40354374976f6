//! Recordings in their printed form, for users and for programs.

mod change;
mod finding;
mod row;
mod stats;
mod timeline;

pub(crate) use change::{CallDifference, print_change};
pub(crate) use finding::{CheckTotals, FindingPrinter};
pub(crate) use row::Row;
pub(crate) use stats::print_stats;
pub(crate) use timeline::{Columns, Detail, TimelinePrinter, failed, plural};
