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

    /// As for `rehearse mock --schema-fill`: a tool may have no `answers`
    #[arg(long)]
    schema_fill: bool,

    /// As for `rehearse mock --upstream`: requests without an answer are forwarded
    #[arg(long, conflicts_with = "schema_fill")]
    upstream: bool,

    /// Print the problems as JSON, one per line
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
All problems of a file are reported together, each with its line and, if possible, a correction.
Templates, and the files that a mock file names, such as images, are checked after everything else is
valid. Each file is checked as one mock. No server is started or reached.

Examples:
  rehearse check weather.mock.yaml
  rehearse check --json mocks/*.mock.yaml | jq .line

Exit status:
    0  all files are valid
    2  a file has problems, or cannot be read";

impl CheckArgs {
    /// Checks each file; the exit status is 2 if any file has a problem.
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
        context.stderr.note(format_args!("{files} checked, no problems"));
        Ok(Exit::Ok)
    }
}

/// The bytes of a file, or of stdin.
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
