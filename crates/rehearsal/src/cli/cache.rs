//! `rehearse cache`

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use rehearsal::cache::{
    AnswerSharing, ArgumentsKey, Cache, CacheEntry, CacheError, CacheFilter, CacheLimits, CacheStats, CachedAnswer,
    ExportError, ImportError, Imported, PrincipalFilter, ToolStats, export, import, import_export, is_export,
};
use rehearsal::store::{Input, Recording};
use rehearsal_core::json::excerpt;
use rehearsal_core::message::Reply;
use serde_json::{Value, json};

use super::catalogue::{cache_failure, milliseconds, open_cache};
use super::context::Context;
use super::exit::{Exit, Failure};
use super::output::{stream_to_stdout, to_stdout};
use crate::print::plural;

/// Import, show, export and remove the recorded results that answer calls in a dry run
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct CacheArgs {
    #[command(subcommand)]
    verb: CacheVerb,

    /// The file [default: .rehearsal/cache.sqlite of the project, else of the user]
    #[arg(long, global = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    cache: Option<PathBuf>,

    /// The principal for which results are read and stored: others do not get them, unless they are
    /// shared [default: local]
    #[arg(long, global = true, value_name = "NAME")]
    principal: Option<String>,
}

#[derive(Subcommand, Debug)]
enum CacheVerb {
    Import(ImportArgs),
    List(ListArgs),
    Show(ShowArgs),
    Export(ExportArgs),
    Stats(StatsArgs),
    Limit(LimitArgs),
    Purge(PurgeArgs),
}

/// Import the results of a recording, and the tools that it lists
#[derive(Args, Debug)]
struct ImportArgs {
    /// Recordings, or files of `rehearse cache export`; - is stdin
    #[arg(required = true, value_name = "TRACE", value_hint = clap::ValueHint::FilePath)]
    traces: Vec<PathBuf>,

    /// The name of the server in plans [default: the name that `rehearse wrap` recorded, else the
    /// server's own name]
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    /// Share the results with all principals, except those that the server declares private
    #[arg(long)]
    share: bool,
}

/// List the recorded results
#[derive(Args, Debug)]
struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,

    /// Only the results that a dry run got at a time: 2h or 7d ago, or 2026-07-28T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = as_of)]
    as_of: Option<Timestamp>,

    /// Print JSON, one result a line
    #[arg(long)]
    json: bool,
}

/// Print a recorded result with its arguments as JSON
#[derive(Args, Debug)]
struct ShowArgs {
    /// The key of a result as `rehearse cache list` prints it
    #[arg(value_name = "KEY")]
    key: String,

    /// Only the results that a dry run got at a time: 2h or 7d ago, or 2026-07-28T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = as_of)]
    as_of: Option<Timestamp>,
}

/// Write recorded results and lists of tools as JSON lines, which `rehearse cache import` reads
#[derive(Args, Debug)]
struct ExportArgs {
    #[command(flatten)]
    filter: FilterArgs,

    /// The file [default: stdout]
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
}

/// Print the number of results, their size and their times, by tool
#[derive(Args, Debug)]
struct StatsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Print or set the limits of the cache, which hold for every process
#[derive(Args, Debug)]
struct LimitArgs {
    /// Number of results. Those that were stored first are removed
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    entries: Option<u64>,

    /// Size of all arguments and results: 64MB, 1GB. Those that were stored first are removed
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Option<u64>,

    /// Number of runs from which results for the same arguments are kept
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    versions: Option<u64>,
}

/// Remove recorded results
#[derive(Args, Debug)]
struct PurgeArgs {
    #[command(flatten)]
    filter: FilterArgs,

    /// Remove everything
    #[arg(long, conflicts_with_all = ["server", "tool", "older_than"])]
    all: bool,
}

#[derive(Args, Debug)]
struct FilterArgs {
    /// Only results of this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    /// Only results of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,

