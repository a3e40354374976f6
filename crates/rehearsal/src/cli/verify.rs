//! `rehearse verify`

use std::path::Path;

use clap::Args;
use rehearsal::core::redact::{Redaction, RedactionRule};
use rehearsal::core::report::{Report, Verdict};
use rehearsal::core::trace::{Format, Part};
use rehearsal::store::{BadLines, Input, Recording};
use rehearsal::verify::{AnswerStatus, Updates, Verification, VerifyError, count_changed_server_requests};

use super::context::Context;
use super::exit::{Exit, Failure};
use super::flag_values::{matching, not_a_path, redaction};
use super::output::to_stdout;
use super::run::{Signals, runtime};
use super::server::{ServerArgs, ShownAs};
use super::trace::{AtomicOutput, CONVERT, InputArgs, is_written_into, no_file, not_trace, unreadable};
use crate::print::{print_report, print_report_json};

/// Send recorded requests to a live server and compare its answers
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct VerifyArgs {
    /// The recording; - is stdin
    #[arg(value_name = "TRACE", value_hint = clap::ValueHint::FilePath)]
    trace: Input,

    /// Ignore the value at this JSONPath of an answer, such as $.result..timestamp; may be repeated
    #[arg(long, value_name = "PATH")]
    ignore: Vec<String>,

    /// Accept any value that fits a matcher at this JSONPath of an answer, instead of the recorded value; may be repeated
    #[arg(long = "match", value_name = "PATH=MATCHER")]
    matchers: Vec<String>,

    /// Replace the recorded answers that differ, atomically at the end
    #[arg(long)]
    update: bool,

    /// A redaction rule that the recording was made with (`record --redact`); may be repeated
    #[arg(long, value_name = "PATH|PATTERN", value_parser = RedactionRule::parse)]
    redact: Vec<RedactionRule>,

    /// Compare and write credentials too; by default they are redacted first
    #[arg(long)]
    no_redact: bool,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    server: ServerArgs,
}

/// An example of `--match`.
const MATCH: &str = r#"$.result.content[0].text={"matches": "^created at "}"#;

const AFTER_HELP: &str = "\
Each session of the recording is sent on its own connection, in the recorded version unless `--protocol`
names another, and with the capabilities of the recorded client. Requests are sent one after the other in
their recorded order, also those that were concurrent. Server requests and input requests are answered
from the recording; `--answer` answers those that the recording does not.

The report names what was added, removed or changed in an answer, or changed its type. For lists it names
the tools, prompts and resources that were added, removed or changed, whatever their order. It also names
server requests that are new or missing. Ids, `_meta`, cursors, times, progress and log messages are
ignored. Pings, subscriptions, tasks, calls without an answer and calls with a redacted secret are skipped.

Paths begin at `result` or `error` of an answer, and at `params` of a server request. In the report, the
path of a list item begins at the item; `--ignore '$.result.tools[*].description'` ignores it. With
`--match`, the live value may differ from the recording, but must fit the matcher.

Examples:
  rehearse verify trace.jsonl -- npx -y @modelcontextprotocol/server-everything
  rehearse verify trace.jsonl --url http://127.0.0.1:3000/mcp --ignore '$.result..timestamp'
  rehearse verify trace.jsonl --match '$.result.content[0].text={\"matches\": \"^created at \"}' -- my-server
  rehearse verify trace.jsonl --update -- python server.py

Exit status:
    0  the server answers as recorded, or the recording was updated
    1  an answer or a server request differs, or nothing was compared
    2  a flag, the recording or a path is wrong
    3  the server could not be started or reached, crashed or timed out";

