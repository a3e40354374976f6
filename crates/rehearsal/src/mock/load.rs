//! Mock files from the disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rehearsal_core::answer::harness::{Harness, MOCK_FILE};
use rehearsal_core::answer::{Mock, Otherwise, Source};
use rehearsal_core::script::{ScriptError, mock};

/// Which files make a mock, and how they are read.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// The files; of what can only be said once, the first counts.
    pub paths: Vec<PathBuf>,
    /// What is said when nothing declares an answer.
    pub otherwise: Otherwise,
    /// The queues of the universal test tool, if it is to be there. They outlive the files being read again.
    pub harness: Option<Arc<Harness>>,
}

/// Why files make no mock.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// Something is wrong with what they say.
    #[error("{}", errors.iter().map(|(error, _)| error.to_string()).collect::<Vec<_>>().join("\n"))]
    Wrong {
        /// What, and the text of the file.
        errors: Vec<(ScriptError, String)>,
    },
}

impl Files {
    /// These files.
    pub fn new(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Files {
        Files { paths: paths.into_iter().map(Into::into).collect(), otherwise: Otherwise::default(), harness: None }
    }

    /// Reads and compiles them.
    pub fn load(&self) -> Result<Mock, LoadError> {
        let mut read = Vec::new();
        for path in &self.paths {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|cause| LoadError::Unreadable { path: path.clone(), cause })?;
            read.push((path.display().to_string(), text));
        }
        match &self.harness {
            None => compile(&read, self.otherwise),
            Some(harness) => {
                read.push(("the harness".to_owned(), MOCK_FILE.to_owned()));
                Ok(compile(&read, self.otherwise)?.with_harness(Arc::clone(harness)))
            }
        }
    }
}

/// Compiles texts under the names of their files.
pub(super) fn compile(texts: &[(String, String)], otherwise: Otherwise) -> Result<Mock, LoadError> {
    let text_of = |file: &str| texts.iter().find(|(name, _)| name == file).map(|(_, text)| text.clone());
    let wrong = |errors: Vec<ScriptError>| LoadError::Wrong {
        errors: errors.into_iter().map(|error| (error.clone(), text_of(&error.file).unwrap_or_default())).collect(),
    };
    let (mut parsed, mut errors) = (Vec::new(), Vec::new());
    for (file, text) in texts {
        match mock::parse(file, text) {
            Ok(mock) => parsed.push((file, mock)),
            Err(error) => errors.push(error),
        }
    }
    if !errors.is_empty() {
        return Err(wrong(errors));
    }
    let sources: Vec<_> = parsed.iter().map(|(file, mock)| Source { file, mock }).collect();
    let beside = |file: &str, path: &str| {
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        std::fs::read(folder.join(path)).map_err(|error| error.to_string())
    };
    Mock::compile(&sources, otherwise, &beside).map_err(wrong)
}
