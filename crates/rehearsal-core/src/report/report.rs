//! Everything that was checked.

use std::time::Duration;

use serde::Serialize;

use super::case::{Case, Run, has_error};
use super::finding::Finding;
use super::verdict::Verdict;

/// Everything that was checked about one subject: a suite, a trace, a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What was checked: the name of the suite, or the file.
    pub title: String,
    /// What was found about the whole rather than about one case.
    pub findings: Vec<Finding>,
    /// What was checked, in order.
    pub cases: Vec<Case>,
}

/// How many cases came to which verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Cases that ran without an error.
    pub passed: usize,
    /// Cases with an error.
    pub failed: usize,
    /// Cases that did not run.
    pub skipped: usize,
}

impl Report {
    /// A report about something that has not been looked at yet.
    pub fn new(title: impl Into<String>) -> Report {
        Report { title: title.into(), findings: Vec::new(), cases: Vec::new() }
    }

    /// What it all amounts to: one failed case fails the report, and a report is skipped when all its cases were.
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

    /// How many cases came to which verdict.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for case in &self.cases {
            match case.verdict() {
                Verdict::Passed => counts.passed += 1,
                Verdict::Failed => counts.failed += 1,
                Verdict::Skipped => counts.skipped += 1,
            }
        }
        counts
    }

    /// How long all cases took together.
    pub fn took(&self) -> Duration {
        let durations = self.cases.iter().map(|case| match &case.run {
            Run::Ran { took } => *took,
            Run::Skipped { .. } => Duration::ZERO,
        });
        durations.fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Every finding, those about the whole first.
    pub fn all_findings(&self) -> impl Iterator<Item = &Finding> {
        let of_cases = self.cases.iter().flat_map(|case| &case.findings);
        self.findings.iter().chain(of_cases)
    }
}

#[cfg(test)]
mod tests {
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
        let counts = Counts { passed: 1, failed: 1, skipped: 1 };
        assert_eq!(report.counts(), counts);
        assert_eq!(report.took(), Duration::from_millis(5));
    }
}
