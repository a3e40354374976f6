//! Writes images, audio and other bytes of an answer to files.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use rehearsal::core::protocol::Content;

use super::exit::{Exit, Failure};
use super::file_name::FileName;
use super::server::{OUTPUT, ShownAs};
use crate::print::{StderrPrinter, byte_size, sanitize_line};

/// Maximum number of files with the same name.
const MAX_NUMBERED: usize = 10_000;

/// The directory for bytes of an answer.
#[derive(Args, Debug)]
pub(super) struct SaveArgs {
    /// Write images, audio and other bytes of the answer to files in this directory
    #[arg(long, value_name = "DIR", help_heading = OUTPUT, value_hint = clap::ValueHint::DirPath)]
    save: Option<PathBuf>,
}

impl SaveArgs {
    /// Checks the directory before a request is sent.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match &self.save {
            Some(path) if path.exists() && !path.is_dir() => {
                Err(Failure::bad_input(format_args!("--save {}: not a directory", path.display())))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Writes every content block that is not text to a file, and reports the files.
    ///
    /// ```text
    /// saved maps/get-map.png, 1.2 kB
    /// ```
    pub(super) fn save(
        &self,
        blocks: &[Content],
        subject: &str,
        shown: ShownAs,
        stderr: &StderrPrinter,
    ) -> Result<Exit, Failure> {
        let mut exit = Exit::Ok;
        let mut found = blocks.iter().filter_map(|block| Some((block, block.decoded()?))).peekable();
        let Some(directory) = &self.save else {
            if found.peek().is_some() && shown == ShownAs::Text {
                stderr.hint("`--save DIR` writes images, audio and bytes to files");
            }
            return Ok(exit);
        };
        for (block, bytes) in found {
            let name = FileName::for_block(block, subject);
            match bytes {
                Ok(bytes) => {
                    let path = write_new(directory, &name, &bytes)?;
                    let shown = path.display().to_string();
                    stderr.note(format_args!("saved {}, {}", sanitize_line(&shown), byte_size(bytes.len())));
                }
                Err(cause) => {
                    stderr.error(format_args!("cannot save a content block: its base64 is invalid: {cause}"));
                    exit = Exit::ChecksFailed;
                }
            }
        }
        Ok(exit)
    }
}

/// Writes a new file.
fn write_new(directory: &Path, name: &FileName, bytes: &[u8]) -> Result<PathBuf, Failure> {
    let unwritable = |path: &Path, cause: io::Error| Failure::unwritable(path, &cause);
    DirBuilder::new().recursive(true).create(directory).map_err(|cause| unwritable(directory, cause))?;
    for name in name.candidates().take(MAX_NUMBERED) {
        let path = directory.join(name);
        // An existing symbolic link is not followed.
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(bytes).map_err(|cause| unwritable(&path, cause))?;
                return Ok(path);
            }
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
            Err(cause) => return Err(unwritable(&path, cause)),
        }
    }
    Err(unwritable(directory, io::Error::other(format!("there are {MAX_NUMBERED} files with that name"))))
}
