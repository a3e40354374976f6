//! `rehearse cache`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use rehearsal::cache::{ArgumentsKey, Cache, CacheEntry, CacheFilter, ImportError, import};
use rehearsal::store::{Input, Recording};
use rehearsal_core::json::excerpt;
use rehearsal_core::message::Reply;
use serde_json::{Value, json};

use super::catalogue::open_cache;
use super::context::Context;
use super::exit::{Exit, Failure};
use super::output::to_stdout;
use crate::print::plural;

/// Import, show and remove the recorded results that answer calls in a dry run
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct CacheArgs {
    #[command(subcommand)]
    verb: CacheVerb,

    /// The file [default: .rehearsal/cache.sqlite of the project, else of the user]
    #[arg(long, global = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    cache: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
enum CacheVerb {
    Import(ImportArgs),
    List(ListArgs),
    Show(ShowArgs),
    Purge(PurgeArgs),
}

/// Import the results of a recording, and the tools that it lists
#[derive(Args, Debug)]
struct ImportArgs {
    /// The recordings; - is stdin
    #[arg(required = true, value_name = "TRACE", value_hint = clap::ValueHint::FilePath)]
    traces: Vec<PathBuf>,

    /// The name of the server in plans [default: the name that `rehearse wrap` recorded, else the
    /// server's own name]
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
}

/// List the recorded results
#[derive(Args, Debug)]
struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,

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
}

const AFTER_HELP: &str = "\
The cache is one SQLite file, safe with several programs at once. It is in the folder .rehearsal
of the project, if the working directory or one above has one, else in the user's data folder.
Secrets in a recording were redacted when it was recorded.

Examples:
  rehearse record -o fs.jsonl -- npx -y @modelcontextprotocol/server-filesystem .
  rehearse cache import fs.jsonl --server fs
  rehearse cache list --server fs
  rehearse cache purge --older-than 7d

Exit status:
    0  done
    2  a flag or a recording is wrong
    3  the cache cannot be opened, read or written";

impl CacheArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let cache = open_cache(self.cache.as_deref(), context)?;
        match &self.verb {
            CacheVerb::Import(arguments) => arguments.run(&cache, context),
            CacheVerb::List(arguments) => arguments.run(&cache, context),
            CacheVerb::Show(arguments) => arguments.run(&cache),
            CacheVerb::Purge(arguments) => arguments.run(&cache, context),
        }
    }
}

impl ImportArgs {
    fn run(&self, cache: &Cache, context: &Context) -> Result<Exit, Failure> {
        for trace in &self.traces {
            let input = Input::from(trace.clone());
            let recording = Recording::open(&input).map_err(Failure::bad_input)?;
            context.stderr.status(&format!("importing {input}"));
            let imported = import(cache, &recording, self.server.as_deref()).map_err(|error| match error {
                ImportError::Read(error) => Failure::bad_input(format_args!("{input}, {error}")),
                ImportError::Cache(error) => Failure::server_failed(error),
            })?;
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
}

impl ListArgs {
    fn run(&self, cache: &Cache, context: &Context) -> Result<Exit, Failure> {
        let entries = cache.list(&self.filter.filter()).map_err(Failure::server_failed)?;
        to_stdout(|out| {
            for entry in &entries {
                if self.json {
                    writeln!(out, "{}", entry_json(entry))?;
                } else {
                    let key = ArgumentsKey::new(&entry.arguments);
                    let arguments = excerpt(&entry.arguments, 60);
                    let name = format!("{}:{}", entry.server, entry.tool);
                    let error = if is_error(&entry.reply) { "  error" } else { "" };
                    writeln!(out, "{key}  {}  {name}  {arguments}{error}", time(entry.at_ms))?;
                }
            }
            Ok(())
        })?;
        if entries.is_empty() && !self.json {
            context.stderr.note(format_args!("no such results in {}", cache.path().display()));
            context.stderr.hint("`rehearse cache import TRACE` adds those of a recording");
        }
        Ok(Exit::Ok)
    }
}

impl ShowArgs {
    fn run(&self, cache: &Cache) -> Result<Exit, Failure> {
        let entries = cache.list(&CacheFilter::default()).map_err(Failure::server_failed)?;
        let fits = |entry: &&CacheEntry| ArgumentsKey::new(&entry.arguments).to_string().starts_with(&self.key);
        let entries: Vec<&CacheEntry> = entries.iter().filter(fits).collect();
        if entries.is_empty() {
            return Err(Failure::bad_input(format_args!("no result has the key {}", self.key))
                .hint("`rehearse cache list` prints the keys"));
        }
        to_stdout(|out| {
            for entry in entries {
                serde_json::to_writer_pretty(&mut *out, &entry_json(entry))?;
                writeln!(out)?;
            }
            Ok(())
        })?;
        Ok(Exit::Ok)
    }
}

impl PurgeArgs {
    fn run(&self, cache: &Cache, context: &Context) -> Result<Exit, Failure> {
        let filter = self.filter.filter();
        let names_nothing = filter.server.is_none() && filter.tool.is_none() && filter.before_ms.is_none();
        if names_nothing && !self.all {
            return Err(Failure::bad_input("no filter is set, so all results would be removed")
                .hint("name a --server, a --tool or --older-than, or remove everything with --all"));
        }
        let removed = cache.purge(&filter).map_err(Failure::server_failed)?;
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
            before_ms: before.map(|time| u64::try_from(time.as_millisecond()).unwrap_or(0)),
        }
    }
}

fn is_error(reply: &Reply) -> bool {
    match reply {
        Reply::Error(_) => true,
        Reply::Result(result) => result.field("isError").is_some_and(|member| member.as_str() == "true"),
    }
}

fn entry_json(entry: &CacheEntry) -> Value {
    let mut line = json!({
        "key": ArgumentsKey::new(&entry.arguments).to_string(),
        "server": entry.server,
        "tool": entry.tool,
        "arguments": entry.arguments,
        "at": time(entry.at_ms),
        "latency_ms": entry.latency_ms,
        "run": entry.run,
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
fn age(text: &str) -> Result<SignedDuration, String> {
    if let Some(days) = text.strip_suffix('d') {
        let days: i64 = days.parse().map_err(|_| "write it like 7d, 12h or 30m".to_owned())?;
        return Ok(SignedDuration::from_hours(days.saturating_mul(24)));
    }
    let age = rehearsal_core::duration::read(text)?;
    SignedDuration::try_from(age).map_err(|error| error.to_string())
}
