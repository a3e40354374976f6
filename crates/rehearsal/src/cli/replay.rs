//! `rehearse replay`

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use rehearsal::core::answer::{Answer, LoggedRequest, ReplayPace};
use rehearsal::core::matcher::Matcher;
use rehearsal::core::redact::{Redaction, RedactionRule};
use rehearsal::core::trace::{Format, ReadError, RequestIdentity};
use rehearsal::record::{Recorder, journals};
use rehearsal::replay::{
    IndexCallback, IndexError, IndexProgress, Ledger, OnUnmatched, Repeat, ReplayError, ReplayOptions, SessionFilter,
    SidecarFile,
};
use rehearsal::serve::{Observer, Upstream, http_options};
use rehearsal::store::{Input, Recording};

use super::arguments::suggestion;
use super::context::Context;
use super::exit::{Exit, Failure};
use super::flag_values::{matching, not_a_path, redaction};
use super::mock::print_answer;
use super::output::is_same_file;
use super::run::{Signals, runtime};
use super::serve::{ListenArgs, live_server, serve};
use super::server::check_url;
use super::trace::{CONVERT, no_file, not_trace, on_lines, recover_sessions};

const MATCHING: &str = "Matching";
const FORWARD: &str = "Upstream";
/// An example of `--match`.
const MATCH: &str = r#"$.params.arguments.city={"matches": "^O"}"#;
/// Maximum number of requests of each kind in the summary.
const MAX_SUMMARY_LINES: usize = 10;

