//! The output format: data for stdout, messages for stderr.
//!
//! A printer formats; it never decides whether a result is good or bad.

mod content;
mod details;
mod dry_run;
mod exec;
mod json;
mod lists;
mod message;
mod parameter;
mod report;
mod schema_fields;
mod stderr;
mod table;
mod terminal;
mod trace;

pub(crate) use content::{byte_size, messages, resource, tool_answer};
pub(crate) use dry_run::dry_run_page;
pub(crate) use exec::exec_page;
pub(crate) use json::{pretty_json, raw_json};
pub(crate) use lists::PrintedLists;
pub(crate) use message::{log_line, progress_line, wire_line};
pub(crate) use parameter::{Parameter, accepts_unknown, parameters, prompt_parameters};
pub(crate) use report::{print_report, print_report_json};
pub(crate) use stderr::{StderrPrinter, snippet};
pub(crate) use terminal::{Palette, Terminal, USUAL_WIDTH, sanitize_line};
pub(crate) use trace::{
    CallDifference, CheckTotals, Columns, Detail, FindingPrinter, Numbering, Row, TimelinePrinter, failed, plural,
    print_difference, print_stats,
};