    /// Only results that were recorded longer ago than this: 30m, 12h, 7d
    #[arg(long, value_name = "TIME", value_parser = age)]
    older_than: Option<SignedDuration>,

    /// Results of all principals
    #[arg(long, conflicts_with = "principal")]
    all_principals: bool,
}

const AFTER_HELP: &str = "\
The cache is one SQLite file, safe with several programs at once. It is in the folder .rehearsal
of the project, if the working directory or one above has one, else in the user's data folder.
Secrets in a recording were redacted when it was recorded.

Examples:
  rehearse record -o fs.jsonl -- npx -y @modelcontextprotocol/server-filesystem .
  rehearse cache import fs.jsonl --server fs
  rehearse cache list --server fs
  rehearse cache show d48ee305f0e3 --as-of 2h
  rehearse cache export -o cache.jsonl
  rehearse cache limit --size 1GB
  rehearse cache purge --older-than 7d

Exit status:
    0  done
    2  a flag or a recording is wrong
    3  the cache cannot be opened, read or written";

impl CacheArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let mut cache = open_cache(self.cache.as_deref(), context)?;
        if let Some(principal) = &self.principal {
            cache = cache.for_principal(principal);
        }
        match &self.verb {
            CacheVerb::Import(arguments) => arguments.run(cache, self.principal.as_deref(), context),
            CacheVerb::List(arguments) => arguments.run(cache, context),
            CacheVerb::Show(arguments) => arguments.run(cache),
            CacheVerb::Export(arguments) => arguments.run(&cache, context),
            CacheVerb::Stats(arguments) => arguments.run(&cache),
            CacheVerb::Limit(arguments) => arguments.run(&cache),
            CacheVerb::Purge(arguments) => arguments.run(&cache, context),
        }
    }
}

impl ImportArgs {
    fn run(&self, cache: Cache, principal: Option<&str>, context: &Context) -> Result<Exit, Failure> {
        let cache = if self.share { cache.sharing(AnswerSharing::Shared) } else { cache };
        for trace in &self.traces {
            let input = Input::from(trace.clone());
            context.stderr.status(&format!("importing {input}"));
            let imported = match self.export(&input)? {
                Some(lines) => import_export(&cache, lines, principal).map_err(|error| match error {
                    ExportError::Stream(_) | ExportError::Line { .. } => {
                        Failure::bad_input(format_args!("{input}, {error}"))
                    }
                    ExportError::Cache(error) => cache_failure(error),
                })?,
                None => self.recording(&cache, &input)?,
            };
            context.stderr.end_status();
            let servers: Vec<&str> = imported.servers.iter().map(String::as_str).collect();
            let results = plural(imported.added as u64, "new result");
            let from = if servers.is_empty() { String::new() } else { format!(" of {}", servers.join(", ")) };
            context.stderr.note(format_args!(
                "{input}: {results}{from}, {} imported before, {} without a result; {} of tools",
                imported.known,
                imported.skipped,
                plural(imported.catalogues.len() as u64, "list"),
            ));
        }
        context.stderr.note(format_args!("the cache is {}", cache.path().display()));
        Ok(Exit::Ok)
    }

    /// The lines of an input that is an export.
    fn export(&self, input: &Input) -> Result<Option<Box<dyn BufRead>>, Failure> {
        let mut lines: Box<dyn BufRead> = match input {
            // A recording reads the same buffer later.
            Input::Stdin => Box::new(io::stdin().lock()),
            Input::File(path) => match File::open(path) {
                Ok(file) => Box::new(BufReader::new(file)),
                // The reader of recordings reports it.
                Err(_) => return Ok(None),
            },
        };
        if !lines.fill_buf().is_ok_and(is_export) {
            return Ok(None);
        }
        if self.server.is_some() || self.share {
            let message = format_args!("{input} is an export: its results have their servers and their sharing");
            return Err(Failure::bad_input(message).hint("import it without --server and --share"));
        }
        Ok(Some(lines))
    }

