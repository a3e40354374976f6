//! The last lines of a stream, however much it says.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

/// How many lines are kept.
const LINES: usize = 100;
/// How much of each.
const WIDTH: usize = 4096;

/// The last lines of a child's stderr.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail {
    lines: Arc<Mutex<VecDeque<String>>>,
}

impl Tail {
    /// The lines, oldest first.
    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Reads to the end, so that the writer never waits for us. `also` sees every line.
    pub(super) async fn drain(self, mut from: impl AsyncRead + Unpin, also: impl Fn(&str)) {
        let mut chunk = vec![0; 16 * 1024];
        let mut line = Vec::new();
        loop {
            let count = match from.read(&mut chunk).await {
                Ok(0) | Err(_) => break,
                Ok(count) => count,
            };
            let mut rest = &chunk[..count];
            while let Some(end) = memchr::memchr(b'\n', rest) {
                extend(&mut line, &rest[..end]);
                self.push(&line, &also);
                line.clear();
                rest = &rest[end + 1..];
            }
            extend(&mut line, rest);
        }
        if !line.is_empty() {
            self.push(&line, &also);
        }
    }

    fn push(&self, line: &[u8], also: &impl Fn(&str)) {
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
        let shown = line.clone();
        {
            let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() == LINES {
                lines.pop_front();
            }
            lines.push_back(line);
        }
        // If whoever looks on panics, the server must not be left with a pipe that nobody reads.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| also(&shown)));
    }
}

fn extend(line: &mut Vec<u8>, more: &[u8]) {
    let room = WIDTH.saturating_sub(line.len());
    line.extend_from_slice(&more[..more.len().min(room)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flood_leaves_only_its_last_lines() {
        let tail = Tail::default();
        let flood: String = (0..100_000).map(|number| format!("line {number}\n")).collect();
        tail.clone().drain((flood + "the end").as_bytes(), |_| {}).await;
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].as_str()), (LINES, "line 99901"));
        assert_eq!(lines[99], "the end");
    }

    #[tokio::test]
    async fn a_line_without_end_does_not_grow() {
        let tail = Tail::default();
        tail.clone().drain(&vec![b'x'; 10_000_000][..], |_| {}).await;
        assert_eq!(tail.lines()[0].len(), WIDTH);
    }
}
