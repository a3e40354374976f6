//! Writes a recording to a file or to stdout.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use rehearsal::core::trace::dialect::{RecordingWriter, WriteError};
use rehearsal::core::trace::{Format, Part};
use tempfile::NamedTempFile;

use crate::cli::exit::Failure;

/// The file of a recording that is written.
#[derive(Args, Clone, Debug)]
pub(super) struct OutputArgs {
    /// Write to this file instead of stdout; it is replaced atomically at the end
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(super) output: Option<PathBuf>,
}

/// A recording that is being written.
pub(in crate::cli) struct AtomicOutput {
    writer: RecordingWriter<BufWriter<Box<dyn Write>>, File>,
    /// The temporary file, and the path that it replaces at the end.
    file: Option<(NamedTempFile, PathBuf)>,
}

impl OutputArgs {
    /// Starts to write a trace.
    pub(super) fn begin(&self) -> Result<AtomicOutput, Failure> {
        AtomicOutput::begin(self.output.as_deref(), Format::Trace)
    }
}

impl AtomicOutput {
    /// Starts to write a trace to a file.
    pub(in crate::cli) fn to_file(path: &Path) -> Result<AtomicOutput, Failure> {
        AtomicOutput::begin(Some(path), Format::Trace)
    }

    /// Writes to a temporary file that replaces `path` at the end; without a path, or for `-`, to stdout.
    pub(super) fn begin(path: Option<&Path>, format: Format) -> Result<AtomicOutput, Failure> {
        let path = path.filter(|path| path.as_os_str() != "-");
        let begun = || -> io::Result<AtomicOutput> {
            let (out, file): (Box<dyn Write>, _) = match path {
                None => (Box::new(io::stdout().lock()), None),
                Some(path) if is_written_into(path) => (Box::new(File::options().write(true).open(path)?), None),
                Some(path) => {
                    let real = real(path);
                    let folder = real.parent().filter(|folder| !folder.as_os_str().is_empty());
                    let file = NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(plain)?;
                    (Box::new(file.reopen()?), Some((file, path.to_owned())))
                }
            };
            let writer = RecordingWriter::new(format, BufWriter::with_capacity(256 << 10, out), tempfile::tempfile()?);
            let writer = writer.expect("only formats that can be written are passed");
            Ok(AtomicOutput { writer, file })
        };
        begun().map_err(|cause| failure(path, cause.into()))
    }

    /// Checks before the work whether a file can be replaced. A read-only file is not replaced, although the permissions
    /// of its folder would allow it.
    pub(in crate::cli) fn check(path: &Path) -> Result<(), Failure> {
        let is_read_only = std::fs::metadata(path).is_ok_and(|known| known.permissions().readonly());
        let opened = match is_read_only {
            true => Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only")),
            false => File::options().write(true).open(path).map(drop),
        };
        opened.map_err(|cause| failure(Some(path), cause.into()))?;
        AtomicOutput::to_file(path).map(drop)
    }

    /// Writes the next part.
    pub(in crate::cli) fn part(&mut self, part: &Part) -> Result<(), Failure> {
        let path = self.file.as_ref().map(|(_, path)| path.as_path());
        self.writer.part(part).map_err(|error| failure(path, error))
    }

    /// Replaces the file.
    pub(in crate::cli) fn finish(self) -> Result<(), Failure> {
        let AtomicOutput { writer, file } = self;
        let path = file.as_ref().map(|(_, path)| path.clone());
        let finished = || -> Result<(), WriteError> {
            writer.finish()?;
            if let Some((file, path)) = file {
                // An existing file keeps its mode. A new file may contain secrets, so only its owner can read it.
                let mode = std::fs::metadata(&path).map(|known| known.permissions()).ok();
                let mode = mode.unwrap_or_else(|| std::os::unix::fs::PermissionsExt::from_mode(0o600));
                file.as_file().set_permissions(mode)?;
                file.persist(real(&path)).map_err(|error| error.error)?;
            }
            Ok(())
        };
        finished().map_err(|error| failure(path.as_deref(), error))
    }
}

/// True for a device or a pipe, which cannot be replaced.
pub(in crate::cli) fn is_written_into(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|known| !known.is_file() && !known.is_dir())
}

/// The target of a symbolic link: it is replaced, and the link stays.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The error of the system without the name of the temporary file.
pub(in crate::cli) fn plain(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((what, _)) => io::Error::new(error.kind(), what.to_owned()),
        None => error,
    }
}

fn failure(path: Option<&Path>, error: WriteError) -> Failure {
    match (error, path) {
        (WriteError::Io(cause), Some(path)) => Failure::unwritable(path, &cause),
        (WriteError::Io(cause), None) => Failure::stdout(cause),
        (error @ WriteError::NoHttp { .. }, _) => Failure::bad_input(error),
    }
}
