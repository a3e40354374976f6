//! A plan that was rehearsed, as a file: the plan, its calls, and what its rehearsal relied on.
//!
//! ```text
//! Plan + DryRunOptions + DryRunReport ──from_report──► SavedPlan ──write──► plan.json
//! plan.json ──read──► SavedPlan ──dry_run──► DryRunReport with what changed since then
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rehearsal_core::json::canonical;
use rehearsal_core::report::Severity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tempfile::NamedTempFile;

use super::catalogue::ListedTools;
use super::changes::changes;
use super::live::now_ms;
use super::options::DryRunOptions;
use super::plan::{Plan, PlanLanguage, sha256};
use super::report::{
    AnswerOrigin, DryRunReport, Effect, EffectFrom, KnownAfterRun, PlanPlace, ReportedAnswer, ReportedBranch,
    ReportedCall, UnreachedCall,
};
use super::{DryRunError, dry_run};

/// The beginning of `format`, which is followed by the version.
const FORMAT_NAME: &str = "rehearsal-plan/";
/// The version of the files that this version writes, and the newest that it reads.
const FORMAT_VERSION: u64 = 1;
/// Maximum length of a file, in bytes: a plan of 10,000 calls with long arguments has about a fourth.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Maximum length of an answer's JSON, in bytes, whose value is saved. Of a longer one only the digest is.
const MAX_ANSWER_BYTES: usize = 16 << 10;
/// Maximum length of all answers whose values are saved, in bytes, so that plans with many calls stay far below
/// [`MAX_FILE_BYTES`].
const MAX_ANSWERS_BYTES: usize = 8 << 20;
/// In this many bytes at the beginning of a damaged file its format is looked for.
const HEAD_BYTES: usize = 1 << 10;

/// A plan with its calls, what was known only after a run, and the schemas and answers that its rehearsal relied on.
///
/// Its members have the names and meanings of those of a [`DryRunReport`]. Numbers of calls count from 1.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SavedPlan {
    /// The format of the file: `rehearsal-plan/1`.
    pub format: String,
    /// When the plan was saved, in RFC 3339.
    pub saved_at: String,
    /// The name of the plan's file when it was saved.
    pub plan: String,
    /// `sha256:` and the digest of `text`.
    pub plan_hash: String,
    /// The language of `text`.
    pub language: PlanLanguage,
    /// The purpose of the plan.
    pub intent: Option<String>,
    /// The seed of the plan's `Math.random`.
    pub seed: u64,
    /// The text of the plan.
    pub text: String,
    /// The calls, in the order in which the plan made them.
    pub calls: Vec<SavedCall>,
    /// The decisions of the plan that depend on values which are not known.
    pub branches: Vec<ReportedBranch>,
    /// The calls that the plan may make and that the rehearsal did not reach.
    pub not_run: Vec<UnreachedCall>,
    /// The runs for which the budget was too small. If there are any, arguments may depend on invented answers although
    /// `known_after_run` lacks them.
    pub not_done: Vec<String>,
    /// The tools that the plan calls or may call, as `server:tool`.
    pub tools: BTreeMap<String, SavedTool>,
}

/// A call of a saved plan.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SavedCall {
    /// Its number, from 1.
    pub call: usize,
    /// `server:tool`.
    pub tool: String,
    /// The task, if the plan is a workflow.
    pub task: Option<String>,
    /// The place of the call, with the places from which the function with the call was called.
    pub place: Option<PlanPlace>,
    /// Its number among the calls of this tool from this place, from 1.
    pub occurrence: usize,
    /// The arguments.
    pub arguments: Value,
    /// The arguments that may be other ones in a real run.
    pub known_after_run: Vec<KnownAfterRun>,
    /// The decisions on which it depends whether the call is made: indexes of `branches`, from 0.
    pub conditional_on: Vec<usize>,
    /// Whether a real run may make more or fewer calls from this place.
    pub repeats: bool,
    /// What the call does.
    pub effect: Effect,
    /// How the effect is known.
    pub effect_from: EffectFrom,
    /// Whether the effect can be undone.
    pub reversible: bool,
    /// The answer on which the rehearsal relied.
    pub answer: SavedAnswer,
}