    fn recording(&self, cache: &Cache, input: &Input) -> Result<Imported, Failure> {
        let recording = Recording::open(input).map_err(Failure::bad_input)?;
        import(cache, &recording, self.server.as_deref()).map_err(|error| match error {
            ImportError::Read(error) => Failure::bad_input(format_args!("{input}, {error}")),
            ImportError::Cache(error) => cache_failure(error),
        })
    }
}

/// The answers that fit a filter; with a time only those that a dry run got at that time, from the newest run for each call.
fn listed(cache: Cache, filter: &CacheFilter, time: Option<Timestamp>) -> Result<Vec<CachedAnswer>, CacheError> {
    let Some(time) = time else { return cache.list_answers(filter) };
    let mut answers = cache.as_of(milliseconds(time)).list_answers(filter)?;
    let mut newest = HashMap::new();
    answers.retain(|CachedAnswer { entry, principal, .. }| {
        // Each principal has a newest answer of its own only if all principals are listed.
        let reader = (filter.principals == PrincipalFilter::All).then(|| principal.clone());
        let call = (entry.server.clone(), entry.tool.clone(), ArgumentsKey::new(&entry.arguments), reader);
        let run = (principal.clone(), entry.run.clone());
        *newest.entry(call).or_insert_with(|| run.clone()) == run
    });
    Ok(answers)
}

impl ListArgs {
    fn run(&self, cache: Cache, context: &Context) -> Result<Exit, Failure> {
        let path = cache.path().to_owned();
        let now_ms = cache.now_ms();
        let answers = listed(cache, &self.filter.filter(), self.as_of).map_err(cache_failure)?;
        to_stdout(|out| {
            for answer in &answers {
                let entry = &answer.entry;
                if self.json {
                    writeln!(out, "{}", answer_json(answer))?;
                } else {
                    let key = ArgumentsKey::new(&entry.arguments);
                    let arguments = excerpt(&entry.arguments, 60);
                    let name = format!("{}:{}", entry.server, entry.tool);
                    let error = if is_error(&entry.reply) { "  error" } else { "" };
                    let expired = if expires_ms(entry).is_some_and(|time| time <= now_ms) { "  expired" } else { "" };
                    writeln!(out, "{key}  {}  {name}  {arguments}{error}{expired}", time(entry.at_ms))?;
                }
            }
            Ok(())
        })?;
        if answers.is_empty() && !self.json {
            context.stderr.note(format_args!("no such results in {}", path.display()));
            context.stderr.hint("`rehearse cache import TRACE` adds those of a recording");
        }
        Ok(Exit::Ok)
    }
}

impl ShowArgs {
    fn run(&self, cache: Cache) -> Result<Exit, Failure> {
        let mut answers = listed(cache, &CacheFilter::default(), self.as_of).map_err(cache_failure)?;
        answers.retain(|answer| ArgumentsKey::new(&answer.entry.arguments).to_string().starts_with(&self.key));
        if answers.is_empty() {
            let at = self.as_of.map(|time| format!(" as of {time}")).unwrap_or_default();
            return Err(Failure::bad_input(format_args!("no result has the key {}{at}", self.key))
                .hint("`rehearse cache list` prints the keys"));
        }
        to_stdout(|out| {
            for answer in &answers {
                serde_json::to_writer_pretty(&mut *out, &answer_json(answer))?;
                writeln!(out)?;
            }
            Ok(())
        })?;
        Ok(Exit::Ok)
    }
}

