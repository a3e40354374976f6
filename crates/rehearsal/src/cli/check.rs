//! `rehearse check`

use std::io::{Read, Write};
use std::path::PathBuf;

use clap::Args;
use rehearsal::core::script::ScriptProblem;
use rehearsal::mock::{Unanswered, check};
use serde_json::json;

use super::context::Context;
use super::exit::{Exit, Failure};
use super::mock::unanswered;
use super::output::to_stdout;

/// Check mock files without starting them
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct CheckArgs {
    /// The files; - is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// As for `rehearse mock --schema-fill`: what has no answer gets one made up
    #[arg(long)]
    schema_fill: bool,

    /// As for `rehearse mock --upstream`: what has no answer is forwarded to a live server
    #[arg(long, conflicts_with = "schema_fill")]
    upstream: bool,

    /// Print what is wrong as JSON, one problem a line
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
All errors of a file are reported together, each with its line and, if it can be guessed,
what to write instead; templates and the files that it names, such as pictures, are
looked at when the rest is right. Each file is a mock of its own here. Nothing is started and no
server is reached.

Examples:
  rehearse check weather.mock.yaml
  rehearse check --json mocks/*.mock.yaml | jq .line

Exit status:
    0  nothing is wrong
    2  something is, or a file cannot be read";

impl CheckArgs {
    /// Checks each file; the status is 2 if anything is wrong with any of them.
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let mut wrong = 0;
        for path in &self.files {
            let bytes = bytes(path)?;
            let file = path.display().to_string();
            let problems =
                check(&file, &bytes, if self.upstream { Unanswered::Forward } else { unanswered(self.schema_fill) });
            let text = String::from_utf8_lossy(&bytes);
            wrong += problems.len();
            if self.json {
                to_stdout(|out| as_json(&file, &problems, out))?;
            } else {
                problems.iter().for_each(|problem| context.stderr.problem(&file, &text, problem));
            }
        }
        let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let files = plural(self.files.len(), "file");
        if wrong > 0 {
            context.stderr.note(format_args!("{files} checked, {} found", plural(wrong, "problem")));
            return Ok(Exit::BadInput);
        }
        context.stderr.note(format_args!("{files} checked, nothing wrong"));
        Ok(Exit::Ok)
    }
}

/// What is in a file, or comes on stdin.
fn bytes(path: &PathBuf) -> Result<Vec<u8>, Failure> {
    let read = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    read.map_err(|cause| Failure::unreadable(path, &cause))
}

fn as_json(file: &str, problems: &[ScriptProblem], out: &mut dyn Write) -> std::io::Result<()> {
    for problem in problems {
        let (line, column) = (problem.at.line, problem.at.column);
        let row =
            json!({"file": file, "line": line, "column": column, "message": problem.message, "hint": problem.hint});
        writeln!(out, "{row}")?;
    }
    Ok(())
}