/// The answer that a plan got when it was saved.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SavedAnswer {
    /// The source of the answer.
    #[serde(rename = "_source")]
    pub source: AnswerOrigin,
    /// When a server returned the recorded result, in RFC 3339.
    #[serde(rename = "_cached_at")]
    pub cached_at: Option<String>,
    /// The value that the plan got; for an error its message. `null` if it is too long: then there is a `value_hash`.
    pub value: Value,
    /// `sha256:` and the digest of the value's canonical JSON, if the value is too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_hash: Option<String>,
    /// Whether the plan got an error.
    pub is_error: bool,
}

/// A tool as its server listed it when the plan was saved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SavedTool {
    /// Its input schema.
    pub input_schema: Option<Value>,
    /// Its output schema.
    pub output_schema: Option<Value>,
    /// Its annotations.
    pub annotations: Option<Value>,
}

/// Why a plan cannot be saved or a saved plan cannot be read.
#[derive(thiserror::Error)]
pub enum SavedPlanError {
    /// A dry run that found errors is no rehearsal of a real run.
    #[error("the dry run of {plan} found {errors} error{}", if *errors == 1 { "" } else { "s" })]
    HasErrors {
        /// The plan.
        plan: String,
        /// The number of errors.
        errors: usize,
    },
    /// The report is about another plan, or about another text of it.
    #[error("the report is not about {plan}: the texts differ")]
    OtherPlan {
        /// The plan.
        plan: String,
    },
    /// Another file than a saved plan would be overwritten.
    #[error("{} exists and is not a saved plan", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error("cannot write {}: {cause}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        cause: io::Error,
    },
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
    #[error("{}: a saved plan has at most {} MB", path.display(), MAX_FILE_BYTES >> 20)]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// The file has no member `format` of a saved plan.
    #[error("{} is not a saved plan", path.display())]
    NotSaved {
        /// The file.
        path: PathBuf,
    },
    /// A newer version has written the file.
    #[error("{}: cannot read format {format}; this version reads up to {FORMAT_NAME}{FORMAT_VERSION}", path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        format: String,
    },
    /// The file is not valid.
    #[error("{}:{line}:{column}: the saved plan is damaged: {message}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
}

debug_as_display!(SavedPlanError);

impl SavedPlan {
    /// Saves a plan after a dry run without errors. `options` are those of the dry run.
    pub fn from_report(
        plan: &Plan,
        options: &DryRunOptions,
        report: &DryRunReport,
    ) -> Result<SavedPlan, SavedPlanError> {
        if report.plan_hash != plan.hash() {
            return Err(SavedPlanError::OtherPlan { plan: plan.file.clone() });
        }
        if !report.is_clean() {
            return Err(SavedPlanError::HasErrors { plan: plan.file.clone(), errors: report.count(Severity::Error) });
        }
        let saved_at = i64::try_from(now_ms()).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let occurrences = occurrences(report.tools_called.iter().map(|call| (&call.tool, call.place.as_ref())));
        let mut room = MAX_ANSWERS_BYTES;
        let calls = report.tools_called.iter().zip(occurrences);
        Ok(SavedPlan {
            format: format!("{FORMAT_NAME}{FORMAT_VERSION}"),
            saved_at: saved_at.unwrap_or_default().to_string(),
            plan: plan.file.clone(),
            plan_hash: report.plan_hash.clone(),
            language: plan.language,
            intent: report.intent.clone(),
            seed: options.seed,
            text: plan.text.clone(),
            calls: calls.map(|(call, occurrence)| saved_call(call, occurrence, &mut room)).collect(),
            branches: report.branches.clone(),
            not_run: report.not_run.clone(),
            not_done: report.runs.not_done.clone(),
            tools: saved_tools(options, report),
        })
    }

