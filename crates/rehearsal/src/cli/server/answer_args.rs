//! The options that answer requests of the server.

use std::path::{Path, PathBuf};

use clap::Args;
use rehearsal::client::ClientHandlers;
use rehearsal::core::message::Method;
use rehearsal::core::suggest::closest;
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cli::exit::Failure;
use crate::cli::flag_values::json_input;

const ANSWERS_HEADING: &str = "Server requests";
/// The requests that servers send, in any version of the protocol.
const SERVER_METHODS: [Method; 4] = [Method::ELICITATION, Method::SAMPLING, Method::ROOTS_LIST, Method::PING];

/// Answers to requests of the server.
#[derive(Args, Debug)]
pub(super) struct AnswerArgs {
    /// A directory that the server may use (roots/list); may be repeated
    #[arg(long, value_name = "DIR", help_heading = ANSWERS_HEADING, value_hint = clap::ValueHint::DirPath)]
    roots: Vec<PathBuf>,

    /// The result for a server request such as elicitation/create, as JSON or @FILE; repeated for a method, the results
    /// are returned one after the other. On a terminal, the user answers elicitations without --answer
    #[arg(long, value_name = "METHOD=JSON", help_heading = ANSWERS_HEADING)]
    answer: Vec<String>,
}

/// The handlers for requests of the server, and the methods that they answer.
pub(super) struct ConfiguredAnswers {
    pub(super) answers: ClientHandlers,
    pub(super) methods: Vec<Method>,
}

impl AnswerArgs {
    /// Builds the handlers.
    pub(super) fn configured(&self) -> Result<ConfiguredAnswers, Failure> {
        let mut results: Vec<(Method, Vec<Value>)> = Vec::new();
        for word in &self.answer {
            let (method, answer) = read(word)?;
            match results.iter_mut().find(|(other, _)| *other == method) {
                Some((_, answers)) => answers.push(answer),
                None => results.push((method, vec![answer])),
            }
        }
        let mut answers = ClientHandlers::new();
        let mut methods: Vec<Method> = results.iter().map(|(method, _)| method.clone()).collect();
        for (method, results) in results {
            answers = answer_in_turn(answers, method, results);
        }
        if !self.roots.is_empty() {
            if methods.contains(&Method::ROOTS_LIST) {
                return Err(Failure::bad_input("--roots and --answer roots/list both set the roots"));
            }
            answers = answers.roots(self.roots.iter().map(|path| root(path)).collect::<Result<Vec<_>, _>>()?);
            methods.push(Method::ROOTS_LIST);
        }
        Ok(ConfiguredAnswers { answers, methods })
    }
}

/// Returns one result after the other, and the last one from then on.
fn answer_in_turn(answers: ClientHandlers, method: Method, results: Vec<Value>) -> ClientHandlers {
    let requests = AtomicUsize::new(0);
    answers.on(method, move |_| {
        let index = requests.fetch_add(1, Ordering::Relaxed).min(results.len().saturating_sub(1));
        Ok(results[index].clone())
    })
}

fn read(word: &str) -> Result<(Method, Value), Failure> {
    let parts = word.split_once('=').filter(|(method, _)| !method.is_empty());
    let (method, answer) = parts.ok_or_else(|| {
        Failure::bad_input(format_args!("--answer {word}: not METHOD=JSON"))
            .hint("write it like --answer elicitation/create='{\"action\": \"decline\"}'")
    })?;
    let known = SERVER_METHODS.iter().any(|known| known.as_str() == method);
    // A server may have requests of its own. A method that is close to one of the protocol is a typing error.
    let candidates =
        Method::KNOWN.iter().copied().filter(|name| SERVER_METHODS.iter().any(|one| one.as_str() == *name));
    if let Some(close) = closest(method, candidates).filter(|_| !known) {
        return Err(Failure::bad_input(format_args!("--answer {method}: servers do not send that request"))
            .hint(format!("did you mean `{close}`?")));
    }
    Ok((method.into(), json_input("--answer", answer)?))
}

/// The error for a directory that does not exist.
pub(super) fn no_directory(option: &str, path: &Path) -> Failure {
    Failure::bad_input(format_args!("{option} {}: there is no such directory", path.display()))
}

/// The URI and the name of a directory.
fn root(path: &Path) -> Result<(String, String), Failure> {
    let whole = path.canonicalize().ok().filter(|path| path.is_dir());
    let whole = whole.ok_or_else(|| no_directory("--roots", path))?;
    let name = whole.file_name().map_or("/".into(), |name| name.to_string_lossy());
    Ok((file_uri(&whole), name.into_owned()))
}

/// `file:///two%20words`
fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(*byte)),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_percent_encoded_in_a_uri() {
        assert_eq!(file_uri(Path::new("/a/two words/ü#1")), "file:///a/two%20words/%C3%BC%231");
    }

    #[test]
    fn a_method_close_to_a_known_request_is_refused() {
        let is_read = |word| read(word).is_ok();
        assert!(!is_read("elicitation/creat={}") && !is_read("sampling={}"));
        assert!(is_read("roots/list={}") && is_read("acme/approve={}"));
    }
}
