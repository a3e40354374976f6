//! The results, as text and as JSON.

use std::fmt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Everything that one run measures.
pub(crate) struct Table {
    /// The CPU that it all runs on.
    pub(crate) cpu: Option<usize>,
    /// The number of turns of each side.
    pub(crate) rounds: usize,
    /// If set, only contests with this in their name are measured.
    pub(crate) only: Option<String>,
    /// The results so far.
    pub(crate) rows: Vec<Row>,
}

/// One measurement.
pub(crate) struct Row {
    pub(crate) contest: Contest,
    /// The time of one of our operations.
    pub(crate) ours: Duration,
    /// The time of one operation of the other side.
    pub(crate) bare: Duration,
    /// The median of the ratios, not the ratio of the medians: a disturbance in a round slows both sides.
    pub(crate) ratio: f64,
}

impl Table {
    /// One object; times in nanoseconds.
    pub(crate) fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "what": row.contest.what,
                "bare": row.contest.bare,
                "ours_ns": nanoseconds(row.ours),
                "bare_ns": nanoseconds(row.bare),
                "ratio": (row.ratio * 1000.0).round() / 1000.0,
                "bytes": row.contest.bytes,
            })
        });
        json!({"cpu": self.cpu, "rounds": self.rounds, "rows": rows.collect::<Vec<_>>()})
    }
}

fn nanoseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e10).round() / 10.0
}

impl fmt::Display for Table {
    /// ```text
    /// what                     ours        bare  ratio       ours/s  bare is
    /// call_tool over stdio   6.9 µs      5.0 µs   1.38      144,928  a blocking loop
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["what", "ours", "bare", "ratio", "ours/s", "bare is"].map(str::to_owned);
        let rows: Vec<_> = std::iter::once(head).chain(self.rows.iter().map(cells)).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; 6] = std::array::from_fn(width);
        for [what, ours, bare, ratio, rate, limit] in &rows {
            let [first, second, third, fourth, fifth, _] = widths;
            write!(f, "{what:first$}  {ours:>second$}  {bare:>third$}  {ratio:>fourth$}  ")?;
            writeln!(f, "{rate:>fifth$}  {limit}")?;
        }
        let cpu = match self.cpu {
            Some(cpu) => format!("one CPU (number {cpu}) for both ends"),
            None => "both ends on whatever CPU the kernel gives them".to_owned(),
        };
        writeln!(f, "\n{cpu}, medians of {} rounds", self.rounds)
    }
}

fn cells(row: &Row) -> [String; 6] {
    let Row { contest, ours, bare, ratio } = row;
    let rate = match contest.bytes {
        Some(bytes) => format!("{:.0} MB", bytes as f64 / ours.as_secs_f64() / 1e6),
        None => thousands(1.0 / ours.as_secs_f64()),
    };
    [contest.what.clone(), time(*ours), time(*bare), format!("{ratio:.2}"), rate, contest.bare.to_owned()]
}

/// `312 ns`, `6.9 µs`, `1.20 ms`
fn time(time: Duration) -> String {
    let nanoseconds = time.as_secs_f64() * 1e9;
    match nanoseconds {
        ..1e3 => format!("{nanoseconds:.0} ns"),
        ..1e6 => format!("{:.2} µs", nanoseconds / 1e3),
        _ => format!("{:.2} ms", nanoseconds / 1e6),
    }
}

/// `144,928`
fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// Two ways to do the same work.
pub(crate) struct Contest {
    /// The work.
    pub(crate) what: String,
    /// The other side.
    pub(crate) bare: &'static str,
    /// The number of bytes of one operation, for a throughput.
    pub(crate) bytes: Option<usize>,
}

impl Contest {
    pub(crate) fn new(what: impl Into<String>, bare: &'static str) -> Contest {
        Contest { what: what.into(), bare, bytes: None }
    }
}

impl Table {
    /// Whether the table measures this, so that a caller can skip expensive preparation.
    pub(crate) fn wants(&self, what: &str) -> bool {
        self.only.as_ref().is_none_or(|only| what.contains(only.as_str()))
    }

    /// Whether memory is measured: only if `--only` names it, because a million calls take a while.
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

/// Runs an operation `times` times, and returns the time of one.
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
