//! `rehearse wrap` and `rehearse unwrap`: the servers of a client's configuration, recorded and not.
//!
//! ```text
//! "command": "npx", "args": ["-y", "server"]
//!      wrap ──► "command": "/…/rehearse", "args": ["record", …, "--", "npx", "-y", "server"]      unwrap ──► as it was
//! ```
//!
//! Only the words of the command are touched, in the text as it is: spacing, comments and whatever else is in the file
//! stay.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::Args;
use rehearsal::config::ServerRef;
use rehearsal::core::redact::shown_url;

use super::context::Context;
use super::exit::{Exit, Failure};
use super::wrapped_config::{Config, RecordPrefix, WrapKind, reached};

/// Where sessions go unless somebody says otherwise: beside the configuration.
const TRACE: &str = "trace.jsonl";

/// Record the servers of a client: put rehearse in front of their commands in its configuration
#[derive(Args, Debug)]
#[command(after_help = AFTER_WRAP_HELP)]
pub(super) struct WrapArgs {
    /// The configuration: `.mcp.json`, `claude_desktop_config.json`, `.vscode/mcp.json` and the like
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,

    /// Only this server; may be repeated
    #[arg(long, value_name = "NAME")]
    server: Vec<String>,

    /// Append each session to this file [default: trace.jsonl beside the configuration]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
}

const AFTER_WRAP_HELP: &str = "\
Only the words of the commands change; spacing, comments and everything else stay. The file as it was is kept
in FILE.rehearsal-backup, and `rehearse unwrap FILE` restores it. A client reads its configuration when it
starts, so restart it.

Examples:
  rehearse wrap .mcp.json
  rehearse wrap .vscode/mcp.json --server github -o ~/github.jsonl";

impl WrapArgs {
    /// Wraps, and says what was done with each server.
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let config = Config::read(&self.file)?;
        let servers = config.servers()?;
        for name in &self.server {
            config.file.server(name)?;
        }
        let trace = self.trace()?;
        let wanted = |name: &str| self.server.is_empty() || self.server.iter().any(|server| server == name);
        let text = config.wrapped(|name| wanted(name).then(|| prefix(context, name, &trace)))?;
        let any_wrapped = servers.iter().any(|server| matches!(reached(server), WrapKind::Wrapped(_)));
        if text != config.file.text {
            keep(&config, any_wrapped)?;
            config.replace(&text)?;
        }
        let mut done = false;
        for server in servers.into_iter().filter(|server| wanted(server.name)) {
            let (name, reached) = (server.name, reached(&server));
            done |= matches!(reached, WrapKind::Command | WrapKind::Wrapped(_));
            let said = match reached {
                WrapKind::Command => format!("{name}: wrapped; recorded in {}", trace.display()),
                WrapKind::Wrapped(_) => format!("{name}: was wrapped already"),
                WrapKind::Url(url) => {
                    let url = shown_url(&url);
                    format!("{name}: NOT wrapped, it is at {url}; {}", elsewhere(&url, &trace))
                }
                WrapKind::Unknown => format!("{name}: NOT wrapped, it has neither `command` nor `url`"),
            };
            context.stderr.note(said);
        }
        match done {
            true => Ok(Exit::Ok),
            false => Err(Failure::bad_input(format_args!("no server in {} can be wrapped", self.file.display()))),
        }
    }

    /// Nobody knows in which directory a client starts its servers, so the path is absolute.
    fn trace(&self) -> Result<PathBuf, Failure> {
        let path = match &self.output {
            Some(path) => path.clone(),
            None => self.file.with_file_name(TRACE),
        };
        std::path::absolute(&path).map_err(|cause| Failure::unwritable(&path, &cause))
    }
}

/// What a server at a URL needs, which no command can stand in front of.
fn elsewhere(url: &str, trace: &Path) -> String {
    format!(
        "run `rehearse record --url {url} --listen 127.0.0.1:8808 -o {}` and write the URL that it prints in its place",
        trace.display()
    )
}

fn prefix(context: &Context, name: &str, trace: &Path) -> RecordPrefix {
    let words =
        ["record", "--quiet", "--output", &trace.to_string_lossy(), "--metadata", &format!("server={name}"), "--"];
    RecordPrefix { program: context.program.to_string_lossy().into_owned(), words: words.map(str::to_owned).to_vec() }
}

/// Keeps the file as it was before the first wrap.
fn keep(config: &Config, any_wrapped: bool) -> Result<(), Failure> {
    let backup = config.backup();
    match std::fs::read(&backup) {
        Ok(kept) if any_wrapped || kept == config.file.text.as_bytes() => Ok(()),
        Ok(_) => {
            let (path, backup) = (config.file.path.display(), backup.display());
            let message = format!("{backup} is of an earlier wrap, but nothing in {path} is wrapped");
            Err(Failure::bad_input(message).hint(format!("compare the two, then remove or rename {backup}")))
        }
        // Somebody removed it; what is there now is not how it was.
        Err(_) if any_wrapped => Ok(()),
        // With its permissions: a configuration may have secrets in it.
        Err(_) => match std::fs::copy(&config.file.path, &backup) {
            Ok(_) => Ok(()),
            Err(cause) => Err(Failure::unwritable(&backup, &cause)),
        },
    }
}

/// Undo `rehearse wrap`: the configuration is as it was, byte for byte
#[derive(Args, Debug)]
#[command(after_help = AFTER_UNWRAP_HELP)]
pub(super) struct UnwrapArgs {
    /// The configuration that was wrapped
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
}

const AFTER_UNWRAP_HELP: &str = "\
Where the file was edited since, the edits stay: only the commands are put back, and the backup is kept.

Examples:
  rehearse unwrap .mcp.json";

impl UnwrapArgs {
    /// Unwraps, and says how.
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let config = Config::read(&self.file)?;
        let backup = config.backup();
        let prefixes: HashMap<&str, RecordPrefix> = config.servers()?.iter().filter_map(wrapped).collect();
        if prefixes.is_empty() {
            return Err(Failure::bad_input(format_args!("nothing in {} is wrapped", self.file.display())));
        }
        let original = std::fs::read_to_string(&backup).ok();
        let untouched = original.as_ref().is_some_and(|original| {
            let again = Config::parse(&self.file, original.clone());
            again
                .and_then(|again| again.wrapped(|name| prefixes.get(name).cloned()))
                .is_ok_and(|text| text == config.file.text)
        });
        let (file, count) = (self.file.display(), prefixes.len());
        let servers = format!("{count} server{}", if count == 1 { "" } else { "s" });
        match original.filter(|_| untouched) {
            Some(original) => {
                config.replace(&original)?;
                std::fs::remove_file(&backup).map_err(|cause| Failure::unwritable(&backup, &cause))?;
                context.stderr.note(format_args!("unwrapped {servers}: {file} is as it was"));
            }
            None => {
                config.replace(&config.unwrapped()?)?;
                let kept = match backup.exists() {
                    true => format!(
                        "it was edited since it was wrapped, and the edits stay; as it was before, it is in {}",
                        backup.display()
                    ),
                    false => "there is no backup to compare it with".to_owned(),
                };
                context.stderr.note(format_args!("unwrapped {servers} in {file}; {kept}"));
            }
        }
        Ok(Exit::Ok)
    }
}

fn wrapped<'a>(server: &ServerRef<'a>) -> Option<(&'a str, RecordPrefix)> {
    match reached(server) {
        WrapKind::Wrapped(prefix) => Some((server.name, prefix)),
        WrapKind::Command | WrapKind::Url(_) | WrapKind::Unknown => None,
    }
}
