//! The report of a check.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::finding::{Finding, Severity};

/// The results of all checks of one subject: a suite, a trace, a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The subject: the name of the suite, or the file.
    pub title: String,
    /// Findings about the whole subject rather than one case.
    pub findings: Vec<Finding>,
    /// The checked cases, in order.
    pub cases: Vec<Case>,
}

/// The number of cases with each verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct VerdictCounts {
    /// Cases that ran without an error.
    pub passed: usize,
    /// Cases with an error.
    pub failed: usize,
    /// Cases that did not run.
    pub skipped: usize,
}

impl Report {
    /// An empty report.
    pub fn new(title: impl Into<String>) -> Report {
        Report { title: title.into(), findings: Vec::new(), cases: Vec::new() }
    }

    /// The verdict of the report: one failed case fails it, and it is skipped if all its cases were skipped.
    pub fn verdict(&self) -> Verdict {
        let counts = self.counts();
        if counts.failed > 0 || has_error(&self.findings) {
            Verdict::Failed
        } else if counts.skipped > 0 && counts.passed == 0 {
            Verdict::Skipped
        } else {
            Verdict::Passed
        }
    }

    /// The number of cases with each verdict.
    pub fn counts(&self) -> VerdictCounts {
        let mut counts = VerdictCounts::default();
        for case in &self.cases {
            match case.verdict() {
                Verdict::Passed => counts.passed += 1,
                Verdict::Failed => counts.failed += 1,
                Verdict::Skipped => counts.skipped += 1,
            }
        }
        counts
    }

    /// The sum of the durations of all cases.
    pub fn took(&self) -> Duration {
        let durations = self.cases.iter().map(|case| match &case.run {
            CaseStatus::Ran { took } => *took,
            CaseStatus::Skipped { .. } => Duration::ZERO,
        });
        durations.fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Every finding, those about the whole first.
    pub fn all_findings(&self) -> impl Iterator<Item = &Finding> {
        let of_cases = self.cases.iter().flat_map(|case| &case.findings);
        self.findings.iter().chain(of_cases)
    }
}

/// One checked case with its findings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Case {
    /// The name, which the author of the check chose.
    pub name: String,
    /// Whether it ran.
    pub run: CaseStatus,
    /// The findings, in the order in which they were found.
    pub findings: Vec<Finding>,
}

/// Whether a case ran.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseStatus {
    /// It ran to its end, which may be a failure.
    Ran {
        /// How long it took.
        #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
        took: Duration,
    },
    /// It did not run.
    Skipped {
        /// The reason.
        reason: String,
    },
}

fn milliseconds<S: Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(took.as_secs_f64() * 1000.0)
}

impl Case {
    /// A case that ran, with nothing found yet.
    pub fn ran(name: impl Into<String>, took: Duration) -> Case {
        Case { name: name.into(), run: CaseStatus::Ran { took }, findings: Vec::new() }
    }

    /// A case that did not run.
    pub fn skipped(name: impl Into<String>, reason: impl Into<String>) -> Case {
        let reason = reason.into();
        Case { name: name.into(), run: CaseStatus::Skipped { reason }, findings: Vec::new() }
    }

    /// Adds a finding.
    #[must_use]
    pub fn with(mut self, finding: Finding) -> Case {
        self.findings.push(finding);
        self
    }

    /// The verdict of the case: an error fails the case even if it was skipped.
    pub fn verdict(&self) -> Verdict {
        match &self.run {
            _ if has_error(&self.findings) => Verdict::Failed,
            CaseStatus::Ran { .. } => Verdict::Passed,
            CaseStatus::Skipped { .. } => Verdict::Skipped,
        }
    }
}

pub(super) fn has_error(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}

/// The verdict of a case, or of a whole report.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn passed() -> Case {
        Case::ran("passed", Duration::from_millis(2))
    }

    fn failed() -> Case {
        Case::ran("failed", Duration::from_millis(3)).with(Finding::error("wrong"))
    }

    fn skipped() -> Case {
        Case::skipped("skipped", "not today")
    }

    fn report(cases: Vec<Case>) -> Report {
        Report { cases, ..Report::new("weather") }
    }

    #[test]
    fn one_failed_case_fails_the_report() {
        for (cases, verdict) in [
            (vec![], Verdict::Passed),
            (vec![passed(), skipped()], Verdict::Passed),
            (vec![skipped()], Verdict::Skipped),
            (vec![passed(), failed(), skipped()], Verdict::Failed),
        ] {
            assert_eq!(report(cases.clone()).verdict(), verdict, "{cases:?}");
        }
    }

    #[test]
    fn an_error_about_the_whole_fails_the_report_without_a_case() {
        let mut report = report(vec![passed()]);
        report.findings.push(Finding::error("server did not start"));
        assert_eq!(report.verdict(), Verdict::Failed);
        assert_eq!(report.all_findings().count(), 1);
    }

    #[test]
    fn summaries_are_computed_from_the_cases() {
        let report = report(vec![passed(), failed(), skipped()]);
        let counts = VerdictCounts { passed: 1, failed: 1, skipped: 1 };
        assert_eq!(report.counts(), counts);
        assert_eq!(report.took(), Duration::from_millis(5));
    }

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
    fn a_case_in_json_has_its_duration() {
        let case = Case::ran("rain", Duration::from_micros(1500));
        assert_eq!(
            serde_json::to_value(case).unwrap(),
            json!({"name": "rain", "run": {"ran": {"duration_ms": 1.5}}, "findings": []})
        );
    }
}
