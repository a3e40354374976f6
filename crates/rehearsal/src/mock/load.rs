//! Mock files from the disk, and again when they change.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rehearsal_core::answer::harness::{Harness, MOCK_FILE};
use rehearsal_core::answer::{
    AnswerSource, Chain, Mock, MockSource, PlaceholderSource, ProtocolSource, SchemaSource, ScriptSource,
};
use rehearsal_core::script::mock::{self, MissingAnswers};
use rehearsal_core::script::{self, ScriptError, ScriptProblem};

use crate::serve::Server;

/// The files of a mock, and how they are read.
#[derive(Clone, Debug, Default)]
pub struct MockFiles {
    /// The files. For a setting that can only occur once, the first file counts.
    pub paths: Vec<PathBuf>,
    /// What happens to a request for which the files declare no answer.
    pub unanswered: Unanswered,
    /// The queues of the harness, if the mock has one. They are kept when the files are read again.
    pub harness: Option<Arc<Harness>>,
}

/// What happens to a request for a tool, prompt or resource of a mock for which the files declare no answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unanswered {
    /// The request is refused. Every tool, prompt and resource of the file needs an answer.
    #[default]
    Refuse,
    /// The answer is an example that fits the output schema.
    FillFromSchema,
    /// The request is forwarded to a live server.
    Forward,
}

impl Unanswered {
    fn missing_answers(self) -> MissingAnswers {
        match self {
            Unanswered::Refuse => MissingAnswers::Refused,
            Unanswered::FillFromSchema | Unanswered::Forward => MissingAnswers::Allowed,
        }
    }
}

/// Why mock files cannot be used.
#[derive(thiserror::Error)]
pub enum LoadError {
    /// A file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// The files have errors.
    #[error("{}", errors.iter().map(|(error, _)| error.to_string()).collect::<Vec<_>>().join("\n"))]
    Wrong {
        /// Each error, and the text of its file.
        errors: Vec<(ScriptError, String)>,
    },
}

debug_as_display!(LoadError);

