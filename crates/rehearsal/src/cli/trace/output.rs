//! Where a recording is written to.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use rehearsal::core::trace::{Part, TraceWriter};
use tempfile::NamedTempFile;

use super::TraceError;
use crate::cli::failure::Failure;

/// Where a recording is written to.
#[derive(Args, Clone, Debug)]
pub(super) struct Output {
    /// Write to this file instead of stdout; it is replaced in one step when all is written
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(super) output: Option<PathBuf>,
}

/// A trace that is being written.
pub(in crate::cli) struct Writing {
    writer: TraceWriter<BufWriter<Box<dyn Write>>, File>,
    /// What becomes the file when all is written.
    file: Option<(NamedTempFile, PathBuf)>,
}

impl Output {
    /// Begins to write.
    pub(super) fn begin(&self) -> Result<Writing, Failure> {
        match self.output.as_deref().filter(|path| path.as_os_str() != "-") {
            Some(path) => Writing::to_file(path),
            None => Writing::new(Box::new(io::stdout().lock()), None).map_err(Failure::Output),
        }
    }
}

impl Writing {
    /// Writes to a file beside `path`, which takes its place at the end.
    pub(in crate::cli) fn to_file(path: &Path) -> Result<Writing, Failure> {
        let unwritable = |cause| TraceError::Unwritable { path: path.to_owned(), cause: plain(cause) };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = NamedTempFile::new_in(folder).map_err(unwritable)?;
        let out = Box::new(file.reopen().map_err(unwritable)?);
        Ok(Writing::new(out, Some((file, path.to_owned()))).map_err(unwritable)?)
    }

    fn new(out: Box<dyn Write>, file: Option<(NamedTempFile, PathBuf)>) -> io::Result<Writing> {
        let writer = TraceWriter::new(BufWriter::with_capacity(256 << 10, out), tempfile::tempfile()?);
        Ok(Writing { writer, file })
    }

    /// Writes the next part.
    pub(in crate::cli) fn part(&mut self, part: &Part) -> Result<(), Failure> {
        let written = self.writer.part(part);
        written.map_err(|cause| self.unwritable(cause))
    }

    /// Puts the file in its place.
    pub(in crate::cli) fn finish(self) -> Result<(), Failure> {
        let Writing { writer, file } = self;
        let path = file.as_ref().map(|(_, path)| path.clone());
        let failure = |cause| unwritable(path.as_deref(), cause);
        writer.finish().map_err(failure)?;
        let Some((file, path)) = file else { return Ok(()) };
        // A file that people share keeps its mode; a new one gets the usual one instead of that of a temporary file.
        let mode = std::fs::metadata(&path).map(|known| known.permissions()).ok();
        let mode = mode.unwrap_or_else(|| std::os::unix::fs::PermissionsExt::from_mode(0o600));
        let unwritable = |cause| TraceError::Unwritable { path: path.clone(), cause };
        file.as_file().set_permissions(mode).map_err(unwritable)?;
        file.persist(&path).map_err(|error| unwritable(error.error))?;
        Ok(())
    }

    fn unwritable(&self, cause: io::Error) -> Failure {
        unwritable(self.file.as_ref().map(|(_, path)| path.as_path()), cause)
    }
}

/// The error of the system, without the name of a file that nobody asked for.
pub(in crate::cli) fn plain(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((what, _)) => io::Error::new(error.kind(), what.to_owned()),
        None => error,
    }
}

fn unwritable(path: Option<&Path>, cause: io::Error) -> Failure {
    match path {
        Some(path) => TraceError::Unwritable { path: path.to_owned(), cause }.into(),
        None => Failure::Output(cause),
    }
}
