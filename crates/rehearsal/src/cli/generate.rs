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

    /// The output format
    #[arg(long = "as", value_name = "WHAT", value_enum)]
    kind: OutputKind,

    /// The output: a file for mock and python [default: stdout], a directory for rust
    #[arg(short, long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    output: Option<PathBuf>,

    /// Overwrite existing files
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    input: InputArgs,
}

/// The output formats.
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
The result lists what the recorded server listed. Each distinct request gets its recorded answers in
their order, and the last one from then on. Ids, progress tokens and the rest of `_meta` are ignored. A
request that was not recorded gets an error. All sessions of the recording are used together.

  mock    an editable *.mock.yaml with one rule per request, the default last; `rehearse mock` serves it
  rust    a project on rmcp: `cargo run` serves it over stdio
  python  one file on the package mcp: `python FILE` serves it over stdio

In generated code, the request matching is one function, which you can replace.

Examples:
  rehearse generate trace.jsonl --as mock -o weather.mock.yaml
  rehearse generate trace.jsonl --as python -o weather_server.py
  rehearse generate trace.jsonl --as rust -o weather-server

Exit status:
    0  the output was written; stderr counts the recorded items that it does not contain
    1  the mock file was written, but `rehearse check` finds errors in it
    2  a flag is wrong, the recording cannot be read, or a file cannot be written";

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
        Ok(self.check(&target, &generated, context))
    }

    /// Finds the target, and refuses to overwrite files without `--force`.
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
            return Err(Failure::bad_input(message).hint("`rehearse trace show` prints the recording"));
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

    /// Checks a generated mock file: a recorded server may do what a mock file must not.
    fn check(&self, target: &OutputTarget, generated: &Generated, context: &Context) -> Exit {
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

/// Where the output is written.
enum OutputTarget {
    Stdout,
    File(PathBuf),
    Folder(PathBuf),
}

/// Replaces a file atomically.
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

/// The error for a file or folder that would be overwritten.
pub(super) fn exists(path: &Path) -> Failure {
    Failure::bad_input(format_args!("{} exists", path.display())).hint("`--force` overwrites it")
}

fn too_large(error: TooLarge) -> Failure {
    Failure::bad_input(error)
        .hint("`rehearse replay` serves recordings of any size; `rehearse trace split` splits one into several files")
}
