//! `rehearse record`
//!
//! ```text
//! arguments ──► Recorder ──┬─► a server behind pipes
//!                  │       └─► a server behind a URL
//!                  └──────► trace, journal; the summary goes to stderr, a failure into the exit status
//! ```

use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

use clap::Args;
use nix::sys::signal::Signal;
use rehearsal::client::{ClientError, RenewingToken};
use rehearsal::core::redact::{RedactionRule, shown_url};
use rehearsal::oauth::OAuth;
use rehearsal::record::{HttpRecording, Notice, Recorder, StdioRecording, Summary};
use rehearsal::wire::http::client::ConnectError;
use rehearsal::wire::http::proxy::{HttpProxyOptions, ProxyBindError};
use rehearsal::wire::stdio::{ClientStreams, ServerCommand};
use tokio::signal::unix::{SignalKind, signal};

use super::context::Context;
use super::exit::{Exit, Failure, listen_hint};
use super::flag_values::redaction;
use super::output::is_same_file;
use super::run::{Signals, runtime};
use super::serve::allowed_hosts;
use super::server::{LoginArgs, ServerKind, no_use};

const FILES: &str = "Output";
const CONTENT: &str = "Content";
const URL: &str = "HTTP server";
/// The trace file if the user names none.
const TRACE: &str = "trace.jsonl";

/// Record the messages between a client and a server
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct RecordArgs {
    /// Append each session to this file when it ends [default: trace.jsonl, unless there is a --log]
    #[arg(short, long, value_name = "FILE", help_heading = FILES, value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Append every message to this file when it is forwarded, one per line
    #[arg(long, value_name = "FILE", help_heading = FILES, value_hint = clap::ValueHint::FilePath)]
    log: Option<PathBuf>,

    /// Store this metadata with each session; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, help_heading = CONTENT)]
    metadata: Vec<(String, String)>,

    /// Redact this too: a JSONPath such as $.params.arguments.iban, or a regular expression; may be repeated
    #[arg(long, value_name = "PATH|PATTERN", value_parser = RedactionRule::parse, help_heading = CONTENT)]
    redact: Vec<RedactionRule>,

    /// Keep credentials; by default they are redacted before anything is written
    #[arg(long, help_heading = CONTENT)]
    no_redact: bool,

    /// Print no summary at the end; errors are printed
    #[arg(short, long)]
    quiet: bool,

    /// Record the server at this URL: clients connect to --listen in its place
    #[arg(long, value_name = "URL", help_heading = URL, value_hint = clap::ValueHint::Url)]
    url: Option<String>,

    /// Listen on this address; port 0 is any free port, which is printed on stderr
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", requires = "url", help_heading = URL)]
    listen: String,

    /// Accept this name in `Host` and `Origin`, in addition to localhost and IP addresses; may be repeated
    #[arg(long, value_name = "HOST", requires = "url", help_heading = URL)]
    allow_host: Vec<String>,

    #[command(flatten)]
    login: LoginArgs,

    /// The command of the server: everything after `--`
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "url")]
    command: Vec<OsString>,
}

const AFTER_HELP: &str = "\
stdin, stdout and stderr are those of the server: put `rehearse record --` in front of its command in a
client's configuration, or let `rehearse wrap` do it. Messages are forwarded byte for byte. The exit status
is that of the server, or 4 if something could not be recorded.

With --url this is a reverse proxy for Streamable HTTP and HTTP+SSE, for any number of clients, until
Ctrl-C or SIGTERM ends it. In a client's configuration only host and port change. With --login the
proxy logs in first, and sends its token with requests that have none. The token is not recorded.

Examples:
  rehearse record -- npx -y @modelcontextprotocol/server-everything
  rehearse record -o today.jsonl --log today.log --metadata client=desktop -- my-server --stdio
  rehearse list -- rehearse record -- my-server
  rehearse record --url https://mcp.example/mcp --listen 127.0.0.1:8080";

impl RecordArgs {
    /// Records until the connection is closed.
    pub(super) fn run(&self, context: &Context) -> Result<u8, Failure> {
        if let (Some(trace), Some(log)) = (self.trace(), &self.log)
            && is_same_file(&trace, log)
        {
            return Err(Failure::bad_input(format_args!("-o and --log both name {}", log.display()))
                .hint("a trace has one session per line, a log one message per line; name two files"));
        }
        let recorder = self.recorder(context);
        let ended = match (&self.url, self.command.split_first()) {
            (Some(url), _) => {
                let listen = Listen { address: &self.listen, hosts: &self.allow_host };
                record_http(&recorder, url, &listen, self.login.oauth(context)?, context)
            }
            (None, Some(_)) if self.login.login => {
                return Err(no_use("--login", ServerKind::ByUrl));
            }
            (None, Some((program, arguments))) => record_stdio(&recorder, program, arguments),
            (None, None) => {
                return Err(Failure::bad_input("no server to record")
                    .hint("start a server: rehearse record -- npx -y some-server")
                    .hint("record a URL:   rehearse record --url http://127.0.0.1:3000/mcp --listen 127.0.0.1:8080"));
            }
        };
        let summary = recorder.summary();
        if !self.quiet && !summary.failed && ended.is_ok() {
            context.stderr.note(self.summary_line(&summary));
        }
        let code = ended?;
        Ok(if summary.failed { Exit::RecordingFailed.code() } else { code })
    }