impl MockFiles {
    /// Uses these files.
    pub fn new(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> MockFiles {
        MockFiles { paths: paths.into_iter().map(Into::into).collect(), ..MockFiles::default() }
    }

    /// Answers what no file declares with a value that fits the output schema.
    #[must_use]
    pub fn schema_fill(self) -> MockFiles {
        MockFiles { unanswered: Unanswered::FillFromSchema, ..self }
    }

    /// Reads and compiles the files to a chain that answers as they declare.
    pub fn load(&self) -> Result<Chain, LoadError> {
        self.load_noting(&mut Vec::new())
    }

    /// Reads and compiles the files: a source that answers as they declare, without the protocol around it.
    pub fn source(&self) -> Result<Arc<dyn AnswerSource>, LoadError> {
        let mock = self.mock(&mut Vec::new())?;
        Ok(Arc::new(ScriptSource::new(mock)))
    }

    /// Reads and compiles the files, and notes every file that was read or is missing: these, and those that they name.
    pub(super) fn load_noting(&self, noted: &mut Vec<PathBuf>) -> Result<Chain, LoadError> {
        Ok(self.chain(self.mock(noted)?))
    }

    fn mock(&self, noted: &mut Vec<PathBuf>) -> Result<Arc<Mock>, LoadError> {
        noted.extend(self.paths.iter().cloned());
        let mut read = Vec::new();
        for path in &self.paths {
            let bytes = std::fs::read(path).map_err(|cause| LoadError::Unreadable { path: path.clone(), cause })?;
            let file = path.display().to_string();
            let text = script::text(&file, bytes.clone()).map_err(|error| LoadError::Wrong {
                errors: vec![(error, String::from_utf8_lossy(&bytes).into_owned())],
            })?;
            read.push((file, text));
        }
        let mut texts: Vec<_> = read
            .into_iter()
            .map(|(file, text)| Text { file, text, missing: self.unanswered.missing_answers() })
            .collect();
        if self.harness.is_some() {
            let (file, text) = ("the harness".to_owned(), MOCK_FILE.to_owned());
            texts.push(Text { file, text, missing: MissingAnswers::Allowed });
        }
        compile_noting(&texts, noted).map(Arc::new)
    }

    fn chain(&self, mock: Arc<Mock>) -> Chain {
        let mut sources: Vec<Arc<dyn AnswerSource>> = vec![Arc::new(ScriptSource::new(mock))];
        if let Some(harness) = &self.harness {
            sources.push(Arc::new(Arc::clone(harness)));
        }
        sources.push(Arc::new(ProtocolSource));
        if self.unanswered == Unanswered::FillFromSchema {
            sources.extend([Arc::new(SchemaSource::default()) as Arc<dyn AnswerSource>, Arc::new(PlaceholderSource)]);
        }
        Chain::new(sources)
    }
}

/// What is wrong with the text of a file, in the order of the file: everything that would keep it from being served, the
/// files that it names included.
pub fn check(file: &str, text: &[u8], unanswered: Unanswered) -> Vec<ScriptProblem> {
    let text = match script::text(file, text.to_vec()) {
        Ok(text) => text,
        Err(error) => return error.problems,
    };
    match compile(file, &text, unanswered) {
        Ok(_) | Err(LoadError::Unreadable { .. }) => Vec::new(),
        Err(LoadError::Wrong { errors }) => errors.into_iter().flat_map(|(error, _)| error.problems).collect(),
    }
}

/// Compiles the text of one file.
fn compile(file: &str, text: &str, unanswered: Unanswered) -> Result<Mock, LoadError> {
    let missing = unanswered.missing_answers();
    compile_noting(&[Text { file: file.to_owned(), text: text.to_owned(), missing }], &mut Vec::new())
}

/// A chain that answers as the text of one file declares.
pub fn chain_of(file: &str, text: &str) -> Result<Chain, LoadError> {
    let mock = compile(file, text, Unanswered::Refuse)?;
    Ok(MockFiles::default().chain(Arc::new(mock)))
}

/// The text of a file, and whether it may lack answers.
struct Text {
    file: String,
    text: String,
    missing: MissingAnswers,
}

/// Compiles texts, and notes the files that they name.
fn compile_noting(texts: &[Text], noted: &mut Vec<PathBuf>) -> Result<Mock, LoadError> {
    let text_of = |file: &str| texts.iter().find(|text| text.file == file).map(|text| text.text.clone());
    let wrong = |errors: Vec<ScriptError>| LoadError::Wrong {
        errors: errors.into_iter().map(|error| (error.clone(), text_of(&error.file).unwrap_or_default())).collect(),
    };
    let (mut parsed, mut errors) = (Vec::new(), Vec::new());
    for Text { file, text, missing } in texts {
        match mock::parse(file, text, *missing) {
            Ok(mock) => parsed.push((file, mock)),
            Err(error) => errors.push(error),
        }
    }
    if !errors.is_empty() {
        return Err(wrong(errors));
    }
    let sources: Vec<_> = parsed.iter().map(|(file, mock)| MockSource { file, mock }).collect();
    let named = RefCell::new(Vec::new());
    let beside = |file: &str, path: &str| {
        let path = Path::new(file).parent().unwrap_or(Path::new("")).join(path);
        let read = std::fs::read(&path).map_err(|error| error.to_string());
        named.borrow_mut().push(path);
        read
    };
    let mock = Mock::compile(&sources, &beside);
    noted.extend(named.into_inner());
    mock.map_err(wrong)
}

/// How often the files are checked for changes.
const EVERY: Duration = Duration::from_millis(200);

/// The result of reading the files again.
#[derive(Debug)]
pub enum Reload {
    /// The server answers from the new files.
    Done,
    /// The new files are broken, and the server continues with the old ones.
    Kept(LoadError),
}

/// Reads the files again whenever one of them, or a file that they name, changes, and reports the result. Never returns.
///
/// # Why not the kernel's notifications
///
/// Editors replace files, and folders may be mounted. Checking a few files five times a second costs nothing.
pub async fn watch(files: MockFiles, server: Server, mut report: impl FnMut(Reload)) {
    let mut paths = Vec::new();
    // Errors of this first reading were reported when the mock was started.
    let _ = files.load_noting(&mut paths);
    let mut seen = stamps(&paths);
    loop {
        tokio::time::sleep(EVERY).await;
        if stamps(&paths) == seen {
            continue;
        }
        // Taken before the files are read, so that a change during the reading is noticed.
        let before = stamps(&paths);
        let mut noted = Vec::new();
        let loaded = files.load_noting(&mut noted);
        // A broken file names no other files, and the error may be in a file that it named before.
        if loaded.is_err() {
            noted.extend(paths.iter().filter(|path| !noted.contains(path)).cloned().collect::<Vec<_>>());
        }
        seen = noted.iter().map(|path| known(&paths, &before, path).unwrap_or_else(|| stamp(path))).collect();
        paths = noted;
        match loaded {
            Ok(chain) => {
                server.replace(chain);
                report(Reload::Done);
            }
            // An editor may remove a file before it writes it; the next check finds it.
            Err(LoadError::Unreadable { .. }) if seen.iter().any(Option::is_none) => {}
            Err(error) => report(Reload::Kept(error)),
        }
    }
}

/// When a file last changed and how long it is; `None` for one that is not there.
type Stamp = Option<(SystemTime, u64)>;

fn stamps(paths: &[PathBuf]) -> Vec<Stamp> {
    paths.iter().map(|path| stamp(path)).collect()
}

fn stamp(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// The stamp of a path in a list of paths.
fn known(paths: &[PathBuf], stamps: &[Stamp], path: &Path) -> Option<Stamp> {
    paths.iter().position(|other| other == path).map(|at| stamps[at])
}
