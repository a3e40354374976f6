//! `rehearse trace split`

use std::path::PathBuf;

use clap::Args;
use rehearsal::core::trace::Part;
use rehearsal::store::Input;

use super::input::InputArgs;
use super::output::AtomicOutput;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use crate::print::sanitize_line;

/// Write each session to its own file
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct TraceSplitArgs {
    /// The recording; - is stdin
    #[arg(default_value = "trace.jsonl", value_hint = clap::ValueHint::FilePath)]
    file: Input,

    /// The directory for the files; it is created if necessary
    #[arg(short, long, value_name = "DIR", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    directory: PathBuf,

    #[command(flatten)]
    input: InputArgs,
}

const AFTER_HELP: &str = "\
The files are named after the session ids: SESSION.jsonl. No file is overwritten.

Examples:
  rehearse trace split trace.jsonl --directory sessions

Exit status:
    0  everything went well
    2  a file cannot be read or written";

impl TraceSplitArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let recording = self.input.open(&self.file, context)?;
        let unwritable = |path: &PathBuf, cause: std::io::Error| Failure::unwritable(path, &cause);
        std::fs::create_dir_all(&self.directory).map_err(|cause| unwritable(&self.directory, cause))?;
        let mut open: Option<(AtomicOutput, PathBuf)> = None;
        for part in recording.parts(self.input.bad_lines()) {
            let Some(part) = self.input.or_skip(part, &self.file, context)? else { continue };
            if let Part::Start(start) = &part {
                self.close(open.take(), context)?;
                let path = self.path(&start.session_id);
                open = Some((AtomicOutput::to_file(&path)?, path));
            }
            if let Some((writing, _)) = &mut open {
                writing.part(&part)?;
            }
        }
        self.close(open, context)?;
        Ok(Exit::Ok)
    }

    fn close(&self, open: Option<(AtomicOutput, PathBuf)>, context: &Context) -> Result<(), Failure> {
        if let Some((writing, path)) = open {
            writing.finish()?;
            context.stderr.note(format_args!("wrote {}", sanitize_line(&path.display().to_string())));
        }
        Ok(())
    }

    /// A new file that is named after the session.
    fn path(&self, session_id: &str) -> PathBuf {
        let kept = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
        let name: String = session_id.chars().take(80).map(kept).collect();
        let name = name.trim_matches(['-', '.']);
        let name = if name.is_empty() { "session" } else { name };
        let names = std::iter::once(format!("{name}.jsonl")).chain((2_u32..).map(|n| format!("{name}-{n}.jsonl")));
        let mut paths = names.map(|name| self.directory.join(name));
        paths.find(|path| !path.exists()).unwrap_or_else(|| self.directory.join("session.jsonl"))
    }
}