impl ExportArgs {
    fn run(&self, cache: &Cache, context: &Context) -> Result<Exit, Failure> {
        let filter = self.filter.filter();
        let failure = |error: ExportError, path: &Path| match error {
            ExportError::Stream(cause) => Failure::unwritable(path, &cause),
            ExportError::Line { .. } => Failure::bad_input(error),
            ExportError::Cache(error) => cache_failure(error),
        };
        let Some(path) = self.output.as_deref().filter(|path| path.as_os_str() != "-") else {
            stream_to_stdout(|out| match export(cache, &filter, out) {
                Ok(_) => Ok(()),
                Err(ExportError::Stream(cause)) => Err(Failure::stdout(cause)),
                Err(error) => Err(failure(error, Path::new("-"))),
            })?;
            return Ok(Exit::Ok);
        };
        let mut file = BufWriter::new(File::create(path).map_err(|cause| Failure::unwritable(path, &cause))?);
        let count = export(cache, &filter, &mut file).map_err(|error| failure(error, path))?;
        file.flush().map_err(|cause| Failure::unwritable(path, &cause))?;
        context.stderr.note(format_args!("wrote {}: {}", path.display(), plural(count as u64, "result")));
        Ok(Exit::Ok)
    }
}

impl StatsArgs {
    fn run(&self, cache: &Cache) -> Result<Exit, Failure> {
        let stats = cache.stats().map_err(cache_failure)?;
        to_stdout(|out| {
            if self.json {
                serde_json::to_writer_pretty(&mut *out, &stats_json(cache, &stats))?;
                return writeln!(out);
            }
            let tools = plural(stats.tools.len() as u64, "tool");
            let saved = plural(stats.catalogues as u64, "saved list");
            let (results, limits) = (plural(stats.entries(), "result"), &stats.limits);
            writeln!(out, "{}: {results} of {tools}, {saved} of tools", cache.path().display())?;
            let disk = stats.bytes_on_disk.map(|bytes| format!(", {} on disk", megabytes(bytes))).unwrap_or_default();
            writeln!(out, "size: {}{disk}", megabytes(stats.bytes()))?;
            writeln!(out, "limits: {}", limits_text(limits))?;
            for ToolStats { server, tool, entries, bytes, oldest_ms, newest_ms, .. } in &stats.tools {
                let (results, times) =
                    (plural(*entries, "result"), format!("{} to {}", time(*oldest_ms), time(*newest_ms)));
                writeln!(out, "{server}:{tool}  {results}  {}  {times}", megabytes(*bytes))?;
            }
            Ok(())
        })?;
        Ok(Exit::Ok)
    }
}

impl LimitArgs {
    fn run(&self, cache: &Cache) -> Result<Exit, Failure> {
        let mut limits = cache.limits().map_err(cache_failure)?;
        let present = limits;
        limits.entries = self.entries.unwrap_or(limits.entries);
        limits.bytes = self.size.unwrap_or(limits.bytes);
        limits.versions = self.versions.unwrap_or(limits.versions);
        if limits != present {
            cache.set_limits(limits).map_err(cache_failure)?;
        }
        to_stdout(|out| writeln!(out, "{}", limits_text(&limits)))?;
        Ok(Exit::Ok)
    }
}

fn limits_text(limits: &CacheLimits) -> String {
    let CacheLimits { entries, bytes, versions } = limits;
    format!("{}, {}, {} of an answer", plural(*entries, "result"), megabytes(*bytes), plural(*versions, "version"))
}

fn stats_json(cache: &Cache, stats: &CacheStats) -> Value {
    let of_tool = |tool: &ToolStats| {
        json!({
            "tool": format!("{}:{}", tool.server, tool.tool),
            "entries": tool.entries,
            "bytes": tool.bytes,
            "principals": tool.principals,
            "oldest": time(tool.oldest_ms),
            "newest": time(tool.newest_ms),
        })
    };
    let CacheLimits { entries, bytes, versions } = stats.limits;
    json!({
        "file": cache.path(),
        "entries": stats.entries(),
        "bytes": stats.bytes(),
        "bytes_on_disk": stats.bytes_on_disk,
        "catalogues": stats.catalogues,
        "oldest": stats.tools.iter().map(|tool| tool.oldest_ms).min().map(time),
        "newest": stats.tools.iter().map(|tool| tool.newest_ms).max().map(time),
        "limits": { "entries": entries, "bytes": bytes, "versions": versions },
        "tools": stats.tools.iter().map(of_tool).collect::<Vec<_>>(),
    })
}