impl VerifyArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let verification = Verification::new(&self.trace.to_string(), self.server.protocol());
        let mut verification = verification.redaction(self.redaction());
        for path in &self.ignore {
            let no_path = |why: String| not_a_path(path, &why, "$.result.content[0].text");
            verification = verification.ignore(path).map_err(no_path)?;
        }
        for word in &self.matchers {
            verification = matching(word, MATCH, |path, matcher| verification.matching(path, matcher))?;
        }
        if self.update && self.file().is_none() {
            return Err(no_file("--update"));
        }
        // Errors in the options are reported before the recording is read.
        drop(self.server.client(None, context)?);
        let recording = self.input.open_in_order(&self.trace, context)?;
        if self.update && recording.format() != Format::Trace {
            let (input, format) = (self.trace.clone(), recording.format());
            return Err(not_trace(&input, format, "--update").hint(CONVERT));
        }
        let mut verification = verification.session_numbers(recording.session_numbers());
        if let (true, Some(path)) = (self.update, self.file()) {
            AtomicOutput::check(path)?;
        }
        let runtime = runtime()?;
        let done = runtime.block_on(async {
            let mut signals = Signals::listen()?;
            let interrupted = tokio::select! {
                done = self.verified(&mut verification, &recording, context) => return done.map(|()| None),
                exit = signals.next() => exit,
            };
            tokio::select! {
                () = verification.close() => {}
                _ = signals.next() => {}
            }
            Ok(Some(interrupted))
        });
        runtime.shutdown_background();
        match done? {
            None => {
                let unanswered = verification.unanswered();
                let (report, updates) = verification.finish();
                self.print_report(&report, &updates, unanswered, &recording, context)
            }
            Some(interrupted) => Ok(interrupted),
        }
    }

    /// The file of the recording; `None` for stdin and pipes, which cannot be read twice.
    fn file(&self) -> Option<&Path> {
        match &self.trace {
            Input::File(path) if !is_written_into(path) => Some(path),
            Input::File(_) | Input::Stdin => None,
        }
    }

    fn redaction(&self) -> Redaction {
        redaction(self.no_redact, &self.redact)
    }

    async fn verified(
        &self,
        verification: &mut Verification,
        recording: &Recording,
        context: &Context,
    ) -> Result<(), Failure> {
        let redaction = self.redaction();
        let mut server = || self.server.client_answering(context, &redaction);
        // Unreadable lines are reported by the loop below.
        recording.timeline(BadLines::Skip).flatten().for_each(|item| verification.preview(&item));
        for item in recording.timeline(self.input.bad_lines()) {
            if let Some(item) = self.input.or_skip(item, &self.trace, context)? {
                verification.check(item, &mut server).await.map_err(|error: VerifyError<Failure>| match error {
                    VerifyError::Setup(failure) => failure,
                    VerifyError::Connect { words, error } => Failure::redacted(words, &error),
                })?;
            }
        }
        Ok(())
    }

    fn print_report(
        &self,
        report: &Report,
        updates: &Updates,
        unanswered: AnswerStatus,
        recording: &Recording,
        context: &Context,
    ) -> Result<Exit, Failure> {
        to_stdout(|out| match self.server.shown_as() {
            ShownAs::Json => print_report_json(report, out),
            ShownAs::Text => print_report(report, &context.stdout, out),
        })?;
        let counts = report.counts();
        let (alike, differ, skipped) = (counts.passed, counts.failed, counts.skipped);
        context.stderr.note(format_args!("{alike} as recorded, {differ} different, {skipped} skipped"));
        if alike + differ == 0 {
            context.stderr.error("nothing was compared");
            context.stderr.hint("`rehearse trace show` prints the recording");
            return Ok(Exit::ChecksFailed);
        }
        let failed = report.verdict() == Verdict::Failed;
        if unanswered == AnswerStatus::TimedOut {
            context.stderr.hint("a request timed out; `--timeout 60` waits longer");
        }
        let lost = unanswered != AnswerStatus::AllAnswered;
        if !self.update {
            if failed && !lost {
                context.stderr.hint(self.update_hint(updates, recording));
            }
            return Ok(match (lost, failed) {
                (true, _) => Exit::ServerFailed,
                (false, true) => Exit::ChecksFailed,
                (false, false) => Exit::Ok,
            });
        }
        let Some(path) = self.file() else { return Ok(Exit::Ok) };
        if lost {
            context.stderr.note(format_args!("{} was not updated: some requests were not answered", path.display()));
            return Ok(Exit::ServerFailed);
        }
        if updates.is_empty() {
            context.stderr.note(format_args!("{} is unchanged", path.display()));
        } else {
            self.write(path, updates, recording)?;
            context.stderr.note(format_args!("{} has the live answers now", path.display()));
        }
        match count_changed_server_requests(report) {
            0 => Ok(Exit::Ok),
            count => {
                let s = if count == 1 { "" } else { "s" };
                context
                    .stderr
                    .note(format_args!("{count} server request{s} added or removed: record those calls again"));
                Ok(Exit::ChecksFailed)
            }
        }
    }

    /// The hint for a difference.
    fn update_hint(&self, updates: &Updates, recording: &Recording) -> &'static str {
        match self.file() {
            _ if updates.is_empty() => "record the calls again whose server requests differ",
            Some(_) if recording.format() == Format::Trace => {
                "`--update` writes the live answers into the recording, `--ignore PATH` ignores a value"
            }
            Some(_) => {
                "`--ignore PATH` ignores a value; `--update` needs a trace, which `rehearse trace convert` writes"
            }
            None => "`--ignore PATH` ignores a value; `--update` needs a recording in a file",
        }
    }

    /// Rewrites the recording with the live answers.
    fn write(&self, path: &Path, updates: &Updates, recording: &Recording) -> Result<(), Failure> {
        let (mut writing, redaction) = (AtomicOutput::to_file(path)?, self.redaction());
        let mut session = 0;
        for part in recording.in_file_order().parts(BadLines::Refuse) {
            let part = part.map_err(|error| unreadable(&self.trace, error))?;
            session += usize::from(matches!(part, Part::Start(_)));
            writing.part(&updates.apply(recording.place_of(session), part, &redaction))?;
        }
        writing.finish()
    }
}