    fn recorder(&self, context: &Context) -> Recorder {
        let (stderr, quiet) = (context.stderr.clone(), self.quiet);
        let builder = Recorder::builder().on_notice(move |notice| match notice {
            Notice::Recovered { .. } if quiet => {}
            Notice::Recovered { .. } => stderr.note(notice),
            Notice::NotStarted
            | Notice::Stopped { .. }
            | Notice::NotInTrace { .. }
            | Notice::NotRecovered { .. }
            | Notice::HookPanicked { .. } => stderr.error(notice),
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
    fn summary_line(&self, summary: &Summary) -> String {
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

pub(super) fn pair(word: &str) -> Result<(String, String), String> {
    let (key, value) = word.split_once('=').ok_or("write it like KEY=VALUE")?;
    if key.is_empty() {
        return Err("the key is missing: write it like KEY=VALUE".to_owned());
    }
    Ok((key.to_owned(), value.to_owned()))
}

/// The address of the proxy, and the host names that its clients may use.
struct Listen<'a> {
    /// `127.0.0.1:8080`, `localhost:0`
    address: &'a str,
    /// Names that `--allow-host` allows.
    hosts: &'a [String],
}

/// Records a server at a URL until a signal arrives.
fn record_http(
    recorder: &Recorder,
    url: &str,
    listen: &Listen,
    oauth: Option<OAuth>,
    context: &Context,
) -> Result<u8, Failure> {
    let mut options = HttpProxyOptions::new(address(listen.address)?, url).map_err(bad_url)?;
    (options.hosts, options.origins) = allowed_hosts(listen.hosts);
    // One thread is enough: with several clients the disk is the limit.
    let runtime = runtime()?;
    let code = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        // At the file size limit a write must fail, as on a full disk, instead of killing the process.
        let _grown = signal(SignalKind::from_raw(Signal::SIGXFSZ as i32)).map_err(Failure::begin)?;
        let token = match oauth {
            Some(oauth) => tokio::select! {
                token = RenewingToken::get(url, oauth) => Some(token?),
                exit = signals.next() => return Ok(exit.code()),
            },
            None => None,
        };
        options.authorization = token.as_ref().map(RenewingToken::header);
        let listening = HttpRecording::start(recorder, options).await;
        let recording = listening.map_err(not_started)?;
        context.stderr.note(format!("listening on {}", shown_url(&recording.url())));
        let exit = signals.next().await;
        tokio::select! {
            () = recording.stop() => {}
            // A second signal exits at once; the recorded messages are in the journals.
            exit = signals.next() => return Ok(exit.code()),
        }
        Ok(exit.code())
    });
    runtime.shutdown_background();
    code
}

fn not_started(error: ProxyBindError) -> Failure {
    match error {
        ProxyBindError::Address { address, source } => {
            Failure::server_failed(format_args!("cannot listen on {address}: {source}")).hints(listen_hint(&source))
        }
        ProxyBindError::Upstream(error) => bad_url(error),
    }
}

fn bad_url(error: ConnectError) -> Failure {
    let hint = matches!(error, ConnectError::BadUrl { .. }).then_some("write it like http://127.0.0.1:3000/mcp");
    Failure::bad_input(format_args!("--url: {error}")).hints(hint)
}

fn address(word: &str) -> Result<SocketAddr, Failure> {
    let bad = |why: String| {
        Failure::bad_input(format_args!("--listen {word:?}: {why}"))
            .hint("write it like 127.0.0.1:8080, or 127.0.0.1:0 for a free port")
    };
    let mut addresses = word.to_socket_addrs().map_err(|error| bad(error.to_string()))?;
    addresses.next().ok_or_else(|| bad("the name has no address".to_owned()))
}

/// Records a server on stdin, stdout and stderr of this program. Returns the exit status.
fn record_stdio(recorder: &Recorder, program: &OsString, arguments: &[OsString]) -> Result<u8, Failure> {
    let server = ServerCommand::new(program).args(arguments);
    let runtime = runtime()?;
    let code = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        // At the file size limit a write must fail, as on a full disk, instead of killing the process. This is a
        // handler and not `SIG_IGN`, which the server would inherit.
        let _grown = signal(SignalKind::from_raw(Signal::SIGXFSZ as i32)).map_err(Failure::begin)?;
        let client = ClientStreams::own().map_err(Failure::begin)?;
        let recording = StdioRecording::start(recorder, &server, client).await.map_err(ClientError::Start)?;
        let exit = tokio::select! {
            end = recording.ended() => return Ok(code(end.status)),
            exit = signals.next() => exit,
        };
        tokio::select! {
            _ = recording.stop(as_signal(exit)) => {}
            // A second signal kills the server.
            _ = signals.next() => {
                recording.kill();
                recording.stop(Signal::SIGKILL).await;
            }
        }
        Ok(exit.code())
    });
    runtime.shutdown_background();
    code
}

fn as_signal(exit: Exit) -> Signal {
    match exit {
        Exit::HungUp => Signal::SIGHUP,
        Exit::Interrupted => Signal::SIGINT,
        Exit::Terminated
        | Exit::Ok
        | Exit::ChecksFailed
        | Exit::BadInput
        | Exit::ServerFailed
        | Exit::RecordingFailed
        | Exit::CleanWithEffects => Signal::SIGTERM,
    }
}

/// The exit status of a server as a shell reports it: 128 plus the signal if a signal killed it.
fn code(status: Option<ExitStatus>) -> u8 {
    let code = status.and_then(|status| status.code().or_else(|| status.signal().map(|signal| 128 + signal)));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(Exit::ServerFailed.code())
}
