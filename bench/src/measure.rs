//! How long things take, beside each other.

use std::time::{Duration, Instant};

use crate::table::{Row, Table};

/// Two ways to the same end.
pub(crate) struct Contest {
    /// What is done.
    pub(crate) what: String,
    /// What the bare way is.
    pub(crate) bare: &'static str,
    /// How many bytes one operation is about, where that matters.
    pub(crate) bytes: Option<usize>,
}

impl Contest {
    pub(crate) fn new(what: impl Into<String>, bare: &'static str) -> Contest {
        Contest { what: what.into(), bare, bytes: None }
    }
}

impl Table {
    /// Whether anybody wants to know; for those who have much to prepare.
    pub(crate) fn wants(&self, what: &str) -> bool {
        self.only.as_ref().is_none_or(|only| what.contains(only.as_str()))
    }

    /// Whether anybody wants to know how much memory is held; only where it is asked for, because a million calls take a
    /// while.
    pub(crate) fn wants_memory(&self) -> bool {
        self.only.as_ref().is_some_and(|only| "memory".contains(only.as_str()))
    }

    /// Turns of ours and of the bare way, one after the other; each returns what one operation took.
    pub(crate) fn measure<E>(
        &mut self,
        contest: Contest,
        mut ours: impl FnMut() -> Result<Duration, E>,
        mut bare: impl FnMut() -> Result<Duration, E>,
    ) -> Result<(), E> {
        if !self.wants(&contest.what) {
            return Ok(());
        }
        // The first turn of each only warms up.
        ours()?;
        bare()?;
        let mut rounds = Vec::new();
        for _ in 0..self.rounds.max(1) {
            rounds.push((ours()?.as_secs_f64(), bare()?.as_secs_f64()));
        }
        self.rows.push(Row {
            contest,
            ours: Duration::from_secs_f64(median(rounds.iter().map(|(ours, _)| *ours))),
            bare: Duration::from_secs_f64(median(rounds.iter().map(|(_, bare)| *bare))),
            ratio: median(rounds.iter().map(|(ours, bare)| ours / bare)),
        });
        Ok(())
    }
}

/// What one of `times` operations takes.
pub(crate) fn each(times: u32, mut operation: impl FnMut()) -> Duration {
    let started = Instant::now();
    (0..times).for_each(|_| operation());
    started.elapsed() / times
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
