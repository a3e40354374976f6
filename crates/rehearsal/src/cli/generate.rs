//! `rehearse generate`

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use rehearsal::core::script::mock;
use rehearsal::generate::{Generated, Learner, ServerModel, TooLarge, generate_mock, generate_python, generate_rust};
use rehearsal::store::Input;
use tempfile::NamedTempFile;

use super::context::Context;
use super::exit::{Exit, Failure};
use super::output::to_stdout;
use super::trace::{InputArgs, is_written_into, plain};

/// Turn a recording into an editable mock, or into the code of a server
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct GenerateArgs {
    /// The recording; - is stdin
    #[arg(value_name = "TRACE", value_hint = clap::ValueHint::FilePath)]
    trace: Input,

    /// What to make of it
    #[arg(long = "as", value_name = "WHAT", value_enum)]
    kind: OutputKind,

    /// Where to: a file for mock and python, stdout unless given; a directory for rust
    #[arg(short, long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    output: Option<PathBuf>,

    /// Write over files that are there already
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    input: InputArgs,
}

/// What can be made of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputKind {
    // Plain comments: help for each value would spread `--help` over several pages.
    // A mock file for `rehearse mock`.
    Mock,
    // A project on the official Rust SDK.
    Rust,
    // A file on the official Python SDK.
    Python,
}

const AFTER_HELP: &str = "\
What was listed is listed, and each distinct request is answered with what was recorded for it, in
order; the last answer is given again. Ids, progress tokens and the rest of `_meta` do not count. What
was never recorded is an error. All sessions of the recording are taken together.

  mock    an editable *.mock.yaml: one rule a request, the default last; `rehearse mock` serves it
  rust    a project on rmcp: `cargo run` serves it over stdio
  python  one file on the package mcp: `python FILE` serves it over stdio

In the code the matching is one function of its own, which you can replace.

Examples:
  rehearse generate trace.jsonl --as mock -o weather.mock.yaml
  rehearse generate trace.jsonl --as python -o weather_server.py
  rehearse generate trace.jsonl --as rust -o weather-server

Exit status:
    0  it was written; stderr counts the recorded items that have no place in it
    1  it was written, but the recorded server does something that a mock may not
    2  a flag is wrong, the recording cannot be read, or a file not be written";

