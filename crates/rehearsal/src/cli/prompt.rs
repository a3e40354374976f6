//! `rehearse prompt`

use clap::Args;
use rehearsal::Client;
use rehearsal::core::protocol::Prompt;

use super::answer_exit::exit_for;
use super::arguments::{ArgumentInput, ArgumentOwner, Signature, ToolArguments};
use super::context::Context;
use super::exit::{Exit, Failure};
use super::output::to_stdout;
use super::save::SaveArgs;
use super::server::{ServerArgs, ShownAs};
use crate::print::{messages, raw_json};

/// Get a prompt and print its messages
#[derive(Args, Debug)]
#[command(after_help = format!("{AFTER_HELP}\n\n{}", Exit::help()))]
pub(super) struct PromptArgs {
    /// The name of the prompt
    name: String,

    /// Arguments: key=value is text, as the protocol requires, key:=JSON is sent unchecked
    #[arg(value_name = "KEY=VALUE")]
    arguments: Vec<String>,

    /// Arguments as JSON, as @FILE, or as - for stdin; without key=value they are sent unchecked
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    args: Option<String>,

    #[command(flatten)]
    pub(super) server: ServerArgs,

    #[command(flatten)]
    pub(super) save: SaveArgs,
}

const AFTER_HELP: &str = "\
Each message is printed below its role. With --json the result, or the error, is printed exactly as
the server sent it.

Examples:
  rehearse prompt args-prompt city=Oslo -- npx -y @modelcontextprotocol/server-everything
  rehearse prompt greet who=Ada --json -- tiny-server | jq -r '.messages[0].content.text'";

impl PromptArgs {
    /// Parses the arguments.
    pub(super) fn arguments(&self) -> Result<ArgumentInput, Failure> {
        ArgumentInput::read(&self.arguments, self.args.as_deref())
    }

    /// Gets the prompt and prints it.
    pub(super) async fn run(&self, input: ArgumentInput, client: &Client, context: &Context) -> Result<Exit, Failure> {
        let arguments = match input {
            ArgumentInput::Verbatim(arguments) => ToolArguments::Verbatim(arguments),
            ArgumentInput::Checked { rest, assignments } => {
                let prompts = client.listing::<Prompt>().await?;
                let prompt = Signature::find(
                    ArgumentOwner::Prompt,
                    &self.name,
                    prompts.items.iter().map(Signature::from_prompt),
                );
                if prompt.is_err() {
                    prompts.unusable.iter().for_each(|unusable| context.stderr.error(unusable));
                }
                let prompt = prompt?;
                ToolArguments::Typed(prompt.type_arguments(rest, assignments)?)
            }
        };
        let answer = client.get_prompt(&self.name, arguments).await?;
        to_stdout(|out| match self.server.shown_as() {
            ShownAs::Json => raw_json(&answer, out),
            ShownAs::Text => messages(&answer, &context.stdout, out),
        })?;
        let exit = exit_for(&answer, &context.stderr);
        let saved = self.save.save(&answer.blocks(), &self.name, self.server.shown_as(), &context.stderr)?;
        Ok(exit.and(saved))
    }
}
