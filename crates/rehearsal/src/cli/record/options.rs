//! What `rehearse record` takes.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use rehearsal::record::{Recorder, Summary};

use super::stdio;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::server::ServerError;

const FILES: &str = "Where to";
const WHAT: &str = "What is kept";
/// Where sessions go unless somebody says otherwise.
const TRACE: &str = "trace.jsonl";

/// Stand in front of a server and record what is said
#[derive(Args, Debug)]
#[command(after_help = MORE)]
pub(in crate::cli) struct Record {
    /// Append each session to this file when it ends [default: trace.jsonl, unless there is a --log]
    #[arg(short, long, value_name = "FILE", help_heading = FILES, value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Append every message to this file as it passes, one a line
    #[arg(long, value_name = "FILE", help_heading = FILES, value_hint = clap::ValueHint::FilePath)]
    log: Option<PathBuf>,

    /// Remember something with each session; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, help_heading = WHAT)]
    metadata: Vec<(String, String)>,

    /// Say nothing at the end, unless something went wrong
    #[arg(short, long)]
    quiet: bool,

    /// Start this server and record it: everything after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const MORE: &str = "\
stdin, stdout and stderr are the server's: put this in front of its command in a client's configuration,
or let `rehearse wrap` do it. The bytes that pass are not changed. The exit status is that of the server;
4 says that something could not be recorded.

Examples:
  rehearse record -- npx -y @modelcontextprotocol/server-everything
  rehearse record -o today.jsonl --log today.log --metadata client=desktop -- my-server --stdio
  rehearse list -- rehearse record -- my-server";

impl Record {
    /// Records until the conversation is over.
    pub(in crate::cli) fn run(&self, context: &Context) -> Result<u8, Failure> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(ServerError::NothingToRecord.into());
        };
        let recorder = self.recorder(context);
        let ended = stdio::record(&recorder, program, arguments);
        let summary = recorder.summary();
        if !self.quiet && !summary.failed && ended.is_ok() {
            context.talk.say(self.said(&summary));
        }
        let code = ended?;
        Ok(if summary.failed { Exit::RecordingFailed.code() } else { code })
    }

    fn recorder(&self, context: &Context) -> Recorder {
        let talk = context.talk.clone();
        let builder = Recorder::builder().on_notice(move |notice| talk.error(notice));
        let builder = match self.trace() {
            Some(path) => builder.trace(path),
            None => builder,
        };
        let builder = match &self.log {
            Some(path) => builder.log(path),
            None => builder,
        };
        let metadata = self.metadata.iter();
        metadata.fold(builder, |builder, (key, value)| builder.metadata(key, value.as_str())).build()
    }

    fn trace(&self) -> Option<PathBuf> {
        match (&self.output, &self.log) {
            (Some(path), _) => Some(path.clone()),
            (None, Some(_)) => None,
            (None, None) => Some(TRACE.into()),
        }
    }

    /// `recorded 1 session of 12 messages in trace.jsonl`
    fn said(&self, summary: &Summary) -> String {
        let plural = |count: u64, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let files: Vec<_> = self.trace().iter().chain(&self.log).map(|path| path.display().to_string()).collect();
        format!(
            "recorded {} of {} in {}",
            plural(summary.sessions, "session"),
            plural(summary.messages, "message"),
            files.join(" and ")
        )
    }
}

fn pair(word: &str) -> Result<(String, String), String> {
    let (key, value) = word.split_once('=').ok_or("write it like KEY=VALUE")?;
    if key.is_empty() {
        return Err("the key is missing: write it like KEY=VALUE".to_owned());
    }
    Ok((key.to_owned(), value.to_owned()))
}
