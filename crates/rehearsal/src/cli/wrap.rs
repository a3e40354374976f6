//! `rehearse wrap` and `rehearse unwrap`: edit the commands in a client's configuration, so that its servers are recorded.
//!
//! ```text
//! "command": "npx", "args": ["-y", "server"]
//!      wrap ──► "command": "/…/rehearse", "args": ["record", …, "--", "npx", "-y", "server"]      unwrap ──► the original
//! ```
//!
//! Only the words of the commands are edited; spacing, comments and everything else in the file stay.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::Args;
use rehearsal::config::ServerRef;
use rehearsal::core::redact::shown_url;

use super::context::Context;
use super::exit::{Exit, Failure};
use super::wrapped_config::{Config, RecordPrefix, WrapKind, reached};

/// The default trace file, in the folder of the configuration.
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

    /// Append each session to this file [default: trace.jsonl in the folder of the configuration]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
}

const AFTER_WRAP_HELP: &str = "\
Only the words of the commands change; spacing, comments and everything else stay. The original file is kept
as FILE.rehearsal-backup, and `rehearse unwrap FILE` restores it. A client reads its configuration when it
starts, so restart it.

Examples:
  rehearse wrap .mcp.json
  rehearse wrap .vscode/mcp.json --server github -o ~/github.jsonl";

impl WrapArgs {
    /// Wraps the servers, and reports each of them.
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
            let line = match reached {
                WrapKind::Command => format!("{name}: wrapped; recorded in {}", trace.display()),
                WrapKind::Wrapped(_) => format!("{name}: was wrapped already"),
                WrapKind::Url(url) => {
                    let url = shown_url(&url);
                    format!("{name}: NOT wrapped, it is at {url}; {}", record_url_hint(&url, &trace))
                }
                WrapKind::Unknown => format!("{name}: NOT wrapped, it has neither `command` nor `url`"),
            };
            context.stderr.note(line);
        }
        match done {
            true => Ok(Exit::Ok),
            false => Err(Failure::bad_input(format_args!("no server in {} can be wrapped", self.file.display()))),
        }
    }

    /// The absolute path of the trace: a client may start its servers in any directory.
    fn trace(&self) -> Result<PathBuf, Failure> {
        let path = match &self.output {
            Some(path) => path.clone(),
            None => self.file.with_file_name(TRACE),
        };
        std::path::absolute(&path).map_err(|cause| Failure::unwritable(&path, &cause))
    }
}

/// How to record a server at a URL, which has no command to wrap.
fn record_url_hint(url: &str, trace: &Path) -> String {
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

/// Copies the file to its backup before the first wrap.
fn keep(config: &Config, any_wrapped: bool) -> Result<(), Failure> {
    let backup = config.backup();
    match std::fs::read(&backup) {
        Ok(kept) if any_wrapped || kept == config.file.text.as_bytes() => Ok(()),
        Ok(_) => {
            let (path, backup) = (config.file.path.display(), backup.display());
            let message = format!("{backup} is the backup of an earlier wrap, but nothing in {path} is wrapped");
            Err(Failure::bad_input(message).hint(format!("compare the two, then remove or rename {backup}")))
        }
        // The backup was removed. The current file is wrapped, so it is no backup.
        Err(_) if any_wrapped => Ok(()),
        // With its permissions, because a configuration may contain secrets.
        Err(_) => match std::fs::copy(&config.file.path, &backup) {
            Ok(_) => Ok(()),
            Err(cause) => Err(Failure::unwritable(&backup, &cause)),
        },
    }
}

/// Undo `rehearse wrap` and restore the configuration byte for byte
#[derive(Args, Debug)]
#[command(after_help = AFTER_UNWRAP_HELP)]
pub(super) struct UnwrapArgs {
    /// The configuration that was wrapped
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
}

const AFTER_UNWRAP_HELP: &str = "\
If the file was edited since it was wrapped, the edits stay: only the commands are restored, and the backup
is kept.

Examples:
  rehearse unwrap .mcp.json";

impl UnwrapArgs {
    /// Unwraps the servers, and reports the result.
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let config = Config::read(&self.file)?;
        let backup = config.backup();
        let prefixes: HashMap<&str, RecordPrefix> = config.servers()?.iter().filter_map(wrapped).collect();
        if prefixes.is_empty() {
            return Err(Failure::bad_input(format_args!("nothing in {} is wrapped", self.file.display())));
        }
        let original = std::fs::read_to_string(&backup).ok();
        let untouched = original.as_ref().is_some_and(|original| {
            let parsed = Config::parse(&self.file, original.clone());
            parsed
                .and_then(|config| config.wrapped(|name| prefixes.get(name).cloned()))
                .is_ok_and(|text| text == config.file.text)
        });
        let (file, count) = (self.file.display(), prefixes.len());
        let servers = format!("{count} server{}", if count == 1 { "" } else { "s" });
        match original.filter(|_| untouched) {
            Some(original) => {
                config.replace(&original)?;
                std::fs::remove_file(&backup).map_err(|cause| Failure::unwritable(&backup, &cause))?;
                context.stderr.note(format_args!("unwrapped {servers}: restored {file}"));
            }
            None => {
                config.replace(&config.unwrapped()?)?;
                let kept = match backup.exists() {
                    true => format!(
                        "the file was edited since it was wrapped, and the edits stay; the original is in {}",
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
