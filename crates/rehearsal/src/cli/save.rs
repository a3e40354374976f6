//! Pictures, sounds and other bytes of an answer, as files.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use rehearsal::core::protocol::Content;

use super::exit::{Exit, Failure};
use super::file_name::FileName;
use super::server::{OUTPUT, ShownAs};
use crate::print::{StderrPrinter, bytes_in_words, sanitize_line};

/// How many files of one name there may be.
const NUMBERS: usize = 10_000;

/// Where bytes go.
#[derive(Args, Debug)]
pub(super) struct SaveArgs {
    /// Write the pictures, sounds and other bytes of the answer to files in this directory
    #[arg(long, value_name = "DIR", help_heading = OUTPUT, value_hint = clap::ValueHint::DirPath)]
    save: Option<PathBuf>,
}

impl SaveArgs {
    /// Finds out before anything is called whether there will be a place for the answer.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match &self.save {
            Some(path) if path.exists() && !path.is_dir() => {
                Err(Failure::bad_input(format_args!("--save {}: not a directory", path.display())))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Writes everything that is not text to files of their own, and says so.
    ///
    /// ```text
    /// saved maps/get-map.png, 1.2 kB
    /// ```
    pub(super) fn save(
        &self,
        blocks: &[Content],
        asked: &str,
        shown: ShownAs,
        stderr: &StderrPrinter,
    ) -> Result<Exit, Failure> {
        let mut exit = Exit::Ok;
        let mut found = blocks.iter().filter_map(|block| Some((block, block.decoded()?))).peekable();
        let Some(directory) = &self.save else {
            if found.peek().is_some() && shown == ShownAs::Text {
                stderr.hint("`--save DIR` writes what is not text to files");
            }
            return Ok(exit);
        };
        for (block, bytes) in found {
            let name = FileName::of(block, asked);
            match bytes {
                Ok(bytes) => {
                    let path = write_new(directory, &name, &bytes)?;
                    let shown = path.display().to_string();
                    stderr.note(format_args!("saved {}, {}", sanitize_line(&shown), bytes_in_words(bytes.len())));
                }
                Err(cause) => {
                    stderr.error(format_args!("cannot save a part of the answer: its base64 is broken: {cause}"));
                    exit = Exit::ChecksFailed;
                }
            }
        }
        Ok(exit)
    }
}

/// Writes a file that was not there before.
fn write_new(directory: &Path, name: &FileName, bytes: &[u8]) -> Result<PathBuf, Failure> {
    let unwritable = |path: &Path, cause: io::Error| Failure::unwritable(path, &cause);
    DirBuilder::new().recursive(true).create(directory).map_err(|cause| unwritable(directory, cause))?;
    for name in name.candidates().take(NUMBERS) {
        let path = directory.join(name);
        // A link that somebody has put there is not followed either.
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(bytes).map_err(|cause| unwritable(&path, cause))?;
                return Ok(path);
            }
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
            Err(cause) => return Err(unwritable(&path, cause)),
        }
    }
    Err(unwritable(directory, io::Error::other(format!("there are {NUMBERS} files of that name"))))
}