    /// Reads a saved plan.
    pub fn read(path: impl AsRef<Path>) -> Result<SavedPlan, SavedPlanError> {
        let path = path.as_ref();
        let unreadable = |cause| SavedPlanError::Unreadable { path: path.to_owned(), cause };
        if fs::metadata(path).map_err(unreadable)?.len() > MAX_FILE_BYTES {
            return Err(SavedPlanError::TooLong { path: path.to_owned() });
        }
        parse(path, &fs::read_to_string(path).map_err(unreadable)?)
    }

    /// Writes the plan to a file, which is replaced atomically if it is a saved plan. Any other file is not overwritten.
    ///
    /// The file contains the plan with its arguments and answers. If it is a new one, only its owner can read it.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), SavedPlanError> {
        let path = path.as_ref();
        SavedPlan::check_target(path)?;
        let unwritable = |cause| SavedPlanError::Unwritable { path: path.to_owned(), cause };
        let mut text = serde_json::to_string_pretty(self).map_err(|error| unwritable(error.into()))?;
        text.push('\n');
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(SavedPlanError::TooLong { path: path.to_owned() });
        }
        let known = fs::metadata(path).ok();
        if known.as_ref().is_some_and(|known| !known.is_file()) {
            // A device or a pipe.
            return fs::write(path, text).map_err(unwritable);
        }
        let real = real(path);
        let mut file = temporary_file(&real).map_err(unwritable)?;
        file.write_all(text.as_bytes()).map_err(unwritable)?;
        let mode = known.map_or_else(|| Permissions::from_mode(0o600), |known| known.permissions());
        file.as_file().set_permissions(mode).map_err(unwritable)?;
        file.persist(&real).map_err(|error| unwritable(error.error))?;
        Ok(())
    }

    /// Checks before the work whether [`write`](SavedPlan::write) can write a file, and that it would overwrite no other file
    /// than a saved plan. A read-only file is not replaced, although the permissions of its folder would allow it.
    pub fn check_target(path: impl AsRef<Path>) -> Result<(), SavedPlanError> {
        let path = path.as_ref();
        let unwritable = |cause| SavedPlanError::Unwritable { path: path.to_owned(), cause };
        let Ok(known) = fs::metadata(path) else { return temporary_file(path).map(drop).map_err(unwritable) };
        if known.is_dir() {
            return Err(unwritable(io::ErrorKind::IsADirectory.into()));
        }
        if !known.is_file() {
            return Ok(());
        }
        let saved = if known.len() == 0 { None } else { Some(SavedPlan::read(path)) };
        match saved {
            // A damaged file of ours, or one of a newer version, is a saved plan, too.
            None | Some(Ok(_) | Err(SavedPlanError::Damaged { .. } | SavedPlanError::NewerFormat { .. })) => {}
            Some(Err(_)) => return Err(SavedPlanError::Exists { path: path.to_owned() }),
        }
        if known.permissions().readonly() {
            return Err(unwritable(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only")));
        }
        temporary_file(&real(path)).map(drop).map_err(unwritable)
    }

    /// The plan.
    pub fn plan(&self) -> Plan {
        Plan { file: self.plan.clone(), text: self.text.clone(), language: self.language }
    }

    /// Runs the plan again without its servers, with the tools and answers of today. The report has a finding for each change
    /// since the plan was saved.
    ///
    /// The seed is that of the saved plan, and so is the purpose, unless `options` have another.
    pub async fn dry_run(&self, options: &DryRunOptions) -> Result<DryRunReport, DryRunError> {
        let mut options = options.clone().seed(self.seed);
        options.intent = options.intent.or_else(|| self.intent.clone());
        let mut report = dry_run(&self.plan(), &options).await?;
        let found = changes(self, &options, &report);
        report.add_findings(found);
        Ok(report)
    }

    /// The JSON Schema of a saved plan.
    pub fn json_schema() -> Value {
        let mut schema = schemars::schema_for!(SavedPlan);
        schema.insert("title".to_owned(), "A plan saved by `rehearse dry-run --out`".into());
        schema.into()
    }
}

impl SavedTool {
    /// A tool from its element of `tools/list`.
    pub(super) fn from_listed(tool: &Value) -> SavedTool {
        let member = |name| tool.get(name).filter(|value: &&Value| !value.is_null()).cloned();
        SavedTool {
            input_schema: member("inputSchema"),
            output_schema: member("outputSchema"),
            annotations: member("annotations"),
        }
    }
}

impl SavedAnswer {
    /// Whether a value is that of the answer.
    pub(super) fn is_value(&self, other: &Value) -> bool {
        match &self.value_hash {
            Some(hash) => *hash == value_hash(other),
            None => canonical_text(&self.value) == canonical_text(other),
        }
    }
}

/// The target of a symbolic link: it is replaced, and the link stays.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// A temporary file in the folder of another file.
fn temporary_file(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The name of the temporary file helps no user.
    NamedTempFile::new_in(folder).map_err(|error| match error.to_string().split_once(" at path ") {
        Some((what, _)) => io::Error::new(error.kind(), what.to_owned()),
        None => error,
    })
}

/// Parses the text of a saved plan.
fn parse(path: &Path, text: &str) -> Result<SavedPlan, SavedPlanError> {
    #[derive(Deserialize)]
    struct Head {
        format: Option<Value>,
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let damaged = |error: serde_json::Error| {
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message).to_owned();
        SavedPlanError::Damaged { path: path.to_owned(), line: error.line(), column: error.column(), message }
    };
    let not_saved = || SavedPlanError::NotSaved { path: path.to_owned() };
    let format = match serde_json::from_str(text) {
        Ok(Head { format: Some(Value::String(format)) }) => format,
        Ok(_) => return Err(not_saved()),
        Err(error) => {
            let head = &text.as_bytes()[..text.len().min(HEAD_BYTES)];
            let is_named = head.windows(FORMAT_NAME.len()).any(|bytes| bytes == FORMAT_NAME.as_bytes());
            let is_saved = is_named && text.trim_start().starts_with('{');
            return Err(if is_saved { damaged(error) } else { not_saved() });
        }
    };
    let version = format.strip_prefix(FORMAT_NAME).ok_or_else(not_saved)?;
    match version.parse::<u64>() {
        Ok(1..=FORMAT_VERSION) => serde_json::from_str(text).map_err(damaged),
        Ok(_) | Err(_) => Err(SavedPlanError::NewerFormat { path: path.to_owned(), format }),
    }
}

fn saved_call(call: &ReportedCall, occurrence: usize, room: &mut usize) -> SavedCall {
    SavedCall {
        call: call.call,
        tool: call.tool.clone(),
        task: call.task.clone(),
        place: call.place.clone(),
        occurrence,
        arguments: call.arguments.clone(),
        known_after_run: call.known_after_run.clone(),
        conditional_on: call.conditional_on.clone(),
        repeats: call.repeats,
        effect: call.effect,
        effect_from: call.effect_from,
        reversible: call.reversible,
        answer: saved_answer(&call.answer, room),
    }
}

/// Saves an answer. `room` is how many bytes of values can still be saved.
fn saved_answer(answer: &ReportedAnswer, room: &mut usize) -> SavedAnswer {
    let length = answer.value.to_string().len();
    let is_short = length <= MAX_ANSWER_BYTES.min(*room);
    if is_short {
        *room -= length;
    }
    SavedAnswer {
        source: answer.source,
        cached_at: answer.cached_at.clone(),
        value: if is_short { answer.value.clone() } else { Value::Null },
        value_hash: (!is_short).then(|| value_hash(&answer.value)),
        is_error: answer.is_error,
    }
}

fn saved_tools(options: &DryRunOptions, report: &DryRunReport) -> BTreeMap<String, SavedTool> {
    let mut listed: BTreeMap<&str, ListedTools> = BTreeMap::new();
    let called = report.tools_called.iter().map(|call| call.tool.as_str());
    let names: BTreeSet<&str> = called.chain(report.not_run.iter().filter_map(|call| call.tool.as_deref())).collect();
    let saved = names.into_iter().filter_map(|name| {
        let (server, tool) = name.split_once(':')?;
        let tools = listed.entry(server).or_insert_with(|| options.listed_tools(server));
        Some((name.to_owned(), SavedTool::from_listed(tools.get(tool)?)))
    });
    saved.collect()
}

/// The number of each call among the calls of the same tool from the same place, from 1.
fn occurrences<'a>(calls: impl Iterator<Item = (&'a String, Option<&'a PlanPlace>)>) -> Vec<usize> {
    let mut counts: HashMap<(&String, Option<String>), usize> = HashMap::new();
    let occurrence = |(tool, place): (&'a String, Option<&PlanPlace>)| {
        let count = counts.entry((tool, place.map(|place| format!("{place:?}")))).or_default();
        *count += 1;
        *count
    };
    calls.map(occurrence).collect()
}

