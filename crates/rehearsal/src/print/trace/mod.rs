//! Recordings in their printed form: text for users, JSON for programs.

mod diff;
mod finding;
mod row;
mod stats;
mod timeline;

pub(crate) use diff::{CallDifference, print_difference};
pub(crate) use finding::{CheckTotals, FindingPrinter};
pub(crate) use row::Row;
pub(crate) use stats::print_stats;
pub(crate) use timeline::{Columns, Detail, Numbering, TimelinePrinter, failed, plural};
