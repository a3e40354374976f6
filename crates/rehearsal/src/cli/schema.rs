//! `rehearse schema`

use clap::{Args, ValueEnum};
use rehearsal_core::script::{mock, workflow};

use super::exit::{Exit, Failure};
use super::output::to_stdout;

/// Print the JSON Schema of a file format, for editors
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct SchemaArgs {
    /// The format
    #[arg(value_enum)]
    format: Format,
}

/// The formats of files that users write.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// *.mock.yaml
    Mock,
    /// A workflow: a plan of tasks for `rehearse dry-run`
    Workflow,
    /// The report of `rehearse dry-run --json`
    DryRun,
    /// The report of `rehearse exec --json`
    Exec,
    /// A plan that `rehearse dry-run --out` saved
    SavedPlan,
}

const AFTER_HELP: &str = "\
Editors that support JSON Schema complete keys and mark errors. With the YAML extension of VS Code,
put this into the settings:
  \"yaml.schemas\": { \"./mock.schema.json\": \"*.mock.yaml\" }
or begin a file with:
  # yaml-language-server: $schema=./mock.schema.json

Examples:
  rehearse schema mock > mock.schema.json
  rehearse schema workflow > workflow.schema.json

Exit status:
    0  the schema was printed
    2  there is no schema with this name";

impl SchemaArgs {
    /// Prints the schema.
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let schema = match self.format {
            Format::Mock => mock::json_schema(),
            Format::Workflow => workflow::json_schema(),
            Format::DryRun => rehearsal::dry_run::json_schema(),
            Format::Exec => rehearsal::exec::json_schema(),
            Format::SavedPlan => rehearsal::dry_run::SavedPlan::json_schema(),
        };
        to_stdout(|out| writeln!(out, "{schema:#}"))?;
        Ok(Exit::Ok)
    }
}
