//! What a run may use, and which limit ended it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The limits of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanLimits {
    /// Bytes that the engine may have allocated at once. The process has 512 MB of address space for everything.
    pub memory_bytes: usize,
    /// CPU time of the worker, in milliseconds.
    pub cpu_ms: u64,
    /// Time that the host waits for the worker in total, in milliseconds. Time in [`crate::Host::idle`] does not count.
    pub wall_ms: u64,
    /// Bytes of the engine's stack.
    pub stack_bytes: usize,
    /// Calls of tools.
    pub calls: u32,
    /// Calls without a result at the same time.
    pub open_calls: u32,
    /// Bytes of one frame in either direction, so also of the arguments of all calls that are issued together.
    pub frame_bytes: usize,
    /// Bytes of console output.
    pub console_bytes: usize,
    /// Bytes of the plan's result as JSON.
    pub result_bytes: usize,
}

const MEGABYTE: usize = 1024 * 1024;

impl Default for PlanLimits {
    fn default() -> PlanLimits {
        PlanLimits {
            memory_bytes: 64 * MEGABYTE,
            cpu_ms: 1_000,
            wall_ms: 10_000,
            stack_bytes: 512 * 1024,
            calls: 10_000,
            open_calls: 1_000,
            frame_bytes: 16 * MEGABYTE,
            console_bytes: MEGABYTE,
            result_bytes: 4 * MEGABYTE,
        }
    }
}

impl PlanLimits {
    /// The longest time to wait for the worker.
    pub(crate) fn wall(&self) -> Duration {
        Duration::from_millis(self.wall_ms)
    }

    /// The longest frame of a worker that keeps its limits: JSON makes texts longer, and names and places come on top.
    pub(crate) fn longest_frame(&self) -> usize {
        let content = self.frame_bytes.saturating_add(self.console_bytes).saturating_add(self.result_bytes);
        content.saturating_mul(12).saturating_add(8 * MEGABYTE)
    }
}

/// A limit that ended a run, with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// [`PlanLimits::memory_bytes`].
    #[error("the plan exceeded the memory limit of {}", size(*.0))]
    Memory(usize),
    /// [`PlanLimits::cpu_ms`].
    #[error("the plan exceeded the CPU limit of {}", time(*.0))]
    Cpu(u64),
    /// [`PlanLimits::wall_ms`].
    #[error("the plan did not stop within {}; the worker was killed", time(*.0))]
    Wall(u64),
    /// [`PlanLimits::stack_bytes`].
    #[error("the plan exceeded the stack limit of {}: its recursion is too deep", size(*.0))]
    Stack(usize),
    /// [`PlanLimits::calls`].
    #[error("the plan made more than {0} calls")]
    Calls(u32),
    /// [`PlanLimits::open_calls`].
    #[error("the plan had more than {0} calls without a result at the same time")]
    OpenCalls(u32),
    /// [`PlanLimits::frame_bytes`].
    #[error("calls that were issued together, or their results, exceed {}", size(*.0))]
    Frame(usize),
    /// [`PlanLimits::console_bytes`].
    #[error("the console output of the plan exceeds {}", size(*.0))]
    Console(usize),
    /// [`PlanLimits::result_bytes`].
    #[error("a result of {} exceeds {}", size(*.bytes), size(*.limit))]
    Result {
        /// The size of the result.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}

/// Prints `64 MB`, `5.2 MB` or `512 kB`.
fn size(bytes: usize) -> String {
    let (unit, name) = if bytes >= MEGABYTE { (MEGABYTE, "MB") } else { (1024, "kB") };
    let tenths = bytes * 10 / unit;
    if tenths.is_multiple_of(10) {
        format!("{} {name}", tenths / 10)
    } else {
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    }
}

/// Prints `1 s` or `250 ms`.
fn time(ms: u64) -> String {
    if ms >= 1000 && ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{ms} ms") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_print_their_value() {
        let limits = PlanLimits::default();
        assert_eq!(Limit::Memory(limits.memory_bytes).to_string(), "the plan exceeded the memory limit of 64 MB");
        assert_eq!(Limit::Cpu(1000).to_string(), "the plan exceeded the CPU limit of 1 s");
        let result = Limit::Result { bytes: 5_452_596, limit: limits.result_bytes };
        assert_eq!(result.to_string(), "a result of 5.2 MB exceeds 4 MB");
        assert_eq!(
            Limit::Stack(512 * 1024).to_string().split(':').next(),
            Some("the plan exceeded the stack limit of 512 kB")
        );
    }
}