fn value_hash(value: &Value) -> String {
    sha256(&canonical_text(value))
}

fn canonical_text(value: &Value) -> String {
    let mut text = String::new();
    canonical(value, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A saved plan of each version, written when that version was current. They are never changed.
    const SAMPLES: [&str; FORMAT_VERSION as usize] =
        [include_str!("../../../../fixtures/saved-plans/format_1.plan.json")];

    fn read(text: &str) -> Result<SavedPlan, SavedPlanError> {
        parse(Path::new("p.json"), text)
    }

    #[test]
    fn every_version_can_still_be_read() {
        for (version, sample) in (1..).zip(SAMPLES) {
            assert!(sample.contains(&format!("\"format\": \"{FORMAT_NAME}{version}\"")));
            let saved = read(sample).unwrap();
            assert_eq!(saved.plan_hash, saved.plan().hash(), "version {version}");
            let tools: Vec<&str> = saved.calls.iter().map(|call| call.tool.as_str()).collect();
            assert_eq!(tools, ["files:list_folder", "files:delete_file"], "version {version}");
            assert_eq!(saved.calls[1].known_after_run[0].from[0].call, 1, "version {version}");
            assert!(saved.calls.iter().all(|call| saved.tools.contains_key(&call.tool)), "version {version}");
        }
    }

    #[test]
    fn a_file_without_our_format_is_not_a_saved_plan() {
        for text in ["", "{", "[]", "{}", r#"{"tasks": []}"#, r#"{"format": 1}"#, r#"{"format": "mermaid/1"}"#] {
            assert!(matches!(read(text), Err(SavedPlanError::NotSaved { .. })), "{text}");
        }
    }

    #[test]
    fn a_newer_or_damaged_file_is_refused_with_the_reason() {
        for (text, message) in [
            (
                r#"{"format": "rehearsal-plan/2"}"#,
                "p.json: cannot read format rehearsal-plan/2; this version reads up to rehearsal-plan/1",
            ),
            (
                "{\n\"format\": \"rehearsal-plan/1\"}",
                "p.json:2:29: the saved plan is damaged: missing field `saved_at`",
            ),
            (
                "{\"format\": \"rehearsal-plan/1\",\n\"seed\": }",
                "p.json:2:9: the saved plan is damaged: expected value",
            ),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn a_long_answer_is_saved_as_its_digest() {
        let answer = |value: Value| ReportedAnswer {
            mocked: true,
            source: AnswerOrigin::CapabilityCache,
            cached_at: None,
            warning: None,
            value,
            is_error: false,
        };
        let (long, mut room) = (json!({"b": "x".repeat(MAX_ANSWER_BYTES), "a": 1}), MAX_ANSWERS_BYTES);
        let saved = saved_answer(&answer(long), &mut room);
        assert_eq!((saved.value.clone(), room), (Value::Null, MAX_ANSWERS_BYTES));
        assert!(saved.is_value(&json!({"a": 1.0, "b": "x".repeat(MAX_ANSWER_BYTES)})));
        assert!(!saved.is_value(&json!({"a": 2, "b": "x".repeat(MAX_ANSWER_BYTES)})));

        room = 5;
        let short = [saved_answer(&answer(json!("1234")), &mut room), saved_answer(&answer(json!("12")), &mut room)];
        assert!(short.iter().all(|saved| saved.value_hash.is_some() == saved.value.is_null()));
        assert_eq!((room, short[1].value.clone()), (1, json!("12")));
    }
}
