//! `rehearse trace grep`

use clap::Args;
use regex::bytes::{Regex, RegexBuilder};
use rehearsal::core::trace::{Entry, EntryBody, RecordedCall, RelatedEvent, SessionStart, TimelineItem};
use rehearsal::store::Input;

use super::input::{InputArgs, check_stdin_once};
use super::verb::SenderFilter;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use crate::cli::output::stream_to_stdout;
use crate::print::{Columns, Detail, Numbering, Row, TimelinePrinter, failed};

const FILTERS: &str = "Filters";

/// Find calls, messages and lines of stderr
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct TraceGrepArgs {
    /// A regular expression for the text of messages; . finds everything
    pattern: String,

    /// The recordings; - is stdin
    #[arg(default_value = "trace.jsonl", value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    files: Vec<Input>,

    /// Only this method, such as tools/call; may be repeated
    #[arg(long, value_name = "METHOD", help_heading = FILTERS)]
    method: Vec<String>,

    /// Only calls of this tool; may be repeated
    #[arg(long, value_name = "NAME", help_heading = FILTERS)]
    tool: Vec<String>,

    /// Only failures: errors, failed tools, unanswered calls, garbled messages
    #[arg(long, help_heading = FILTERS)]
    errors: bool,

    /// Only messages of this side
    #[arg(long, value_name = "SIDE", help_heading = FILTERS)]
    from: Option<SenderFilter>,

    /// Ignore case
    #[arg(short, long)]
    ignore_case: bool,

    /// Print params and results too
    #[arg(long)]
    values: bool,

    /// Print one JSON object for each line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArgs,
}

const AFTER_HELP: &str = "\
A call is found by the text of its request or its response, and printed as in `rehearse trace show`.

Examples:
  rehearse trace grep Oslo
  rehearse trace grep . --errors --tool get_forecast trace.jsonl
  rehearse trace grep 'rate.?limit' --ignore-case --values monday.jsonl tuesday.jsonl
  rehearse trace grep . --method sampling/createMessage --from server --json

Exit status:
    0  at least one match
    1  no match
    2  a file, a line of it, or the pattern cannot be read";

impl TraceGrepArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        check_stdin_once(&self.files)?;
        let pattern = RegexBuilder::new(&self.pattern).case_insensitive(self.ignore_case).build();
        let pattern = pattern.map_err(|error| {
            let why = last_line(&error.to_string());
            Failure::bad_input(format_args!("{:?} is not a regular expression: {why}", self.pattern))
                .hint("`.` finds everything; a backslash escapes a special character")
        })?;
        let columns = if self.json { Columns::Json } else { Columns::Text };
        let detail = Detail { arguments: false, values: self.values, http: true };
        let mut found = false;
        stream_to_stdout(|out| {
            let mut printer = TimelinePrinter::new(&context.stdout, columns, detail, out);
            for file in &self.files {
                let recording = self.input.open(file, context)?;
                let mut start: Option<SessionStart> = None;
                let mut numbering = Numbering::default();
                for item in recording.timeline(self.input.bad_lines()) {
                    let Some(item) = self.input.or_skip(item, file, context)? else { continue };
                    if let TimelineItem::Start(begun) = item {
                        start = Some(begun);
                        numbering.next_session();
                        continue;
                    }
                    for row in self.rows(&pattern, &item, &mut numbering) {
                        found = true;
                        if let Some(start) = start.take() {
                            printer.start(numbering.session, &start).map_err(Failure::stdout)?;
                        }
                        printer.row(&row, None).map_err(Failure::stdout)?;
                    }
                }
            }
            Ok(())
        })?;
        Ok(if found { Exit::Ok } else { Exit::ChecksFailed })
    }

    /// The matching rows of an item: the call or entry itself, and its related events.
    fn rows(&self, pattern: &Regex, item: &TimelineItem, numbering: &mut Numbering) -> Vec<Row> {
        let mut rows = Vec::new();
        match item {
            TimelineItem::Start(_) | TimelineItem::Finish { .. } => {}
            TimelineItem::Entry(entry) => rows.extend(self.entry(pattern, entry)),
            TimelineItem::Call { call, inside } => {
                rows.extend(self.call(pattern, call, numbering.call(call)));
                rows.extend(inside.iter().filter_map(|event| match event {
                    RelatedEvent::Call(call) => self.call(pattern, call, None),
                    RelatedEvent::Entry(entry) => self.entry(pattern, entry),
                }));
            }
        }
        rows
    }

    fn call(&self, pattern: &Regex, call: &RecordedCall, number: Option<u64>) -> Option<Row> {
        let answer = call.response.as_ref().map(|response| response.message.raw());
        let is_match = pattern.is_match(call.request.message.raw()) || answer.is_some_and(|raw| pattern.is_match(raw));
        let row = is_match.then(|| Row::call(call, number))?;
        self.is_selected(&row).then_some(row)
    }

    fn entry(&self, pattern: &Regex, entry: &Entry) -> Option<Row> {
        let row = Row::entry(entry);
        let is_match = match &entry.what {
            EntryBody::Message { message, .. } => pattern.is_match(message.raw()),
            EntryBody::Http { head, .. } => {
                let headers = head.headers.iter().map(|(name, value)| format!("{name}: {value}"));
                headers.chain(row.method.clone()).any(|line| pattern.is_match(line.as_bytes()))
            }
            EntryBody::Event { .. }
            | EntryBody::ChannelEnded { .. }
            | EntryBody::Stderr { .. }
            | EntryBody::Piece { .. }
            | EntryBody::Ended(_) => pattern.is_match(row.text.as_deref().unwrap_or_default().as_bytes()),
        };
        (is_match && self.is_selected(&row)).then_some(row)
    }

    fn is_selected(&self, row: &Row) -> bool {
        let is_one_of = |allowed: &[String], found: &Option<String>| {
            allowed.is_empty() || found.as_ref().is_some_and(|found| allowed.contains(found))
        };
        let side = self.from.is_none_or(|filter| row.from == Some(filter.side()));
        let tool = self.tool.is_empty() || row.method.as_deref() == Some("tools/call");
        side && tool
            && is_one_of(&self.method, &row.method)
            && is_one_of(&self.tool, &row.subject)
            && (!self.errors || failed(row))
    }
}

/// The last line of an error of the regex parser, which has the reason.
fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
