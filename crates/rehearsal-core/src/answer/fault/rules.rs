//! Chooses the fault of a request, by method, number or chance.

use std::time::Duration;

use crate::matcher::Matcher;
use crate::script::mock::{Delay, FaultKind, FaultRule};
use crate::script::{Located, Parsed, ScriptProblem};

/// Compiled rules for faults.
#[derive(Clone, Debug, Default)]
pub struct FaultRules(Vec<CompiledFault>);

#[derive(Clone, Debug)]
struct CompiledFault {
    /// The index of the rule's request counter.
    number: usize,
    kind: FaultKind,
    method: Option<Matcher>,
    call: Option<Matcher>,
    probability: f64,
    seed: u64,
}

impl FaultRules {
    /// Compiles rules. Each rule gets the index of a counter for the requests that it may apply to.
    pub fn compile(rules: &[FaultRule], numbers: &mut usize, problems: &mut Vec<ScriptProblem>) -> FaultRules {
        let mut faults = Vec::with_capacity(rules.len());
        for rule in rules {
            match CompiledFault::compile(rule, *numbers) {
                Ok(fault) => faults.push(fault),
                Err(problem) => problems.push(problem),
            }
            *numbers += 1;
        }
        FaultRules(faults)
    }

    /// The faults of all rules.
    pub fn kinds(&self) -> impl Iterator<Item = &FaultKind> {
        self.0.iter().map(|fault| &fault.kind)
    }

    /// The fault of a request: the one of the first rule that applies.
    ///
    /// A rule counts every request of its method, even if an earlier rule applies; the caller keeps `counts`.
    pub fn next_fault(&self, method: &str, counts: &mut [u64]) -> Option<&FaultKind> {
        let mut found = None;
        for fault in &self.0 {
            if fault.method.as_ref().is_some_and(|matcher| !matcher.matches(&method.into())) {
                continue;
            }
            let Some(count) = counts.get_mut(fault.number) else { continue };
            *count += 1;
            if found.is_none() && fault.fits(*count) {
                found = Some(&fault.kind);
            }
        }
        found
    }
}

impl CompiledFault {
    fn compile(rule: &FaultRule, number: usize) -> Result<CompiledFault, ScriptProblem> {
        let matcher = |written: &Option<Located<Parsed<Matcher>>>| match written {
            None => Ok(None),
            Some(written) => match written.parsed() {
                Ok(matcher) => Ok(Some(matcher.clone())),
                Err(error) => Err(ScriptProblem::new(written.at, error.to_string())),
            },
        };
        let probability = match &rule.probability {
            None => 1.0,
            Some(given) if (0.0..=1.0).contains(&given.value) => given.value,
            Some(given) => {
                let message = format!("a probability is from 0 to 1, and {} is not", given.value);
                return Err(ScriptProblem::new(given.at, message));
            }
        };
        rule.fault.check().map_err(|message| ScriptProblem::new(rule.fault.at, message))?;
        Ok(CompiledFault {
            number,
            kind: rule.fault.value.clone(),
            method: matcher(&rule.method)?,
            call: matcher(&rule.call)?,
            probability,
            seed: rule.seed.unwrap_or_default(),
        })
    }

    /// Whether the rule applies to the request of its method with this number.
    fn fits(&self, count: u64) -> bool {
        self.call.as_ref().is_none_or(|matcher| matcher.matches(&count.into()))
            && happens(self.probability, self.seed, count)
    }
}

