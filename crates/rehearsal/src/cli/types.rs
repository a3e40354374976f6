//! `rehearse types`

use std::path::{Path, PathBuf};

use clap::Args;
use rehearsal::dry_run::{Catalogue, ServerTools, types};

use super::catalogue::{CatalogueArgs, SERVERS, cache_failure};
use super::context::Context;
use super::exit::{Exit, Failure};
use super::generate::put;
use super::output::to_stdout;
use super::run::runtime;

/// Write TypeScript types of the servers' tools, so that an editor and tsc check plans
#[derive(Args, Debug)]
#[command(
    after_help = AFTER_HELP,
    mut_arg("overrides", |arg| arg.help("Declare the tools of a mock file as well; may be repeated")),
    mut_arg("no_cache", |arg| arg.help("Use no recorded results, and save no lists of tools"))
)]
pub(super) struct TypesArgs {
    /// Declare only this server; may be repeated
    #[arg(long = "server", value_name = "NAME", help_heading = SERVERS)]
    only: Vec<String>,

    #[command(flatten)]
    servers: CatalogueArgs,

    /// The file to write, such as mcp.d.ts [default: stdout]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
}

/// The name in the comment of the declarations if they are written to stdout.
const DEFAULT_FILE: &str = "mcp.d.ts";
/// The end of the name of every file that `-o` writes, so that it does not overwrite a plan.
const ENDING: &str = ".d.ts";

const AFTER_HELP: &str = "\
The file declares `mcp` with the arguments and results of every tool, and the other globals of a plan.
A result has the type of the tool's output schema; without one, the type that was observed in its
recorded results; without recordings, any type. Arguments that a tool does not have are errors.

The servers of the configuration are started only to list their tools.

Examples:
  rehearse types -o mcp.d.ts
  rehearse types --config .mcp.json --offline --server github -o mcp.d.ts
  npx -p typescript tsc --noEmit --strict --target es2023 --lib es2023 --module esnext \\
    --moduleDetection force mcp.d.ts plan.ts

Exit status:
    0  the types were written
    2  a flag is wrong, or a file cannot be read or written
    3  a server or the cache is not available; nothing was written";

impl TypesArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let output = self.output.as_deref().filter(|path| path.as_os_str() != "-");
        if let Some(path) = output {
            check_output(path)?;
        }
        let cache = self.servers.open_cache(context)?;
        let catalogue = runtime()?.block_on(self.servers.catalogue(&self.only, context, cache.as_ref()))?;
        self.check_known(&catalogue)?;
        self.servers.report_unavailable(&catalogue, context);
        let options = self.servers.options(&self.only, catalogue, cache)?;
        let file = output.map_or_else(|| DEFAULT_FILE.into(), |path| path.to_string_lossy());
        let text = types(&options, &made_by(context), &shell_word(&file)).map_err(cache_failure)?;
        let Some(path) = output else {
            to_stdout(|out| out.write_all(text.as_bytes()))?;
            return Ok(Exit::Ok);
        };
        put(path, &text)?;
        context.stderr.note(format_args!("wrote {}", path.display()));
        Ok(Exit::Ok)
    }

    /// Fails if the tools of a server are not known: a plan that calls them would have errors that it does not have.
    fn check_known(&self, catalogue: &Catalogue) -> Result<(), Failure> {
        let servers =
            catalogue.servers().filter(|(name, _)| self.servers.overridden().all(|overridden| overridden != name));
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for (name, tools) in servers {
            match tools {
                ServerTools::Known { .. } => known.push(name),
                ServerTools::Unavailable { reason } => {
                    let reason = reason.lines().next().unwrap_or_default();
                    unknown.push(format!("the tools of {name} are not known: {reason}"));
                }
            }
        }
        if !unknown.is_empty() {
            let others: String = known.iter().map(|name| format!(" --server {}", shell_word(name))).collect();
            let others = (!others.is_empty()).then(|| format!("to leave it out, name the others:{others}"));
            return Err(Failure::server_failed(unknown.join("\n")).hints(others));
        }
        let overridden = self.servers.overridden().filter(|name| self.only.is_empty() || self.only.contains(name));
        let is_empty = known.is_empty() && overridden.count() == 0;
        if is_empty {
            return Err(Failure::server_failed("there is no server whose tools are known, so there are no types"));
        }
        Ok(())
    }
}

/// Checks the output file before a server is started.
fn check_output(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    if path.is_dir() {
        return Err(Failure::bad_input(format_args!("{shown} is a directory; name a file: -o {shown}/{DEFAULT_FILE}")));
    }
    // A device or a pipe has no ending.
    let is_declaration = path.to_string_lossy().ends_with(ENDING) || (path.exists() && !path.is_file());
    if is_declaration {
        return Ok(());
    }
    let message = format!("{shown}: a file of types ends in {ENDING}, so that TypeScript reads it as one");
    Err(Failure::bad_input(message).hint(format!("-o {DEFAULT_FILE}")))
}

/// The command line, for the comment at the top of the file.
fn made_by(context: &Context) -> String {
    let words = context.words.iter().skip(1).map(|word| shell_word(&word.to_string_lossy()));
    std::iter::once("rehearse".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// A word of a command line, quoted if a shell would change it.
fn shell_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:@%+,".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
