//! `rehearse trace merge`

use std::collections::HashSet;
use std::iter::Peekable;

use clap::Args;
use rehearsal::core::trace::{Part, ReadError};
use rehearsal::store::{Input, Parts};

use super::input::{InputArgs, check_stdin_once};
use super::output::OutputArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Failure};
use crate::print::plural;

/// Merge recordings into one, with the sessions in the order of their start
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct TraceMergeArgs {
    /// The recordings; - is stdin
    #[arg(required = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    files: Vec<Input>,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    input: InputArgs,
}

const AFTER_HELP: &str = "\
The sessions of each file keep their order. Among the next sessions of all files, the one that started
first is written. A session with the same id and start in several files is written once. Journals become
sessions.

Examples:
  rehearse trace merge monday.jsonl tuesday.jsonl -o week.jsonl
  rehearse trace merge *.journal > all.jsonl

Exit status:
    0  everything went well
    2  a file cannot be read or written";

/// A file and its next session.
struct Source<'a> {
    file: &'a Input,
    parts: Peekable<Parts>,
}

impl TraceMergeArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        check_stdin_once(&self.files)?;
        let mut sources = Vec::new();
        for file in &self.files {
            let recording = self.input.open(file, context)?;
            sources.push(Source { file, parts: recording.parts(self.input.bad_lines()).peekable() });
        }
        let mut output = self.output.begin()?;
        let mut known = HashSet::new();
        let (mut sessions, mut twice) = (0_u64, 0_u64);
        while let Some(source) = self.next(&mut sources, context)? {
            let Some(Ok(Part::Start(start))) = source.parts.next() else { continue };
            let is_new = known.insert((start.session_id.clone(), start.started_at));
            if is_new {
                sessions += 1;
                output.part(&Part::Start(start))?;
            } else {
                twice += 1;
            }
            while let Some(part) = source.parts.next_if(|part| !matches!(part, Ok(Part::Start(_)))) {
                let Some(part) = self.input.or_skip(part, source.file, context)? else { continue };
                if is_new {
                    output.part(&part)?;
                }
            }
        }
        output.finish()?;
        let skipped = if twice == 0 { String::new() } else { format!("; skipped {}", plural(twice, "duplicate")) };
        let (sessions, files) = (plural(sessions, "session"), plural(self.files.len() as u64, "file"));
        context.stderr.note(format_args!("merged {sessions} from {files}{skipped}"));
        Ok(Exit::Ok)
    }

    /// The file whose next session began first.
    fn next<'s, 'a>(
        &self,
        sources: &'s mut [Source<'a>],
        context: &Context,
    ) -> Result<Option<&'s mut Source<'a>>, Failure> {
        for source in sources.iter_mut() {
            // Only bad lines precede the next session.
            while let Some(part) = source.parts.next_if(|part| !matches!(part, Ok(Part::Start(_)))) {
                self.input.or_skip(part, source.file, context)?;
            }
        }
        let began = |part: Option<&Result<Part, ReadError>>| match part {
            Some(Ok(Part::Start(start))) => Some(start.started_at),
            Some(_) | None => None,
        };
        let next = sources.iter_mut().filter_map(|source| Some((began(source.parts.peek())?, source)));
        Ok(next.min_by_key(|(started_at, _)| *started_at).map(|(_, source)| source))
    }
}
