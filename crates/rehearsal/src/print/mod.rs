//! How things look: data for stdout, talk for stderr.
//!
//! A printer formats; it never decides whether something is good or bad.

mod content;
mod details;
mod json;
mod lists;
mod palette;
mod parameter;
mod report;
mod screen;
mod snippet;
mod table;
mod talk;
mod told;
mod trace;
mod visible;
mod wire;
mod wrap;

pub(crate) use content::{bytes_in_words, messages, resource, tool_answer};
pub(crate) use json::{pretty_json, raw_json};
pub(crate) use lists::Lists;
pub(crate) use palette::Palette;
pub(crate) use parameter::{Parameter, accepts_unknown, parameters, prompt_parameters};
pub(crate) use report::{print_report, print_report_json};
pub(crate) use screen::{Screen, USUAL_WIDTH};
pub(crate) use snippet::snippet;
pub(crate) use talk::Talk;
pub(crate) use told::{log_line, progress_line};
pub(crate) use trace::{
    Change, Checked, Columns, Detail, FindingPrinter, Row, TimelinePrinter, failed, plural, print_change, print_stats,
};
pub(crate) use visible::one_line;
pub(crate) use wire::wire_line;
