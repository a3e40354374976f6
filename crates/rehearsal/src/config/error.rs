//! What can be wrong with a file of servers.

use std::path::PathBuf;

use rehearsal_core::script::ScriptError;

/// What is wrong with a config file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: std::io::Error,
    },
    /// It is not text.
    #[error(transparent)]
    NotText(#[from] ScriptError),
    /// It is not JSON.
    #[error("{}:{line}:{column}: not JSON: expected {expected}", path.display())]
    NotJson {
        /// The file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// Where in the line.
        column: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// It is JSON, but something else.
    #[error("{}: {at}: {what}", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// The place inside.
        at: String,
        /// What is wrong, with a hint.
        what: String,
    },
    /// There is no place for servers in it.
    #[error("{}: no servers: none of {}", path.display(), super::file::PLACES)]
    NoServers {
        /// The file.
        path: PathBuf,
    },
    /// There is no such server in it.
    #[error("{} has no server {name:?}; {}", path.display(), known(.names, .name))]
    NoServer {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        name: String,
        /// What is there.
        names: Vec<String>,
    },
    /// It uses a variable that is not set.
    #[error("{}: {at}: the variable {variable} is not set; set it, or write ${{{variable}:-default}}", path.display())]
    NoVariable {
        /// The file.
        path: PathBuf,
        /// The place inside.
        at: String,
        /// The variable.
        variable: String,
    },
}

fn known(names: &[String], name: &str) -> String {
    match rehearsal_core::suggest::closest(name, names.iter().map(String::as_str)) {
        Some(close) => format!("did you mean {close:?}?"),
        None if names.is_empty() => "it has none at all".to_owned(),
        None => format!("it has {}", names.join(", ")),
    }
}
