//! What the findings amount to.

use std::fmt;

use serde::Serialize;

/// What became of a case, or of a whole report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It ran, and no finding is an error.
    Passed,
    /// At least one finding is an error.
    Failed,
    /// It did not run.
    Skipped,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::Skipped => "skipped",
        })
    }
}
