//! `rehearse call`

use std::io::{self, Write};

use clap::Args;
use rehearsal::Client;
use rehearsal::client::Response;
use rehearsal::core::json::RawJson;
use serde_json::Value;

use super::arguments::{ArgumentsError, Given, typed};
use super::context::Context;
use super::exit::Exit;
use super::failure::Failure;
use super::output::to_stdout;
use super::server::ServerOptions;
use crate::print::{Talk, response};

/// Call a tool and print what it answers
#[derive(Args, Debug)]
#[command(after_help = format!("{MORE}\n\n{}", Exit::help()))]
pub(super) struct Call {
    /// The name of the tool
    tool: String,

    /// Arguments: key=value is read as the type that the tool wants, key:=JSON as JSON
    #[arg(value_name = "KEY=VALUE")]
    arguments: Vec<String>,

    /// Arguments as JSON, as @FILE, or as - for stdin; without key=value they are sent unchecked
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    args: Option<String>,

    #[command(flatten)]
    pub(super) server: ServerOptions,
}

const MORE: &str = "\
Text is printed as it is; of pictures, sounds and bytes the type and size are told. With --json
the result, or the error, is printed exactly as the server wrote it.

Examples:
  rehearse call echo message=hello -- npx -y @modelcontextprotocol/server-everything
  rehearse call echo message=hello --url http://127.0.0.1:3000/mcp
  rehearse call search 'tags:=[\"a\", \"b\"]' limit=5 -- ./my-server
  rehearse call search --args '{\"limit\": \"not a number\"}' -- ./my-server";

impl Call {
    /// The arguments as they were written.
    pub(super) fn given(&self) -> Result<Given, ArgumentsError> {
        Given::read(&self.arguments, self.args.as_deref())
    }

    /// Calls the tool and prints the answer.
    pub(super) async fn run(&self, given: Given, client: &Client, context: &Context) -> Result<Exit, Failure> {
        let arguments = match given {
            Given::Exactly(arguments) => arguments,
            Given::Checked { rest, assignments } => {
                let tools = client.list_tools().await?;
                let tool = tools.iter().find(|tool| tool.name == self.tool);
                let tool = tool.ok_or_else(|| ArgumentsError::UnknownTool {
                    tool: self.tool.clone(),
                    known: tools.iter().map(|tool| tool.name.clone()).collect(),
                })?;
                typed(tool, rest, assignments)?
            }
        };
        let answer = client.call_tool(&self.tool, arguments).await?;
        if self.server.json {
            to_stdout(|out| print_raw(&answer, out))?;
        } else {
            to_stdout(|out| response(&answer, out))?;
        }
        Ok(judged(&answer, context.talk))
    }
}

/// Prints the result, or the error, exactly as the server wrote it.
fn print_raw(answer: &Response, out: &mut dyn Write) -> io::Result<()> {
    let key = if answer.error().is_some() { "error" } else { "result" };
    let raw = RawJson::parse(answer.bytes()).ok().and_then(|message| message.field(key));
    writeln!(out, "{}", raw.as_ref().map_or("null", RawJson::as_str))
}

/// Says what was wrong with the answer, if anything.
///
/// ```text
/// error: -32602: unknown tool
///   data: {"tool":"ecoh"}
/// ```
fn judged(answer: &Response, talk: Talk) -> Exit {
    if let Some(error) = answer.error() {
        let data = error.data.as_ref().map(|data| format!("\n  data: {}", data.as_str())).unwrap_or_default();
        talk.error(format_args!("{error}{data}"));
        Exit::ChecksFailed
    } else if answer.is_error() {
        talk.error("the tool says that it failed");
        Exit::ChecksFailed
    } else if answer.is_input_required() {
        talk.error(format_args!("the tool wants input that nobody here can give{}", questions(answer.result())));
        Exit::ChecksFailed
    } else {
        Exit::Ok
    }
}

/// What a tool of the stateless era wants to know, one question a line.
fn questions(result: &Value) -> String {
    let asked = result.get("inputRequests").and_then(Value::as_object);
    let line = |request: &Value| {
        let method = request.get("method").and_then(Value::as_str).unwrap_or("no method");
        let message = request.pointer("/params/message").and_then(Value::as_str).unwrap_or_default();
        format!("\n  {method} {message}").trim_end().to_owned()
    };
    asked.into_iter().flat_map(|asked| asked.values()).map(line).collect()
}
