//! `rehearse schema`

use clap::{Args, ValueEnum};
use rehearsal::core::script::mock;

use super::exit::{Exit, Failure};
use super::output::to_stdout;

/// Print the JSON Schema of a file format, for editors
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct SchemaArgs {
    /// Which format
    #[arg(value_enum)]
    format: Format,
}

/// The formats that people write.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// *.mock.yaml
    Mock,
}

const AFTER_HELP: &str = "\
Editors that know JSON Schema complete keys and mark mistakes. With the YAML extension of VS Code,
put this into the settings:
  \"yaml.schemas\": { \"./mock.schema.json\": \"*.mock.yaml\" }
or begin a file with:
  # yaml-language-server: $schema=./mock.schema.json

Examples:
  rehearse schema mock > mock.schema.json

Exit status:
    0  it was printed
    2  there is no such schema";

impl SchemaArgs {
    /// Prints it.
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let schema = match self.format {
            Format::Mock => mock::json_schema(),
        };
        to_stdout(|out| writeln!(out, "{schema:#}"))?;
        Ok(Exit::Ok)
    }
}
