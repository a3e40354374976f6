//! `rehearse wrap`

use std::path::{Path, PathBuf};

use clap::Args;
use rehearsal::core::redact::shown_url;

use super::config::{Config, Prefix, Reached, reached};
use super::error::WrapError;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;

/// Where sessions go unless somebody says otherwise: beside the configuration.
const TRACE: &str = "trace.jsonl";

/// Record the servers of a client: put rehearse in front of their commands in its configuration
#[derive(Args, Debug)]
#[command(after_help = MORE)]
pub(in crate::cli) struct Wrap {
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

const MORE: &str = "\
Only the words of the commands change; spacing, comments and everything else stay. The file as it was is kept
in FILE.rehearsal-backup, and `rehearse unwrap FILE` restores it. A client reads its configuration when it
starts, so start it anew.

Examples:
  rehearse wrap .mcp.json
  rehearse wrap .vscode/mcp.json --server github -o ~/github.jsonl";

impl Wrap {
    /// Wraps, and says what was done with each server.
    pub(in crate::cli) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let config = Config::read(&self.file)?;
        let servers = config.servers()?;
        for name in &self.server {
            config.file.server(name).map_err(WrapError::from)?;
        }
        let trace = self.trace()?;
        let wanted = |name: &str| self.server.is_empty() || self.server.iter().any(|server| server == name);
        let text = config.wrapped(|name| wanted(name).then(|| prefix(context, name, &trace)))?;
        let any_wrapped = servers.iter().any(|server| matches!(reached(server), Reached::Wrapped(_)));
        if text != config.file.text {
            keep(&config, any_wrapped)?;
            config.replace(&text)?;
        }
        let mut done = false;
        for server in servers.into_iter().filter(|server| wanted(server.name)) {
            let (name, reached) = (server.name, reached(&server));
            done |= matches!(reached, Reached::Command | Reached::Wrapped(_));
            let said = match reached {
                Reached::Command => format!("{name}: wrapped; recorded in {}", trace.display()),
                Reached::Wrapped(_) => format!("{name}: was wrapped already"),
                Reached::Url(url) => {
                    let url = shown_url(&url);
                    format!("{name}: NOT wrapped, it is at {url}; {}", elsewhere(&url, &trace))
                }
                Reached::Unknown => format!("{name}: NOT wrapped, it has neither `command` nor `url`"),
            };
            context.talk.say(said);
        }
        match done {
            true => Ok(Exit::Ok),
            false => Err(WrapError::NothingToWrap { path: self.file.clone() }.into()),
        }
    }

    /// Nobody knows in which directory a client starts its servers, so the path is absolute.
    fn trace(&self) -> Result<PathBuf, WrapError> {
        let path = match &self.output {
            Some(path) => path.clone(),
            None => self.file.with_file_name(TRACE),
        };
        std::path::absolute(&path).map_err(|cause| WrapError::Unwritable { path, cause })
    }
}

/// What a server at a URL needs, which no command can stand in front of.
fn elsewhere(url: &str, trace: &Path) -> String {
    format!(
        "run `rehearse record --url {url} --listen 127.0.0.1:8808 -o {}` and write the URL that it prints in its place",
        trace.display()
    )
}

fn prefix(context: &Context, name: &str, trace: &Path) -> Prefix {
    let words =
        ["record", "--quiet", "--output", &trace.to_string_lossy(), "--metadata", &format!("server={name}"), "--"];
    Prefix { program: context.program.to_string_lossy().into_owned(), words: words.map(str::to_owned).to_vec() }
}

/// Keeps the file as it was before the first wrap.
fn keep(config: &Config, any_wrapped: bool) -> Result<(), WrapError> {
    let backup = config.backup();
    match std::fs::read(&backup) {
        Ok(kept) if any_wrapped || kept == config.file.text.as_bytes() => Ok(()),
        Ok(_) => Err(WrapError::StaleBackup { path: config.file.path.clone(), backup }),
        // Somebody removed it; what is there now is not how it was.
        Err(_) if any_wrapped => Ok(()),
        // With its permissions: a configuration may have secrets in it.
        Err(_) => match std::fs::copy(&config.file.path, &backup) {
            Ok(_) => Ok(()),
            Err(cause) => Err(WrapError::Unwritable { path: backup, cause }),
        },
    }
}
