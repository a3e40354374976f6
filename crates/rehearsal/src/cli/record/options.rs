//! What `rehearse record` takes.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use rehearsal::core::redact::Rule;
use rehearsal::record::{Notice, Recorder, Summary};

use super::http::{self, Listen};
use super::stdio;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::matching::redaction;
use crate::cli::output::is_one_file;
use crate::cli::server::{LoginOptions, Reached, no_use};

const FILES: &str = "Where to";
const WHAT: &str = "What is kept";
const URL: &str = "A server behind a URL";
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

    /// Take out this too: a place such as $.params.arguments.iban, or a regular expression; may be repeated
    #[arg(long, value_name = "PATH|PATTERN", value_parser = Rule::parse, help_heading = WHAT)]
    redact: Vec<Rule>,

    /// Keep credentials; without this they are taken out before anything is written
    #[arg(long, help_heading = WHAT)]
    no_redact: bool,

    /// Say nothing at the end, unless something went wrong
    #[arg(short, long)]
    quiet: bool,

    /// Record the server at this URL: clients talk to --listen in its place
    #[arg(long, value_name = "URL", help_heading = URL, value_hint = clap::ValueHint::Url)]
    url: Option<String>,

    /// Listen on this address; port 0 takes a free one, and stderr says which
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", requires = "url", help_heading = URL)]
    listen: String,

    /// Let in clients that know us by this name; may be repeated [default: only names of this machine]
    #[arg(long, value_name = "HOST", requires = "url", help_heading = URL)]
    allow_host: Vec<String>,

    #[command(flatten)]
    login: LoginOptions,

    /// Start this server and record it: everything after `--`
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "url")]
    command: Vec<OsString>,
}

const MORE: &str = "\
stdin, stdout and stderr are the server's: put this in front of its command in a client's configuration,
or let `rehearse wrap` do it. The bytes that pass are not changed. The exit status is that of the server;
4 says that something could not be recorded.

With --url this is a reverse proxy for Streamable HTTP and HTTP+SSE, for any number of clients, until
Ctrl-C or SIGTERM ends it. In a client's configuration only host and port change. With --login it logs in
first, and says who you are for clients that do not; that is never recorded.

Examples:
  rehearse record -- npx -y @modelcontextprotocol/server-everything
  rehearse record -o today.jsonl --log today.log --metadata client=desktop -- my-server --stdio
  rehearse list -- rehearse record -- my-server
  rehearse record --url https://mcp.example/mcp --listen 127.0.0.1:8080";

impl Record {
    /// Records until the conversation is over.
    pub(in crate::cli) fn run(&self, context: &Context) -> Result<u8, Failure> {
        if let (Some(trace), Some(log)) = (self.trace(), &self.log)
            && is_one_file(&trace, log)
        {
            return Err(Failure::bad_input(format_args!("-o and --log both name {}", log.display()))
                .hint("a trace has a session a line, a log a message a line; give each a file of its own"));
        }
        let recorder = self.recorder(context);
        let ended = match (&self.url, self.command.split_first()) {
            (Some(url), _) => {
                let listen = Listen { address: &self.listen, hosts: &self.allow_host };
                http::record(&recorder, url, &listen, self.login.oauth(context)?, context)
            }
            (None, Some(_)) if self.login.login => {
                return Err(no_use("--login", Reached::ByUrl));
            }
            (None, Some((program, arguments))) => stdio::record(&recorder, program, arguments),
            (None, None) => {
                return Err(Failure::bad_input("which server should be recorded?")
                    .hint("start one: rehearse record -- npx -y some-server")
                    .hint("reach one: rehearse record --url http://127.0.0.1:3000/mcp --listen 127.0.0.1:8080"));
            }
        };
        let summary = recorder.summary();
        if !self.quiet && !summary.failed && ended.is_ok() {
            context.talk.say(self.said(&summary));
        }
        let code = ended?;
        Ok(if summary.failed { Exit::RecordingFailed.code() } else { code })
    }

    fn recorder(&self, context: &Context) -> Recorder {
        let (talk, quiet) = (context.talk.clone(), self.quiet);
        let builder = Recorder::builder().on_notice(move |notice| match notice {
            Notice::Recovered { .. } if quiet => {}
            Notice::Recovered { .. } => talk.say(notice),
            Notice::NotStarted
            | Notice::Stopped { .. }
            | Notice::NotFolded { .. }
            | Notice::NotRecovered { .. }
            | Notice::HookPanicked { .. } => talk.error(notice),
        });
        let builder = match self.trace() {
            Some(path) => builder.trace(path),
            None => builder,
        };
        let builder = match &self.log {
            Some(path) => builder.log(path),
            None => builder,
        };
        let builder = builder.redaction(redaction(self.no_redact, &self.redact));
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

    /// ```text
    /// recorded 1 session of 12 messages in trace.jsonl; redacted: 3 × password in $.params.arguments.password
    /// ```
    fn said(&self, summary: &Summary) -> String {
        let plural = |count: u64, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let files: Vec<_> = self.trace().iter().chain(&self.log).map(|path| path.display().to_string()).collect();
        let redacted = summary.redacted.to_string().replace('\n', ", ");
        let redacted = if redacted.is_empty() { redacted } else { format!("; redacted: {redacted}") };
        format!(
            "recorded {} of {} in {}{redacted}",
            plural(summary.sessions, "session"),
            plural(summary.messages, "message"),
            files.join(" and ")
        )
    }
}

pub(in crate::cli) fn pair(word: &str) -> Result<(String, String), String> {
    let (key, value) = word.split_once('=').ok_or("write it like KEY=VALUE")?;
    if key.is_empty() {
        return Err("the key is missing: write it like KEY=VALUE".to_owned());
    }
    Ok((key.to_owned(), value.to_owned()))
}
