//! All instructions of a folder, and the files that are no valid instruction.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::instruction::Instruction;

/// How long a file may be.
const FILE_LIMIT: u64 = 1024 * 1024;

/// What a folder holds.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    /// By name.
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) left_out: Vec<LeftOut>,
}

/// A file that is not served.
#[derive(Debug)]
pub(crate) struct LeftOut {
    path: PathBuf,
    line: Option<usize>,
    why: String,
}

impl fmt::Display for LeftOut {
    /// `instructions/broken.md:3: unknown field `tag``
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.why)
    }
}

impl Folder {
    /// Reads every `.md` file in and below `root`, but for hidden ones.
    pub(crate) fn read(root: &Path) -> io::Result<Folder> {
        let mut folder = Folder::default();
        let mut folders = vec![fs::read_dir(root)?];
        while let Some(entries) = folders.pop() {
            for entry in entries {
                let entry = entry?;
                let (path, name) = (entry.path(), entry.file_name());
                if name.as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                // A link to a folder is not followed, so that no circle has to be found.
                if entry.file_type()?.is_dir() {
                    match fs::read_dir(&path) {
                        Ok(entries) => folders.push(entries),
                        Err(error) => folder.left_out.push(LeftOut { path, line: None, why: error.to_string() }),
                    }
                } else if path.extension().is_some_and(|extension| extension == "md") {
                    folder.add(root, path);
                }
            }
        }
        folder.instructions.sort_by(|one, other| one.name.cmp(&other.name));
        folder.left_out.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(folder)
    }

    fn add(&mut self, root: &Path, path: PathBuf) {
        let below = path.strip_prefix(root).unwrap_or(&path).with_extension("");
        let text = match read_text(&path) {
            Ok(text) => text,
            Err(error) => return self.left_out.push(LeftOut { path, line: None, why: error.to_string() }),
        };
        match Instruction::parse(&below.to_string_lossy(), &text) {
            Ok(instruction) => self.instructions.push(instruction),
            Err(bad) => self.left_out.push(LeftOut { path, line: Some(bad.line), why: bad.why }),
        }
    }
}

fn read_text(path: &Path) -> io::Result<String> {
    let bad = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    if !fs::metadata(path)?.is_file() {
        return Err(bad("not a file".to_owned()));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_LIMIT {
        return Err(bad(format!("longer than {FILE_LIMIT} bytes")));
    }
    String::from_utf8(bytes)
        .map_err(|error| bad(format!("not UTF-8 from byte {} on", error.utf8_error().valid_up_to())))
}