impl PurgeArgs {
    fn run(&self, cache: &Cache, context: &Context) -> Result<Exit, Failure> {
        let filter = self.filter.filter();
        let names_nothing = filter.server.is_none() && filter.tool.is_none() && filter.before_ms.is_none();
        if names_nothing && !self.all {
            return Err(Failure::bad_input("no filter is set, so all results would be removed")
                .hint("name a --server, a --tool or --older-than, or remove everything with --all"));
        }
        let removed = cache.purge(&filter).map_err(cache_failure)?;
        context.stderr.note(format_args!("{} removed", plural(removed as u64, "result")));
        Ok(Exit::Ok)
    }
}

impl FilterArgs {
    fn filter(&self) -> CacheFilter {
        let before = self.older_than.map(|age| Timestamp::now().saturating_sub(age).unwrap_or(Timestamp::MIN));
        CacheFilter {
            server: self.server.clone(),
            tool: self.tool.clone(),
            before_ms: before.map(milliseconds),
            principals: if self.all_principals { PrincipalFilter::All } else { PrincipalFilter::Own },
        }
    }
}

fn is_error(reply: &Reply) -> bool {
    match reply {
        Reply::Error(_) => true,
        Reply::Result(result) => result.field("isError").is_some_and(|member| member.as_str() == "true"),
    }
}

/// When the server's `ttlMs` of a result ends.
fn expires_ms(entry: &CacheEntry) -> Option<u64> {
    entry.ttl_ms().map(|ttl| entry.at_ms.saturating_add(ttl))
}

fn answer_json(answer: &CachedAnswer) -> Value {
    let entry = &answer.entry;
    let mut line = json!({
        "key": ArgumentsKey::new(&entry.arguments).to_string(),
        "server": entry.server,
        "tool": entry.tool,
        "arguments": entry.arguments,
        "at": time(entry.at_ms),
        "latency_ms": entry.latency_ms,
        "run": entry.run,
        "principal": answer.principal,
        "shared": answer.sharing == AnswerSharing::Shared,
        "expires_at": expires_ms(entry).map(time),
    });
    match &entry.reply {
        Reply::Result(result) => line["result"] = result.value().unwrap_or_default(),
        Reply::Error(error) => line["error"] = Value::Object(error.object()),
    }
    line
}

fn time(ms: u64) -> String {
    i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or_default().to_string()
}

/// `7d`, `12h`, `30m`, or seconds.
pub(super) fn age(text: &str) -> Result<SignedDuration, String> {
    if let Some(days) = text.strip_suffix('d') {
        let days: i64 = days.parse().map_err(|_| "write it like 7d, 12h or 30m".to_owned())?;
        return Ok(SignedDuration::from_hours(days.saturating_mul(24)));
    }
    let age = rehearsal_core::duration::read(text)?;
    SignedDuration::try_from(age).map_err(|error| error.to_string())
}

/// `2h`, `7d ago`, or a time in RFC 3339.
pub(super) fn as_of(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let ago = text.strip_suffix("ago").unwrap_or(text).trim();
    let age = age(ago).map_err(|_| "write it like 2h, 7d or 2026-07-28T12:00:00Z".to_owned())?;
    Timestamp::now().checked_sub(age).map_err(|error| error.to_string())
}

/// Bytes, or a number with kB, MB or GB, each 1024 times the one before.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || "write it like 500kB, 64MB or 1GB".to_owned();
    let unit_at = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: u64 = number.trim().parse().map_err(|_| wrong())?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1 << 10,
        "mb" => 1 << 20,
        "gb" => 1 << 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(factor).filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

/// A size for users: `3.5 MB`.
fn megabytes(bytes: u64) -> String {
    match bytes {
        0..1024 => plural(bytes, "byte"),
        1024..1_048_576 => format!("{:.1} kB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    }
}