impl GenerateArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let target = self.target()?;
        let model = self.model(context)?;
        let source = match &self.trace {
            Input::File(path) => path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            Input::Stdin => "a recording".to_owned(),
        };
        let generated = match self.kind {
            OutputKind::Mock => generate_mock(&model, &source),
            OutputKind::Rust => generate_rust(&model, &source).map_err(Failure::bad_input)?,
            OutputKind::Python => generate_python(&model, &source).map_err(Failure::bad_input)?,
        };
        if !generated.left_out.is_empty() {
            context.stderr.note(format_args!("left out: {}", generated.left_out));
        }
        self.write(&target, &generated, context)?;
        Ok(self.checked(&target, &generated, context))
    }

    /// Finds out first whether there is a place for it.
    fn target(&self) -> Result<OutputTarget, Failure> {
        let path = self.output.clone().filter(|path| path.as_os_str() != "-");
        match (self.kind, path) {
            (OutputKind::Rust, None) => {
                Err(Failure::bad_input("--as rust writes several files, so it needs -o DIRECTORY"))
            }
            (OutputKind::Rust, Some(path)) if path.exists() && !path.is_dir() => {
                Err(Failure::bad_input(format_args!("{} is not a directory", path.display())))
            }
            (OutputKind::Rust, Some(path)) => {
                let is_empty = fs::read_dir(&path).map_or(true, |mut entries| entries.next().is_none());
                if is_empty || self.force { Ok(OutputTarget::Folder(path)) } else { Err(exists(&path)) }
            }
            (OutputKind::Mock | OutputKind::Python, None) => Ok(OutputTarget::Stdout),
            (OutputKind::Mock | OutputKind::Python, Some(path)) if path.is_dir() => {
                let path = path.display();
                Err(Failure::bad_input(format_args!("{path} is a directory; a mock and Python are one file")))
            }
            (OutputKind::Mock | OutputKind::Python, Some(path)) if path.exists() && !self.force => Err(exists(&path)),
            (OutputKind::Mock | OutputKind::Python, Some(path)) => Ok(OutputTarget::File(path)),
        }
    }

    fn model(&self, context: &Context) -> Result<ServerModel, Failure> {
        let recording = self.input.open_in_order(&self.trace, context)?;
        let mut learner = Learner::default();
        for item in recording.timeline(self.input.bad_lines()) {
            if let Some(item) = self.input.or_skip(item, &self.trace, context)? {
                learner.add(item).map_err(too_large)?;
            }
        }
        let model = learner.finish();
        if model.is_empty() {
            let message = format!("no tools, prompts or resources were recorded in {}", self.trace);
            return Err(Failure::bad_input(message).hint("`rehearse trace show` shows what was recorded"));
        }
        Ok(model)
    }

    fn write(&self, target: &OutputTarget, generated: &Generated, context: &Context) -> Result<(), Failure> {
        match target {
            OutputTarget::Stdout => {
                to_stdout(|out| generated.files.iter().try_for_each(|(_, text)| out.write_all(text.as_bytes())))
            }
            OutputTarget::File(path) => {
                generated.files.iter().try_for_each(|(_, text)| put(path, text))?;
                context.stderr.note(format_args!("wrote {}", path.display()));
                Ok(())
            }
            OutputTarget::Folder(folder) => {
                for (name, text) in &generated.files {
                    let path = folder.join(name);
                    if let Some(parent) = path.parent() {
                        let unwritable = |cause: io::Error| Failure::unwritable(parent, &cause);
                        DirBuilder::new().recursive(true).create(parent).map_err(unwritable)?;
                    }
                    put(&path, text)?;
                }
                let count = generated.files.len();
                context.stderr.note(format_args!("wrote {count} files to {}", folder.display()));
                Ok(())
            }
        }
    }

    /// What the recorded server does may be something that a mock may not; then it is said here rather than later.
    fn checked(&self, target: &OutputTarget, generated: &Generated, context: &Context) -> Exit {
        let mut exit = Exit::Ok;
        for (name, text) in generated.files.iter().filter(|_| self.kind == OutputKind::Mock) {
            let file = match target {
                OutputTarget::File(path) => path.display().to_string(),
                OutputTarget::Stdout | OutputTarget::Folder(_) => name.clone(),
            };
            if let Err(error) = mock::parse(&file, text, mock::MissingAnswers::Refused) {
                error.problems.iter().for_each(|problem| context.stderr.problem(&file, text, problem));
                exit = Exit::ChecksFailed;
            }
        }
        exit
    }
}

/// Where it goes.
enum OutputTarget {
    Stdout,
    File(PathBuf),
    Folder(PathBuf),
}

/// Writes a file in one step.
pub(super) fn put(path: &Path, text: &str) -> Result<(), Failure> {
    let unwritable = |cause: io::Error| Failure::unwritable(path, &plain(cause));
    if is_written_into(path) {
        return fs::write(path, text).map_err(unwritable);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = NamedTempFile::new_in(folder).map_err(unwritable)?;
    file.write_all(text.as_bytes()).map_err(unwritable)?;
    let mode = fs::metadata(path).map(|known| known.permissions()).ok();
    let mode = mode.unwrap_or_else(|| std::os::unix::fs::PermissionsExt::from_mode(0o644));
    file.as_file().set_permissions(mode).map_err(unwritable)?;
    file.persist(path).map_err(|error| unwritable(error.error))?;
    Ok(())
}

/// A file or folder that would be overwritten.
pub(super) fn exists(path: &Path) -> Failure {
    Failure::bad_input(format_args!("{} is there already", path.display())).hint("`--force` writes over it")
}

fn too_large(error: TooLarge) -> Failure {
    Failure::bad_input(error)
        .hint("`rehearse replay` serves recordings of any size; `rehearse trace split` makes several files of one")
}
