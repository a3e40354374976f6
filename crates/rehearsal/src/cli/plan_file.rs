//! The file of a plan, and the values of flags that name its tools.

use std::path::Path;

use rehearsal::dry_run::{DeclaredEffect, Plan, PlanLanguage, PlanReadError, SavedPlan, SavedPlanError};

use super::exit::Failure;

/// What the file of a plan contains.
pub(super) enum PlanFile {
    /// Code or a workflow.
    Plan(Plan),
    /// A plan that `--out` saved.
    Saved(Box<SavedPlan>),
}

impl PlanFile {
    /// Reads the plan. A file with the format of saved plans is one, unless its extension is one of code. A saved plan has a
    /// seed, so that of a flag is refused.
    pub(super) fn read(path: &Path, seed: Option<u64>) -> Result<PlanFile, Failure> {
        let saved = match PlanLanguage::from_path(path) {
            Some(PlanLanguage::Code) => None,
            Some(PlanLanguage::Workflow) | None => Some(SavedPlan::read(path)),
        };
        match saved {
            Some(Ok(_)) if seed.is_some() => {
                Err(Failure::bad_input("--seed: a saved plan has its own seed").hint("leave --seed out"))
            }
            Some(Ok(saved)) => Ok(PlanFile::Saved(Box::new(saved))),
            Some(Err(error @ (SavedPlanError::NewerFormat { .. } | SavedPlanError::Damaged { .. }))) => {
                Err(saved_failure(error))
            }
            Some(Err(_)) | None => Plan::read(path).map(PlanFile::Plan).map_err(plan_failure),
        }
    }

    /// The plan.
    pub(super) fn plan(&self) -> Plan {
        match self {
            PlanFile::Plan(plan) => plan.clone(),
            PlanFile::Saved(saved) => saved.plan(),
        }
    }
}

pub(super) fn saved_failure(error: SavedPlanError) -> Failure {
    let hint = match &error {
        SavedPlanError::Exists { .. } => Some("name another file, or remove this one"),
        SavedPlanError::NewerFormat { .. } => Some("update rehearse, or save the plan again with --out"),
        SavedPlanError::Damaged { .. } => Some("save the plan again with --out"),
        SavedPlanError::TooLong { .. } => Some("make fewer calls, or calls with shorter arguments"),
        SavedPlanError::HasErrors { .. }
        | SavedPlanError::OtherPlan { .. }
        | SavedPlanError::Unwritable { .. }
        | SavedPlanError::Unreadable { .. }
        | SavedPlanError::NotSaved { .. } => None,
    };
    Failure::bad_input(error).hints(hint)
}

fn plan_failure(error: PlanReadError) -> Failure {
    let hint = matches!(error, PlanReadError::UnknownLanguage { .. })
        .then_some("the extension of code is .ts or .js, that of a workflow .yaml or .json");
    Failure::bad_input(error).hints(hint)
}

pub(super) fn tool(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((server, tool)) if !server.is_empty() && !tool.is_empty() => Ok((server.to_owned(), tool.to_owned())),
        _ => Err("write it SERVER:TOOL".to_owned()),
    }
}

pub(super) fn effect(text: &str) -> Result<(String, DeclaredEffect), String> {
    let (tool, effect) = text.rsplit_once('=').ok_or("write it SERVER:TOOL=EFFECT")?;
    if !tool.contains(':') {
        return Err("write it SERVER:TOOL=EFFECT".to_owned());
    }
    Ok((tool.to_owned(), effect.parse()?))
}
