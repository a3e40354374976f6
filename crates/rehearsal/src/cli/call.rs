//! `rehearse call`

use clap::Args;
use rehearsal::Client;
use rehearsal::core::protocol::Tool;

use super::answer_exit::exit_for;
use super::arguments::{ArgumentInput, ArgumentOwner, Signature, ToolArguments};
use super::context::Context;
use super::exit::{Exit, Failure};
use super::output::to_stdout;
use super::save::SaveArgs;
use super::server::{ServerArgs, ShownAs};
use crate::print::{progress_line, raw_json, tool_answer};

/// Call a tool and print its result
#[derive(Args, Debug)]
#[command(after_help = format!("{AFTER_HELP}\n\n{}", Exit::help()))]
pub(super) struct CallArgs {
    /// The name of the tool
    tool: String,

    /// Arguments: key=value is read as the type in the schema of the tool, key:=JSON as JSON
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
Text is printed unchanged. For images, audio and bytes, the type and size are printed; --save writes
them to files. With --json the result, or the error, is printed exactly as the server sent it. Log
messages are printed on stderr, and on a terminal also progress.

Examples:
  rehearse call echo message=hello -- npx -y @modelcontextprotocol/server-everything
  rehearse call echo message=hello --url http://127.0.0.1:3000/mcp
  rehearse call search 'tags:=[\"a\", \"b\"]' limit=5 -- ./my-server
  rehearse call search --args '{\"limit\": \"not a number\"}' -- ./my-server
  rehearse call order --answer elicitation/create='{\"action\": \"decline\"}' -- ./my-server";

impl CallArgs {
    /// Parses the arguments.
    pub(super) fn arguments(&self) -> Result<ArgumentInput, Failure> {
        ArgumentInput::read(&self.arguments, self.args.as_deref())
    }

    /// Calls the tool and prints the answer.
    pub(super) async fn run(&self, input: ArgumentInput, client: &Client, context: &Context) -> Result<Exit, Failure> {
        let arguments = match input {
            ArgumentInput::Verbatim(arguments) => ToolArguments::Verbatim(arguments),
            ArgumentInput::Checked { rest, assignments } => {
                let tools = client.listing::<Tool>().await?;
                let tool =
                    Signature::find(ArgumentOwner::Tool, &self.tool, tools.items.iter().map(Signature::from_tool));
                if tool.is_err() {
                    tools.unusable.iter().for_each(|unusable| context.stderr.error(unusable));
                }
                let tool = tool?;
                ToolArguments::Typed(tool.type_arguments(rest, assignments)?)
            }
        };
        self.server.set_default_log_level(client).await?;
        let stderr = context.stderr.clone();
        let call = client.call(&self.tool).arguments(arguments);
        let answer = call.on_progress(move |progress| stderr.status(&progress_line(&progress))).await;
        context.stderr.end_status();
        let answer = answer?;
        to_stdout(|out| match self.server.shown_as() {
            ShownAs::Json => raw_json(&answer, out),
            ShownAs::Text => tool_answer(&answer, &context.stdout, out),
        })?;
        let exit = exit_for(&answer, &context.stderr);
        let saved = self.save.save(&answer.blocks(), &self.tool, self.server.shown_as(), &context.stderr)?;
        Ok(exit.and(saved))
    }
}
