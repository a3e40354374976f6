//! `rehearse unwrap`

use std::collections::HashMap;
use std::path::PathBuf;

use clap::Args;
use rehearsal::config::Server;

use super::config::{Config, Prefix, Reached, reached};
use super::error::WrapError;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;

/// Undo `rehearse wrap`: the configuration is as it was, byte for byte
#[derive(Args, Debug)]
#[command(after_help = MORE)]
pub(in crate::cli) struct Unwrap {
    /// The configuration that was wrapped
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
}

const MORE: &str = "\
Where the file was edited since, the edits stay: only the commands are put back, and the backup is kept.

Examples:
  rehearse unwrap .mcp.json";

impl Unwrap {
    /// Unwraps, and says how.
    pub(in crate::cli) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let config = Config::read(&self.file)?;
        let backup = config.backup();
        let prefixes: HashMap<&str, Prefix> = config.servers()?.iter().filter_map(wrapped).collect();
        if prefixes.is_empty() {
            return Err(WrapError::NotWrapped { path: self.file.clone() }.into());
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
                std::fs::remove_file(&backup).map_err(|cause| WrapError::Unwritable { path: backup, cause })?;
                context.talk.say(format_args!("unwrapped {servers}: {file} is as it was"));
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
                context.talk.say(format_args!("unwrapped {servers} in {file}; {kept}"));
            }
        }
        Ok(Exit::Ok)
    }
}

fn wrapped<'a>(server: &Server<'a>) -> Option<(&'a str, Prefix)> {
    match reached(server) {
        Reached::Wrapped(prefix) => Some((server.name, prefix)),
        Reached::Command | Reached::Url(_) | Reached::Unknown => None,
    }
}