/// A pseudorandom number that is always the same for a seed and a call.
fn mixed(seed: u64, call: u64) -> u64 {
    // The finaliser of splitmix64, over a step that keeps neighbouring calls and neighbouring seeds apart.
    let mut bits = seed.wrapping_mul(0xd6e8_feb8_6659_fd93).wrapping_add(call.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// From 0 up to but not including 1.
fn fraction(seed: u64, call: u64) -> f64 {
    // 53 bits are what a double can hold.
    (mixed(seed, call) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Whether an event of this probability happens at this call.
pub fn happens(probability: f64, seed: u64, call: u64) -> bool {
    fraction(seed, call) < probability
}

/// The length of a delay at this call.
pub fn delay_at(delay: Delay, seed: u64, call: u64) -> Duration {
    let jitter = delay.to.saturating_sub(delay.from);
    // The seed differs from that of the fault itself; otherwise rare faults would all have short delays.
    delay.from + jitter.mul_f64(fraction(!seed, call))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{mock::MockFile, read};

    fn rules(text: &str) -> Vec<FaultRule> {
        read::<MockFile>("m.yaml", text).unwrap().faults
    }

    fn faults(text: &str) -> (FaultRules, Vec<ScriptProblem>) {
        let mut problems = Vec::new();
        let faults = FaultRules::compile(&rules(text), &mut 0, &mut problems);
        (faults, problems)
    }

    #[test]
    fn a_fault_applies_to_its_method_and_its_call_number() {
        let text =
            "faults:\n  - { fault: hang, method: tools/call, call: 2 }\n  - { fault: wrong_id, call: { gte: 5 } }";
        let (faults, _) = faults(text);
        let mut counts = [0; 2];
        let mut next_fault = |method| faults.next_fault(method, &mut counts).cloned();
        assert_eq!(next_fault("initialize"), None);
        assert_eq!(next_fault("tools/call"), None);
        assert_eq!(next_fault("tools/list"), None);
        assert_eq!(next_fault("tools/call"), Some(FaultKind::Hang), "the second of its method");
        assert_eq!(next_fault("tools/call"), Some(FaultKind::WrongId), "the fifth of all");
    }

    #[test]
    fn faults_with_a_probability_hit_the_same_calls_in_every_run() {
        let run = || {
            let (faults, _) = faults("faults: [{ fault: hang, probability: 0.3, seed: 11 }]");
            let mut counts = [0];
            (1..=50).map(|_| faults.next_fault("ping", &mut counts).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
        let failed = run().into_iter().filter(|failed| *failed).count();
        assert!((5..=25).contains(&failed), "{failed}");
    }

    #[test]
    fn an_invalid_fault_rule_is_reported_with_its_place() {
        let table = [
            ("faults: [{ fault: hang, probability: 2 }]", (1, 38), "a probability is from 0 to 1, and 2 is not"),
            ("faults: [{ fault: hang, method: { matches: \"(\" } }]", (1, 33), "not a regular expression"),
            (
                "faults: [{ fault: { http: { status: 42 } } }]",
                (1, 19),
                "an HTTP status is from 200 to 599, and 42 is not",
            ),
            (
                "faults: [{ fault: { slow_drip: { bytes: 0, every: 1ms } } }]",
                (1, 19),
                "`bytes` of `slow_drip` must be at least 1",
            ),
            ("faults: [{ fault: { exit: 256 } }]", (1, 19), "an exit status is from 0 to 255, and 256 is not"),
        ];
        for (text, (line, column), what) in table {
            let (_, problems) = faults(text);
            assert_eq!((problems[0].at.line, problems[0].at.column), (line, column), "{text}");
            assert!(problems[0].message.contains(what), "{text}: {}", problems[0].message);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_faults_and_another_seed_others() {
        let run = |seed| (1..=64).map(|call| happens(0.5, seed, call)).collect::<Vec<_>>();
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
        assert_ne!(run(0), run(u64::MAX));
    }

    #[test]
    fn the_share_of_faults_is_the_probability() {
        for seed in [0, 1, 42, u64::MAX] {
            for probability in [0.01, 0.1, 0.5, 0.9] {
                let count = (1..=100_000).filter(|call| happens(probability, seed, *call)).count();
                let share = count as f64 / 100_000.0;
                assert!((share - probability).abs() < 0.01, "{seed} {probability}: {share}");
            }
            assert!((1..1000).all(|call| happens(1.0, seed, call) && !happens(0.0, seed, call)));
        }
    }

    #[test]
    fn jitter_stays_between_its_ends() {
        let delay = Delay { from: Duration::from_millis(10), to: Duration::from_millis(50) };
        let times: Vec<_> = (1..1000).map(|call| delay_at(delay, 3, call)).collect();
        assert!(times.iter().all(|time| (delay.from..=delay.to).contains(time)));
        assert!(times.iter().any(|time| *time < Duration::from_millis(15)));
        assert!(times.iter().any(|time| *time > Duration::from_millis(45)));
        let fixed = Delay { from: delay.from, to: delay.from };
        assert_eq!(delay_at(fixed, 3, 9), delay.from);
    }
}
