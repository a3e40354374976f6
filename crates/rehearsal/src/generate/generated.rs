//! What is made of a recording, and how much of the recording is not in it.

use std::fmt;

/// The files, and what of the recording is not in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    /// Each file with its path: one file, or those of a project.
    pub files: Vec<(String, String)>,
    /// How much of the recording has no place in them.
    pub left_out: LeftOut,
}

/// How many recorded items have no place in what is generated, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Messages that are not JSON-RPC.
    pub garbled: usize,
    /// Requests without a response.
    pub unanswered: usize,
    /// Requests of the server that belong to no answer, or that a program cannot make.
    pub server_requests: usize,
    /// Requests that differ from others in a redacted secret only: any secret gets their answers in turn.
    pub secrets: usize,
    /// Everything else: notifications outside of a call, answers of tasks, methods that a program does not serve.
    pub others: usize,
}

impl LeftOut {
    /// Whether everything has its place.
    pub fn is_empty(&self) -> bool {
        *self == LeftOut::default()
    }
}

/// ```text
/// 1 garbled message, 2 unanswered requests, 1 server request, 4 other items
/// ```
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { garbled, unanswered, server_requests, secrets, others } = *self;
        let counts = [
            (garbled, "garbled message", "garbled messages"),
            (unanswered, "unanswered request", "unanswered requests"),
            (server_requests, "server request", "server requests"),
            (secrets, "request that differs only in a secret", "requests that differ only in a secret"),
            (others, "other item", "other items"),
        ];
        let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
        let words = counts.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }));
        f.write_str(&words.collect::<Vec<_>>().join(", "))
    }
}

/// A template of ours could not be filled in.
#[derive(Debug, thiserror::Error)]
#[error("a template could not be filled in: {0}")]
pub struct TemplateError(#[from] minijinja::Error);
