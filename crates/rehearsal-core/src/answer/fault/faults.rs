//! Which fault happens to which request.

use serde_json::Value;

use super::chance::happens;
use crate::matcher::{Matcher, MatcherError};
use crate::script::Span;
use crate::script::mock::{FaultKind, FaultRule};

/// What goes wrong, and when: ready to be asked for each request.
#[derive(Clone, Debug, Default)]
pub struct Faults(Vec<Fault>);

#[derive(Clone, Debug)]
struct Fault {
    kind: FaultKind,
    method: Option<Matcher>,
    call: Option<Matcher>,
    probability: f64,
    seed: u64,
}

/// A rule that says nothing sensible, and where.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what}")]
pub struct FaultError {
    /// Where in the file.
    pub at: Span,
    /// What is wrong: a lowercase fragment.
    pub what: String,
}

impl Faults {
    /// Makes rules ready; all that is wrong with them otherwise.
    pub fn compile(rules: &[FaultRule]) -> Result<Faults, Vec<FaultError>> {
        let mut faults = Vec::with_capacity(rules.len());
        let mut errors = Vec::new();
        for rule in rules {
            match Fault::compile(rule) {
                Ok(fault) => faults.push(fault),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(Faults(faults)) } else { Err(errors) }
    }

    /// Whether nothing ever goes wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What goes wrong with a request: the first rule that fits. Calls count from 1.
    pub fn which(&self, method: &str, call: u64) -> Option<&FaultKind> {
        self.0.iter().find(|fault| fault.fits(method, call)).map(|fault| &fault.kind)
    }
}

impl Fault {
    fn compile(rule: &FaultRule) -> Result<Fault, FaultError> {
        let matcher = |written: &Option<crate::script::Located<Value>>| match written {
            None => Ok(None),
            Some(written) => Matcher::parse(written)
                .map(Some)
                .map_err(|error: MatcherError| FaultError { at: written.at, what: error.to_string() }),
        };
        let probability = match &rule.probability {
            None => 1.0,
            Some(given) if (0.0..=1.0).contains(&given.value) => given.value,
            Some(given) => {
                let what = format!("a probability is from 0 to 1, and {} is not", given.value);
                return Err(FaultError { at: given.at, what });
            }
        };
        rule.fault.check().map_err(|what| FaultError { at: rule.fault.at, what })?;
        Ok(Fault {
            kind: rule.fault.value.clone(),
            method: matcher(&rule.method)?,
            call: matcher(&rule.call)?,
            probability,
            seed: rule.seed.unwrap_or_default(),
        })
    }

    fn fits(&self, method: &str, call: u64) -> bool {
        let fits = |matcher: &Option<Matcher>, value: &dyn Fn() -> Value| {
            matcher.as_ref().is_none_or(|matcher| matcher.matches(&value()))
        };
        fits(&self.call, &|| call.into())
            && fits(&self.method, &|| method.into())
            && happens(self.probability, self.seed, call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{mock::MockFile, read};

    fn rules(text: &str) -> Vec<FaultRule> {
        read::<MockFile>("m.yaml", text).unwrap().faults
    }

    #[test]
    fn a_fault_happens_to_its_method_and_its_call() {
        let text =
            "faults:\n  - { fault: hang, method: tools/call, call: 2 }\n  - { fault: wrong_id, call: { gte: 5 } }";
        let faults = Faults::compile(&rules(text)).unwrap();
        let which = |method, call| faults.which(method, call).cloned();
        assert_eq!(which("tools/call", 1), None);
        assert_eq!(which("tools/call", 2), Some(FaultKind::Hang));
        assert_eq!(which("tools/list", 2), None);
        assert_eq!(which("tools/list", 7), Some(FaultKind::WrongId));
    }

    #[test]
    fn by_chance_the_same_calls_fail_every_time() {
        let text = "faults: [{ fault: hang, probability: 0.3, seed: 11 }]";
        let run = || {
            let faults = Faults::compile(&rules(text)).unwrap();
            (1..=50).map(|call| faults.which("ping", call).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
        let failed = run().into_iter().filter(|failed| *failed).count();
        assert!((5..=25).contains(&failed), "{failed}");
    }

    #[test]
    fn a_rule_that_says_nothing_sensible_has_a_place() {
        let table = [
            ("faults: [{ fault: hang, probability: 2 }]", (1, 38), "a probability is from 0 to 1, and 2 is not"),
            ("faults: [{ fault: hang, method: { matches: \"(\" } }]", (1, 33), "not a regular expression"),
            (
                "faults: [{ fault: { http: { status: 42 } } }]",
                (1, 19),
                "an HTTP status is from 200 to 599, and 42 is not",
            ),
            ("faults: [{ fault: { slow_drip: { bytes: 0, every: 1ms } } }]", (1, 19), "a drip has at least one byte"),
            ("faults: [{ fault: { exit: 256 } }]", (1, 19), "an exit status is from 0 to 255, and 256 is not"),
        ];
        for (text, (line, column), what) in table {
            let errors = Faults::compile(&rules(text)).unwrap_err();
            assert_eq!((errors[0].at.line, errors[0].at.column), (line, column), "{text}");
            assert!(errors[0].what.contains(what), "{text}: {}", errors[0].what);
        }
    }
}
