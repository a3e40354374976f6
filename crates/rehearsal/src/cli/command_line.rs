//! The command line: all verbs and their arguments.

use std::ffi::OsString;

use clap::error::{ContextKind, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use super::cache::CacheArgs;
use super::call::CallArgs;
use super::check::CheckArgs;
use super::completions::CompletionsArgs;
use super::context::Context;
use super::dry_run::DryRunArgs;
use super::exec::ExecArgs;
use super::exit::Exit;
use super::generate::GenerateArgs;
use super::init::InitArgs;
use super::list::ListArgs;
use super::logout::LogoutArgs;
use super::man::ManArgs;
use super::mock::MockArgs;
use super::prompt::PromptArgs;
use super::read::ReadArgs;
use super::record::RecordArgs;
use super::replay::ReplayArgs;
use super::request::RequestArgs;
use super::schema::SchemaArgs;
use super::trace::TraceArgs;
use super::types::TypesArgs;
use super::usage_error::usage_failure;
use super::verify::VerifyArgs;
use super::wrap::{UnwrapArgs, WrapArgs};

/// Test programs that use MCP: drive, record, replay, mock and verify servers, and dry-run plans
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
    /// The verb.
    #[command(subcommand)]
    pub(super) verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    List(ListArgs),
    Call(CallArgs),
    Read(ReadArgs),
    Prompt(PromptArgs),
    Request(RequestArgs),
    Init(InitArgs),
    Mock(MockArgs),
    Check(CheckArgs),
    Schema(SchemaArgs),
    Record(RecordArgs),
    Replay(Box<ReplayArgs>),
    Trace(TraceArgs),
    Verify(VerifyArgs),
    Generate(GenerateArgs),
    DryRun(Box<DryRunArgs>),
    Exec(Box<ExecArgs>),
    Types(TypesArgs),
    Cache(CacheArgs),
    Wrap(WrapArgs),
    Unwrap(UnwrapArgs),
    Logout(LogoutArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
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
  rehearse dry-run plan.ts --config .mcp.json
  rehearse exec plan.ts --config .mcp.json

`rehearse list --help` describes a verb.";

impl CommandLine {
    /// Parses the command line. Prints the help that it requests, or the errors in it.
    pub(super) fn read(context: &Context) -> Result<CommandLine, Exit> {
        let read = || CommandLine::from_arg_matches(&CommandLine::help_command().try_get_matches_from(&context.words)?);
        read().map_err(|error| {
            let screens = [
                ErrorKind::DisplayHelp,
                ErrorKind::DisplayVersion,
                ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
            ];
            if screens.contains(&error.kind()) {
                // If stdout is closed, the help is not needed.
                let _ = error.print();
                let is_requested = error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
                return if is_requested { Exit::Ok } else { Exit::BadInput };
            }
            let all = CommandLine::command();
            let verb = verb_of(&all, &context.words);
            usage_failure(&error, verb).report(&context.stderr);
            let takes_command = verb.get_arguments().any(clap::Arg::is_last_set);
            let unknown = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
            let is_unknown = error.kind() == ErrorKind::UnknownArgument && !unknown.starts_with('-');
            if is_unknown && takes_command && !context.words.iter().any(|word| word == "--") {
                context.stderr.hint("the command of a server comes after `--`: rehearse list -- npx -y some-server");
            }
            Exit::BadInput
        })
    }

    /// The command with all subcommands, in the form for help texts.
    pub(super) fn help_command() -> Command {
        with_joined_lines(CommandLine::command())
    }
}

/// Joins the lines of each paragraph, so that clap wraps them to the width of the terminal.
fn with_joined_lines(command: Command) -> Command {
    let more = command.get_after_help().map(|text| join_lines(&text.to_string()));
    let command = command.mut_subcommands(with_joined_lines);
    match more {
        Some(more) => command.after_help(more),
        None => command,
    }
}

/// Joins the lines of each paragraph. Indented lines, and the line before them, stay.
fn join_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut before = "";
    for line in text.lines() {
        let continues = !before.is_empty() && !before.starts_with(' ') && !line.is_empty() && !line.starts_with(' ');
        if !joined.is_empty() || !before.is_empty() {
            joined.push(if continues { ' ' } else { '\n' });
        }
        joined.push_str(line);
        before = line;
    }
    joined
}

/// The verb that a command line names.
fn verb_of<'a>(all: &'a Command, words: &[OsString]) -> &'a Command {
    let mut verb = all;
    while let Some(inner) = words.iter().find_map(|word| verb.find_subcommand(word)) {
        verb = inner;
    }
    verb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_accepts_the_command_line() {
        CommandLine::help_command().debug_assert();
    }

    #[test]
    fn lines_of_paragraphs_are_joined_and_lists_stay() {
        let text = "One and\ntwo.\n\nExamples:\n  a\n  b\n\nExit status:\n    0  well";
        assert_eq!(join_lines(text), "One and two.\n\nExamples:\n  a\n  b\n\nExit status:\n    0  well");
    }

    #[test]
    fn no_help_text_has_a_line_break_inside_a_paragraph() {
        fn check(command: &mut Command) {
            let more = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for (line, next) in more.lines().zip(more.lines().skip(1)) {
                let prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
                assert!(!(prose(line) && prose(next)), "{}: {line}", command.get_name());
            }
            command.get_subcommands_mut().for_each(check);
        }
        check(&mut CommandLine::help_command());
    }
}
