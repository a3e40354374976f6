//! Reports: the results of checks, independent of how they are printed.
//!
//! ```text
//! Report ──► Case ──► Finding ──► Place, mismatches, hint
//!    └──────── Finding                 (about the whole rather than one case)
//! ```
//!
//! A report stores facts. Verdicts and counts are computed from them, so a printer never decides anything.

mod finding;
#[expect(clippy::module_inception, reason = "a file is named after the one thing in it")]
mod report;

pub use finding::{ChangedValues, Finding, Location, Severity};
pub use report::{Case, CaseStatus, Report, Verdict, VerdictCounts};