/// Serve a recording in place of the recorded server
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ReplayArgs {
    /// The recording, in any format that `rehearse trace` reads
    #[arg(value_name = "TRACE", value_hint = clap::ValueHint::FilePath)]
    trace: PathBuf,

    #[command(flatten)]
    listen: ListenArgs,

    /// Ignore the value at this JSONPath of a request, such as $.params.arguments.now; may be repeated
    #[arg(long, value_name = "PATH", help_heading = MATCHING)]
    ignore: Vec<String>,

    /// Accept any value at this JSONPath that fits a matcher, instead of the recorded value; may be repeated
    #[arg(long = "match", value_name = "PATH=MATCHER", help_heading = MATCHING)]
    matchers: Vec<String>,

    /// What follows the last recorded answer to a request: the last again, the first, or an error
    #[arg(long, value_enum, default_value = "last", help_heading = MATCHING)]
    repeat: RepeatWord,

    /// The answer to a request that was not recorded: an error, the first recording of its kind, or that of a live server
    #[arg(long, value_enum, default_value = "refuse", help_heading = MATCHING)]
    unmatched: UnmatchedWord,

    /// Answer only from the session with this id
    #[arg(long, value_name = "ID", help_heading = MATCHING)]
    session: Option<String>,

    /// Answer only from sessions with this metadata; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = super::record::pair, help_heading = MATCHING)]
    metadata: Vec<(String, String)>,

    /// A redaction rule that the recording was made with (`record --redact`); may be repeated
    #[arg(long, value_name = "PATH|PATTERN", value_parser = RedactionRule::parse, help_heading = MATCHING)]
    redact: Vec<RedactionRule>,

    /// The time between messages: `recorded`, `none`, or a factor of the recorded time
    #[arg(long, value_name = "PACE", default_value = "none", value_parser = str::parse::<ReplayPace>, allow_negative_numbers = true)]
    pace: ReplayPace,

    /// Fail if a request was not recorded, or a recorded request was not sent
    #[arg(long)]
    strict: bool,

    /// Write the requests that matched, and those that did not, to this file as JSON
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    ledger: Option<PathBuf>,

    /// Print no summary at the end
    #[arg(short, long)]
    quiet: bool,

    /// Print each request and the recording that answered it on stderr
    #[arg(short, long)]
    verbose: bool,

    /// The URL of the live server for --unmatched forward
    #[arg(long, value_name = "URL", help_heading = FORWARD, value_hint = clap::ValueHint::Url)]
    url: Option<String>,

    /// Record the answers of the live server in this file [default: the recording itself]
    #[arg(short, long, value_name = "FILE", help_heading = FORWARD, value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// The command of the live server: everything after `--`
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "url", help_heading = FORWARD)]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RepeatWord {
    /// The last answer again
    Last,
    /// The first answer, then the others
    Cycle,
    /// An error
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum UnmatchedWord {
    /// An error that names the closest recording
    Refuse,
    /// The first recording of the same tool, otherwise of the same method
    First,
    /// The answer of the live server, which is recorded
    Forward,
}

const AFTER_HELP: &str = "\
A request gets the recorded answer to the same method and arguments. Ids, tokens and the rest of `_meta`
are ignored. If the request is repeated, it gets the next recorded answer. Clients of every version and
transport are served, whatever the recording was made with. Notifications, progress and server requests
are sent in their recorded order.

The index of a trace is stored next to it, as TRACE.index, and rebuilt if the trace changes. For a long
recording in another format, a trace is stored too, as FILE.trace.

Examples:
  rehearse replay trace.jsonl
  rehearse replay trace.jsonl --listen 8080 --pace recorded
  rehearse replay trace.jsonl --ignore '$.params.arguments.now' --strict --ledger ledger.json
  rehearse replay trace.jsonl --unmatched forward -- npx -y @modelcontextprotocol/server-everything
  rehearse call echo message=hello -- rehearse replay trace.jsonl

Exit status:
    0  the client has disconnected; with --strict: each request was recorded, and each recorded request was sent
    1  with --strict: a request was not recorded, or a recorded request was not sent
    2  a flag, the recording, a path or the ledger is wrong
    3  the program cannot listen on the address, or the live server did not answer
    4  a forwarded request could not be recorded
  129  ended by SIGHUP
  130  ended by SIGINT (Ctrl-C)
  143  ended by SIGTERM";

/// The option that records the answers of a live server, for errors.
const FORWARDING: &str = "--unmatched forward";
const NEEDS_FORWARD: &str = "`--unmatched forward` sends it the requests that were not recorded";

impl ReplayArgs {
    /// Serves until the client disconnects or a signal arrives.
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let options = ReplayOptions { on_index: on_index(context), ..self.options()? };
        if let Some(url) = &self.url {
            check_url(url)?;
        }
        self.check_ledger()?;
        let recorder = self.recorder(context);
        let upstream = self.upstream(recorder.clone())?;
        if upstream.is_some() {
            self.check_recording_format()?;
        }
        let input = Input::from(self.trace.clone());
        if input != Input::Stdin && journals(&self.trace).is_ok_and(|journals| !journals.is_empty()) {
            recover_sessions(&self.trace, context);
        }
        let replay = rehearsal::replay::Replay::open_with(&input, options, upstream);
        context.stderr.end_status();
        let replay = replay.map_err(|error| match error {
            ReplayError::Open(error) => error.into(),
            error => {
                let hints = open_hints(&error, self.session.as_deref());
                Failure::bad_input(error).hints(hints)
            }
        })?;
        let unread = |cause: io::Error| Failure::unreadable(&self.trace, &cause);
        replay.notices().map_err(unread)?.into_iter().for_each(|notice| context.stderr.note(notice));
        let (stderr, verbose) = (context.stderr.clone(), self.verbose);
        let observer = move |request: &LoggedRequest, answer: &Answer| print_answer(request, answer, verbose, &stderr);
        let server = replay.observed_server(vec![Arc::new(observer) as Arc<dyn Observer>]);
        let runtime = runtime()?;
        let served = runtime.block_on(async {
            let mut signals = Signals::listen()?;
            let listen = self.listen.listen.map(|address| self.listen.applied(http_options(&server), address));
            let served = serve(&server, listen, &mut signals, context).await;
            replay.close().await.map_err(Failure::begin)?;
            served
        });
        // A thread that reads from a terminal cannot be stopped, so the program does not wait for it.
        runtime.shutdown_background();
        let exit = served?;
        let ledger = replay.ledger().map_err(unread)?;
        self.report_ledger(&ledger, context)?;
        if recorder.summary().failed {
            return Ok(Exit::RecordingFailed);
        }
        Ok(match exit {
            _ if self.strict && !ledger.is_complete() => Exit::ChecksFailed,
            Exit::Ok if ledger.failed > 0 => Exit::ServerFailed,
            exit => exit,
        })
    }

    /// Checks before the first request whether the ledger can be written.
    fn check_ledger(&self) -> Result<(), Failure> {
        let Some(path) = &self.ledger else { return Ok(()) };
        if let Some(what) = self.conflicting_use(path) {
            return Err(Failure::bad_input(format_args!("--ledger {}: this file is {what}", path.display()))
                .hint("name another file: --ledger ledger.json"));
        }
        let failed = |cause: io::Error| ledger_failure(path, &cause);
        let is_new = path.symlink_metadata().is_err();
        std::fs::OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
        // An empty file must not stay if the replay fails.
        if is_new { std::fs::remove_file(path).map_err(failed) } else { Ok(()) }
    }

    /// The other use of a file by this replay, if it has one.
    fn conflicting_use(&self, path: &Path) -> Option<&'static str> {
        let is_file = Input::from(self.trace.clone()) != Input::Stdin;
        let sidecars = SidecarFile::ALL.map(|sidecar| match sidecar {
            SidecarFile::Index => (sidecar.path(&self.trace), "its index"),
            SidecarFile::Trace => (sidecar.path(&self.trace), "its trace"),
            SidecarFile::IndexOfTrace => (sidecar.path(&self.trace), "the index of its trace"),
        });
        let recording = [(self.trace.clone(), "the recording")];
        let mut its = recording.into_iter().chain(sidecars).filter(|_| is_file);
        let output = self.output.as_deref().filter(|output| is_same_file(output, path));
        let output = output.map(|_| "the recording of the live server");
        its.find(|(file, _)| is_same_file(file, path)).map(|(_, what)| what).or(output)
    }

    fn options(&self) -> Result<ReplayOptions, Failure> {
        let mut likeness = RequestIdentity::default();
        for path in &self.ignore {
            likeness = likeness.ignore(path).map_err(|why| not_a_path(path, &why, "$.params.arguments.now"))?;
        }
        let mut matchers = Vec::new();
        for word in &self.matchers {
            likeness = matching(word, MATCH, |path, matcher| {
                let likeness = likeness.ignore(path)?;
                matchers.push(Matcher::at(path, matcher).map_err(|error| error.to_string())?);
                Ok(likeness)
            })?;
        }
        Ok(ReplayOptions {
            likeness,
            matchers,
            repeat: match self.repeat {
                RepeatWord::Last => Repeat::Last,
                RepeatWord::Cycle => Repeat::Cycle,
                RepeatWord::Error => Repeat::Error,
            },
            unknown: match self.unmatched {
                UnmatchedWord::Refuse | UnmatchedWord::Forward => OnUnmatched::Refuse,
                UnmatchedWord::First => OnUnmatched::First,
            },
            sessions: SessionFilter { id: self.session.clone(), metadata: self.metadata.clone() },
            pace: self.pace,
            redaction: self.redaction(),
            on_index: IndexCallback::default(),
        })
    }

    fn redaction(&self) -> Redaction {
        redaction(false, &self.redact)
    }

    /// Builds the recorder for the answers of the live server.
    fn recorder(&self, context: &Context) -> Recorder {
        let stderr = context.stderr.clone();
        let recorder = Recorder::builder().on_notice(move |notice| stderr.error(notice)).redaction(self.redaction());
        let mut recorder = recorder.metadata("recorded_by", "replay");
        // With the metadata of the chosen sessions, the same options choose the new session too.
        for (key, value) in &self.metadata {
            recorder = recorder.metadata(key, value.as_str());
        }
        if let Some(id) = &self.session {
            recorder = recorder.metadata(SessionFilter::ADDS_TO, id.as_str());
        }
        recorder.trace(self.output.as_ref().unwrap_or(&self.trace)).build()
    }

    /// Refuses to append a session to a file that is not a trace.
    fn check_recording_format(&self) -> Result<(), Failure> {
        let path = self.output.as_ref().unwrap_or(&self.trace);
        let input = Input::from(path.clone());
        if input == Input::Stdin && self.output.is_none() {
            return Err(no_file(FORWARDING).hint("`-o FILE` records in a file"));
        }
        if !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Ok(());
        }
        match Recording::open(&input)?.format() {
            Format::Trace => Ok(()),
            format => {
                Err(not_trace(&input, format, FORWARDING).hint("`-o FILE` records in another file").hint(CONVERT))
            }
        }
    }

    fn upstream(&self, recorder: Recorder) -> Result<Option<Upstream>, Failure> {
        let forwards = self.unmatched == UnmatchedWord::Forward;
        match (&self.url, self.command.first()) {
            (None, None) if forwards => {
                return Err(Failure::bad_input("--unmatched forward needs a server: --url URL, or -- COMMAND")
                    .hint("for example: --unmatched forward -- npx -y some-server"));
            }
            (None, None) if self.output.is_some() => {
                let message = "-o records the answers of a live server, and needs --unmatched forward";
                return Err(Failure::bad_input(message).hint(NEEDS_FORWARD));
            }
            (None, None) => return Ok(None),
            (_, _) if !forwards => {
                return Err(
                    Failure::bad_input("a live server is used only with --unmatched forward").hint(NEEDS_FORWARD)
                );
            }
            (Some(_), _) | (None, Some(_)) => {}
        }
        Ok(live_server(self.url.as_deref(), &self.command)
            .map(|(server, info)| Upstream::new(server).recorded(recorder, info)))
    }

    /// Prints the summary of the ledger, and writes the ledger to its file.
    fn report_ledger(&self, ledger: &Ledger, context: &Context) -> Result<(), Failure> {
        if !self.quiet {
            self.print_summary(ledger, context);
        }
        let Some(path) = &self.ledger else { return Ok(()) };
        let is_new = path.symlink_metadata().is_err();
        let written = serde_json::to_vec_pretty(ledger).map_err(io::Error::from).and_then(|mut text| {
            text.push(b'\n');
            std::fs::write(path, text)
        });
        written.map_err(|cause| {
            // A partial ledger must not look like a complete one.
            if is_new {
                let _ = std::fs::remove_file(path);
            }
            ledger_failure(path, &cause)
        })
    }

    fn print_summary(&self, ledger: &Ledger, context: &Context) {
        context.stderr.note(ledger);
        for (what, lines) in [("unmatched", &ledger.unmatched_requests), ("unused", &ledger.unused_recordings)] {
            for line in lines.iter().take(MAX_SUMMARY_LINES) {
                context.stderr.note(format_args!("  {what}: {line}"));
            }
            if lines.len() > MAX_SUMMARY_LINES {
                context.stderr.note(format_args!("  {what}: … `--ledger FILE` writes all of them"));
            }
        }
    }
}

