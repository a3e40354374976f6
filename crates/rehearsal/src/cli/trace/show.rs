//! `rehearse trace show`

use clap::Args;
use rehearsal::core::trace::TimelineItem;
use rehearsal::store::Input;

use super::input::InputArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use crate::cli::output::stream_to_stdout;
use crate::print::{Columns, Detail, Numbering, TimelinePrinter};

/// Print the calls and messages of a recording in order, with times and failures
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct TraceShowArgs {
    /// The recording; - is stdin
    #[arg(default_value = "trace.jsonl", value_hint = clap::ValueHint::FilePath)]
    file: Input,

    /// Print only this session: its number, its id, or the beginning of its id
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,

    /// Print the arguments of each call too
    #[arg(short, long)]
    long: bool,

    /// Print params and results too
    #[arg(long)]
    values: bool,

    /// Print successful HTTP requests too
    #[arg(long)]
    http: bool,

    /// Print one JSON object for each line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArgs,
}

const AFTER_HELP: &str = "\
CALL is the number of a client's call in its session, MESSAGES the number of each message: for a call,
those of the request and of the response. `verify`, `replay` and `trace check` report these numbers. TIME
is in seconds from the start of the session. → is sent by the client, ← by the server. Progress, log
messages and server requests are indented below their call; if they name no call, below the latest
pending one. On a terminal, lines are cut to its width.

Examples:
  rehearse trace show
  rehearse trace show trace.jsonl --long
  rehearse trace show trace.jsonl --session 2 --values
  rehearse trace show --json trace.jsonl | jq 'select(.type == \"call\" and .duration_ms > 100)'

Exit status:
    0  everything went well
    2  the file, or a line of it, cannot be read";

impl TraceShowArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let recording = self.input.open(&self.file, context)?;
        let detail = Detail { arguments: self.long, values: self.values, http: self.http };
        let columns = if self.json { Columns::Json } else { Columns::Text };
        let mut numbering = Numbering::default();
        let mut shown = 0;
        let mut is_selected = true;
        stream_to_stdout(|out| {
            let mut printer = TimelinePrinter::new(&context.stdout, columns, detail, out);
            for item in recording.timeline(self.input.bad_lines()) {
                let Some(item) = self.input.or_skip(item, &self.file, context)? else { continue };
                if let TimelineItem::Start(start) = &item {
                    numbering.next_session();
                    is_selected = self.selects(numbering.session, &start.session_id);
                    shown += u64::from(is_selected);
                }
                if is_selected {
                    printer.item(&item, &mut numbering).map_err(Failure::stdout)?;
                }
            }
            Ok(())
        })?;
        match &self.session {
            Some(session) if shown == 0 => {
                Err(Failure::bad_input(format_args!("{} has no session {session}", self.file))
                    .hint("`rehearse trace show` prints the number and the id of each session"))
            }
            None if shown == 0 => {
                context.stderr.note(format_args!("{} has no sessions", self.file));
                Ok(Exit::Ok)
            }
            Some(_) | None => Ok(Exit::Ok),
        }
    }

    fn selects(&self, number: u64, session_id: &str) -> bool {
        match &self.session {
            None => true,
            Some(session) => *session == number.to_string() || session_id.starts_with(session.as_str()),
        }
    }
}
