//! Everything that can be typed.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use super::call::Call;
use super::check::Check;
use super::completions::Completions;
use super::context::Context;
use super::exit::Exit;
use super::generate::Generate;
use super::init::Init;
use super::list::List;
use super::logout::Logout;
use super::man::Man;
use super::mock::Mock;
use super::prompt::Prompt;
use super::read::Read;
use super::record::Record;
use super::replay::Replay;
use super::request::Request;
use super::schema::Schema;
use super::trace::Trace;
use super::verify::Verify;
use super::wrap::{Unwrap, Wrap};

/// Drives and records MCP servers from the command line: see what a server offers, use it, watch the wire.
#[derive(Debug, Parser)]
#[command(
    name = "rehearse",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = format!("{EXAMPLES}\n\n{}", Exit::help()),
)]
pub(super) struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub(super) verb: Verb,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    List(List),
    Call(Call),
    Read(Read),
    Prompt(Prompt),
    Request(Request),
    Init(Init),
    Mock(Mock),
    Check(Check),
    Schema(Schema),
    Record(Record),
    Replay(Box<Replay>),
    Trace(Trace),
    Verify(Verify),
    Generate(Generate),
    Wrap(Wrap),
    Unwrap(Unwrap),
    Logout(Logout),
    Completions(Completions),
    Man(Man),
}

const EXAMPLES: &str = "\
Examples:
  rehearse list -- npx -y @modelcontextprotocol/server-everything
  rehearse call echo message=hello --url http://127.0.0.1:3000/mcp
  rehearse read file:///notes.md --container my-server:latest
  rehearse prompt greet who=Ada --config .mcp.json --server greeter
  rehearse record -o trace.jsonl -- npx -y @modelcontextprotocol/server-everything
  rehearse trace show trace.jsonl
  rehearse verify trace.jsonl -- npx -y @modelcontextprotocol/server-everything
  rehearse replay trace.jsonl

`rehearse list --help` and the like say more.";

impl CommandLine {
    /// Reads the words; what cannot be read, and `--help`, is said at once.
    pub(super) fn read(context: &Context) -> Result<CommandLine, Exit> {
        CommandLine::try_parse_from(&context.words).map_err(|error| {
            // Whoever does not listen to it has no use for it either.
            let _ = error.print();
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            if asked {
                return Exit::Ok;
            }
            let surprised = error.kind() == ErrorKind::UnknownArgument;
            if surprised && takes_command(&context.words) && !context.words.iter().any(|word| word == "--") {
                context.talk.hint("the command of a server comes after `--`: rehearse list -- npx -y some-server");
            }
            Exit::BadInput
        })
    }
}

/// Whether the verb that was named starts a server.
fn takes_command(words: &[OsString]) -> bool {
    let all = CommandLine::command();
    let mut verb = &all;
    while let Some(inner) = words.iter().find_map(|word| verb.find_subcommand(word)) {
        verb = inner;
    }
    verb.get_arguments().any(clap::Arg::is_last_set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_makes_sense_to_its_parser() {
        CommandLine::command().debug_assert();
    }
}