/// Shows the progress of the index on a terminal.
fn on_index(context: &Context) -> IndexCallback {
    let stderr = context.stderr.clone();
    IndexCallback::new(move |IndexProgress { bytes, of }| {
        stderr.status(&format!("indexing: {} of {} MB", bytes / 1_000_000, of / 1_000_000));
    })
}

/// The hints for a recording that cannot be served.
fn open_hints(error: &ReplayError, session: Option<&str>) -> Vec<String> {
    match error {
        ReplayError::NoSession { known, .. } => match session {
            Some(session) if known.iter().any(|known| known == session) => {
                vec![format!("session {session} has other metadata; `rehearse trace show` prints it")]
            }
            Some(session) => vec![suggestion(session, known, "sessions")],
            None => vec!["`rehearse trace show` prints the metadata of each session".to_owned()],
        },
        ReplayError::Index { cause: IndexError::Trace(ReadError::Format { .. }), .. } => {
            vec!["update rehearse, or record again".to_owned()]
        }
        ReplayError::Index { input, cause: IndexError::Trace(error) } => {
            if let Some(laid_out) = error.file_layout() {
                return vec![on_lines(laid_out).to_owned()];
            }
            vec![format!("`rehearse trace convert --skip-bad {input} readable.jsonl` keeps the lines that can be read")]
        }
        ReplayError::Index { cause: IndexError::Io(cause), .. } if cause.kind() == ErrorKind::StorageFull => {
            vec!["set TMPDIR to a folder with enough space for the index".to_owned()]
        }
        ReplayError::Index { cause: IndexError::Io(_), .. } | ReplayError::Open(_) => Vec::new(),
    }
}

fn ledger_failure(path: &Path, cause: &io::Error) -> Failure {
    let hint = match cause.kind() {
        ErrorKind::StorageFull => "free space, or write it to another disk: --ledger /other/ledger.json",
        _ => "name a file in an existing folder: --ledger ledger.json",
    };
    Failure::bad_input(format_args!("cannot write the ledger to {}: {cause}", path.display())).hint(hint)
}
