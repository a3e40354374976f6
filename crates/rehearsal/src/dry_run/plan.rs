//! A plan: the code or the workflow that an agent wants to run.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The extensions of code.
const CODE: [&str; 6] = ["ts", "js", "mts", "mjs", "cts", "cjs"];
/// The extensions of workflows.
const WORKFLOW: [&str; 3] = ["yaml", "yml", "json"];
/// Maximum length of a plan, in bytes.
const MAX_PLAN_BYTES: u64 = 4 << 20;

/// A plan.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) file: String,
    pub(crate) text: String,
    pub(crate) language: PlanLanguage,
}

/// The language of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanLanguage {
    /// TypeScript or JavaScript.
    Code,
    /// Tasks in YAML or JSON.
    Workflow,
}

/// Why a plan cannot be read.
#[derive(thiserror::Error)]
pub enum PlanReadError {
    /// The file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        cause: io::Error,
    },
    /// The file is too long.
    #[error("{}: a plan has at most {} MB", path.display(), MAX_PLAN_BYTES >> 20)]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// The extension names no language.
    #[error("{}: the language of the plan is not known from its extension", path.display())]
    UnknownLanguage {
        /// The file.
        path: PathBuf,
    },
}

debug_as_display!(PlanReadError);

impl PlanLanguage {
    /// The language of files with this extension, if there is one.
    pub fn from_path(path: impl AsRef<Path>) -> Option<PlanLanguage> {
        match path.as_ref().extension()?.to_str()? {
            code if CODE.contains(&code) => Some(PlanLanguage::Code),
            workflow if WORKFLOW.contains(&workflow) => Some(PlanLanguage::Workflow),
            _ => None,
        }
    }
}

impl Plan {
    /// Reads a plan. The extension decides the language: `.ts`, `.js` and similar are code, `.yaml`, `.yml` and `.json` are
    /// workflows.
    pub fn read(path: impl AsRef<Path>) -> Result<Plan, PlanReadError> {
        let path = path.as_ref();
        let language = PlanLanguage::from_path(path);
        let language = language.ok_or_else(|| PlanReadError::UnknownLanguage { path: path.to_owned() })?;
        let unreadable = |cause| PlanReadError::Unreadable { path: path.to_owned(), cause };
        if std::fs::metadata(path).map_err(unreadable)?.len() > MAX_PLAN_BYTES {
            return Err(PlanReadError::TooLong { path: path.to_owned() });
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        Ok(Plan { file: path.display().to_string(), text, language })
    }

    /// A plan in TypeScript or JavaScript; `file` is its name in reports.
    pub fn code(file: impl Into<String>, text: impl Into<String>) -> Plan {
        Plan { file: file.into(), text: text.into(), language: PlanLanguage::Code }
    }

    /// A workflow in YAML or JSON; `file` is its name in reports.
    pub fn workflow(file: impl Into<String>, text: impl Into<String>) -> Plan {
        Plan { file: file.into(), text: text.into(), language: PlanLanguage::Workflow }
    }

    /// The name of the plan in reports.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// `sha256:` and the digest of the text.
    pub fn hash(&self) -> String {
        sha256(&self.text)
    }

    /// A line of the text, from 1.
    pub(crate) fn line(&self, line: u32) -> Option<&str> {
        self.text.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)
    }
}

/// `sha256:` and the digest of a text.
pub(super) fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)
    }
}
