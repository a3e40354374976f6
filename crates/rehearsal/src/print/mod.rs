//! The output format: data for stdout, messages for stderr.
//!
//! A printer formats; it never decides whether a result is good or bad.

mod content;
mod details;
mod dry_run;
mod json;
mod lists;
mod parameter;
mod report;
mod screen;
mod server_messages;
mod table;
mod talk;
mod trace;

pub(crate) use content::{bytes_in_words, messages, resource, tool_answer};
pub(crate) use dry_run::dry_run_page;
pub(crate) use json::{pretty_json, raw_json};
pub(crate) use lists::Lists;
pub(crate) use parameter::{Parameter, accepts_unknown, parameters, prompt_parameters};
pub(crate) use report::{print_report, print_report_json};
pub(crate) use screen::Palette;
pub(crate) use screen::sanitize_line;
pub(crate) use screen::{Terminal, USUAL_WIDTH};
pub(crate) use server_messages::wire_line;
pub(crate) use server_messages::{log_line, progress_line};
pub(crate) use talk::StderrPrinter;
pub(crate) use talk::snippet;
pub(crate) use trace::{
    CallDifference, CheckTotals, Columns, Detail, FindingPrinter, Row, TimelinePrinter, failed, plural, print_change,
    print_stats,
};
