//! `rehearse trace show`

use clap::Args;
use rehearsal::core::trace::TimelineItem;
use rehearsal::store::Input;

use super::input::InputArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use crate::cli::output::stream_to_stdout;
use crate::print::{Columns, Detail, Numbering, TimelinePrinter};

/// Show what happened, in order, with how long it took and what went wrong
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct TraceShowArgs {
    /// The recording; - is stdin
    #[arg(default_value = "trace.jsonl", value_hint = clap::ValueHint::FilePath)]
    file: Input,

    /// Show only this session: its name, the beginning of its name, or its number from 1
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,

    /// Show the arguments of each call too
    #[arg(short, long)]
    long: bool,

    /// Show params and results too
    #[arg(long)]
    values: bool,

    /// Show HTTP that went well too
    #[arg(long)]
    http: bool,

    /// Print a JSON object for each line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArgs,
}

const AFTER_HELP: &str = "\
→ is from the client to the server and ← the other way. The first column counts seconds from the
start of the session. What belongs to a call is indented under it: progress, log messages,
server requests. Where nothing names the call, it is the latest that was open. On a terminal lines
are cut to fit.

Examples:
  rehearse trace show
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
        let mut wanted = true;
        stream_to_stdout(|out| {
            let mut printer = TimelinePrinter::new(&context.stdout, columns, detail, out);
            for item in recording.timeline(self.input.bad_lines()) {
                let Some(item) = self.input.or_skip(item, &self.file, context)? else { continue };
                if let TimelineItem::Start(start) = &item {
                    numbering.next_session();
                    wanted = self.wants(numbering.session, &start.session_id);
                    shown += u64::from(wanted);
                }
                if wanted {
                    printer.item(&item, &mut numbering).map_err(Failure::stdout)?;
                }
            }
            Ok(())
        })?;
        match &self.session {
            Some(session) if shown == 0 => {
                Err(Failure::bad_input(format_args!("{} has no session {session}", self.file))
                    .hint("`rehearse trace show` shows the name of each session"))
            }
            None if shown == 0 => {
                context.stderr.note(format_args!("{} has no sessions", self.file));
                Ok(Exit::Ok)
            }
            Some(_) | None => Ok(Exit::Ok),
        }
    }

    fn wants(&self, number: u64, session_id: &str) -> bool {
        match &self.session {
            None => true,
            Some(wanted) => *wanted == number.to_string() || session_id.starts_with(wanted.as_str()),
        }
    }
}
