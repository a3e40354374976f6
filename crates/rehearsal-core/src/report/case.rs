//! One thing that was checked.

use std::time::Duration;

use serde::{Serialize, Serializer};

use super::finding::{Finding, Severity};
use super::verdict::Verdict;

/// One thing that was checked, and what was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Case {
    /// What was checked, in the words of whoever wrote the check.
    pub name: String,
    /// Whether it ran.
    pub run: Run,
    /// What was found, in the order in which it was found.
    pub findings: Vec<Finding>,
}

/// Whether a case ran.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Run {
    /// It ran to its end, which may be a failure.
    Ran {
        /// How long it took.
        #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
        took: Duration,
    },
    /// It did not run.
    Skipped {
        /// Why not.
        reason: String,
    },
}

fn milliseconds<S: Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(took.as_secs_f64() * 1000.0)
}

impl Case {
    /// A case that ran, with nothing found yet.
    pub fn ran(name: impl Into<String>, took: Duration) -> Case {
        Case { name: name.into(), run: Run::Ran { took }, findings: Vec::new() }
    }

    /// A case that did not run.
    pub fn skipped(name: impl Into<String>, reason: impl Into<String>) -> Case {
        let reason = reason.into();
        Case { name: name.into(), run: Run::Skipped { reason }, findings: Vec::new() }
    }

    /// The same case with one more finding.
    #[must_use]
    pub fn with(mut self, finding: Finding) -> Case {
        self.findings.push(finding);
        self
    }

    /// What the findings amount to: an error fails the case even if it was skipped.
    pub fn verdict(&self) -> Verdict {
        match &self.run {
            _ if has_error(&self.findings) => Verdict::Failed,
            Run::Ran { .. } => Verdict::Passed,
            Run::Skipped { .. } => Verdict::Skipped,
        }
    }
}

pub(super) fn has_error(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_an_error_fails_a_case() {
        let ran = || Case::ran("rain in Oslo", Duration::from_millis(3));
        let skipped = || Case::skipped("rain in Oslo", "no server");
        for (case, verdict) in [
            (ran(), Verdict::Passed),
            (ran().with(Finding::note("slow")), Verdict::Passed),
            (ran().with(Finding::warning("slow")), Verdict::Passed),
            (ran().with(Finding::error("wrong")), Verdict::Failed),
            (skipped(), Verdict::Skipped),
            (skipped().with(Finding::error("wrong")), Verdict::Failed),
        ] {
            assert_eq!(case.verdict(), verdict, "{case:?}");
        }
    }

    #[test]
    fn a_case_in_json_says_how_long_it_took() {
        let case = Case::ran("rain", Duration::from_micros(1500));
        assert_eq!(
            serde_json::to_value(case).unwrap(),
            json!({"name": "rain", "run": {"ran": {"duration_ms": 1.5}}, "findings": []})
        );
    }
}
