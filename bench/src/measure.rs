//! How long things take, beside each other.

use std::time::{Duration, Instant};

/// How thoroughly to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// How often each side has its turn.
    pub(crate) rounds: usize,
}

/// What the rounds gave: the time that one operation takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    pub(crate) ours: Duration,
    pub(crate) bare: Duration,
    /// The median of the ratios, not the ratio of the medians: what slows a round down slows both sides of it.
    pub(crate) ratio: f64,
}

impl Plan {
    /// Turns of ours and of the bare loop, one after the other; each returns what one operation took.
    pub(crate) fn beside<E>(
        self,
        mut ours: impl FnMut() -> Result<Duration, E>,
        mut bare: impl FnMut() -> Result<Duration, E>,
    ) -> Result<Beside, E> {
        // The first turn of each only warms up.
        (ours()?, bare()?);
        let mut rounds = Vec::new();
        for _ in 0..self.rounds.max(1) {
            rounds.push((ours()?, bare()?));
        }
        Ok(Beside {
            ours: Duration::from_secs_f64(median(rounds.iter().map(|(ours, _)| ours.as_secs_f64()))),
            bare: Duration::from_secs_f64(median(rounds.iter().map(|(_, bare)| bare.as_secs_f64()))),
            ratio: median(rounds.iter().map(|(ours, bare)| ours.as_secs_f64() / bare.as_secs_f64())),
        })
    }
}

/// What one of `times` operations takes.
pub(crate) fn each(times: u32, mut operation: impl FnMut()) -> Duration {
    let started = Instant::now();
    (0..times).for_each(|_| operation());
    per(started.elapsed(), times)
}

/// A share of a time; finer than `Duration`'s own division, which counts whole nanoseconds, would be if it were summed.
pub(crate) fn per(whole: Duration, times: u32) -> Duration {
    Duration::from_secs_f64(whole.as_secs_f64() / f64::from(times))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
