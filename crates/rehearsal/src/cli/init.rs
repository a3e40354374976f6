//! `rehearse init`

use std::path::{Path, PathBuf};

use clap::Args;
use rehearsal::Client;
use rehearsal::mock::{ServerLists, draft};

use super::context::Context;
use super::exit::{Exit, Failure};
use super::generate::{exists, put};
use super::list::{fetch_everything, report_unusable};
use super::output::to_stdout;
use super::server::ServerArgs;
use crate::print::PrintedLists;

/// Write a first mock file, from a live server if one is named
#[derive(Args, Debug)]
#[command(after_help = format!("{AFTER_HELP}\n\n{}", Exit::help()), mut_arg("json", |arg| arg.hide(true)))]
pub(super) struct InitArgs {
    /// The file to write; - is stdout
    #[arg(short, long, value_name = "FILE", default_value = "server.mock.yaml", value_hint = clap::ValueHint::FilePath)]
    output: PathBuf,

    /// Overwrite an existing file
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    pub(super) server: ServerArgs,
}

const AFTER_HELP: &str = "\
The mock gets the name, the capabilities, the instructions and all lists of the live server, byte for
byte. Resources are read and prompts are requested. Tools are never called: their answers are invented,
and fit the output schema if there is one. Without a server, the file has one example of everything.

Examples:
  rehearse init
  rehearse init -o everything.mock.yaml -- npx -y @modelcontextprotocol/server-everything
  rehearse init -o - --url http://127.0.0.1:3000/mcp | rehearse check -";

/// The file for `init` without a server.
const EXAMPLE: &str = include_str!("../../../../examples/start.mock.yaml");

/// The comment above the mock of a live server.
const COMMENT: &str = r#"
An answer may have a condition; the first answer that fits is used:

  answers:
    - when: { city: Oslo }                   # these arguments; `{ matches: "^B" }` and the like are matchers
      text: Rain in Oslo
    - times: 1                               # one time, then the next answer
      error: { code: -32000, message: the upstream is down }
    - text: "Sun in {{ arguments.city }}"    # no `when`: the default. Texts are templates

`steps` are progress, log messages and server requests before an answer, `fault` is an injected fault.
`rehearse check` reports errors in the file, `rehearse schema mock` prints its schema for editors.
"#;

impl InitArgs {
    /// Checks the output file before a server is started.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let exists_already = self.file().is_some_and(|path| path.exists() && (!self.force || path.is_dir()));
        if exists_already { Err(exists(&self.output)) } else { Ok(()) }
    }

    fn file(&self) -> Option<&Path> {
        (self.output.as_os_str() != "-").then_some(&*self.output)
    }

    /// True if the user named no server.
    pub(super) fn names_no_server(&self) -> bool {
        self.server.names_no_server()
    }

    /// Writes the example.
    pub(super) fn without_server(&self, context: &Context) -> Result<Exit, Failure> {
        self.write(EXAMPLE, "an example", context)?;
        Ok(Exit::Ok)
    }

    /// Writes a mock of the server.
    pub(super) async fn run(&self, client: &Client, context: &Context) -> Result<Exit, Failure> {
        let lists = fetch_everything(client).await?;
        let exit = report_unusable(&lists, context);
        let PrintedLists { tools, resources, templates, prompts, .. } = lists;
        let surface = ServerLists {
            tools: tools.unwrap_or_default(),
            resources: resources.unwrap_or_default(),
            resource_templates: templates.unwrap_or_default(),
            prompts: prompts.unwrap_or_default(),
        };
        let counts = [
            (surface.tools.len(), "tool"),
            (surface.resources.len(), "resource"),
            (surface.resource_templates.len(), "resource template"),
            (surface.prompts.len(), "prompt"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let counts: Vec<_> = counts.map(|(n, what)| format!("{n} {what}{}", if n == 1 { "" } else { "s" })).collect();
        let name = client.server_info().get("name").and_then(|name| name.as_str()).unwrap_or("a server");
        let name: String = name.chars().filter(|c| !c.is_control()).collect();
        let comment = format!("A mock of {name}, drafted from the live server.\n{COMMENT}");
        match draft(client, surface, &comment).await {
            Ok(drafted) => {
                drafted.remarks.iter().for_each(|remark| context.stderr.note(remark));
                let what = if counts.is_empty() { "the server lists nothing".to_owned() } else { counts.join(", ") };
                self.write(&drafted.text, &what, context)?;
                Ok(exit)
            }
            // Every list can be written as a mock, so this is an error of this program, not of the user.
            Err(errors) => {
                errors.iter().for_each(|error| context.stderr.error(error));
                Ok(Exit::ChecksFailed)
            }
        }
    }

    fn write(&self, text: &str, what: &str, context: &Context) -> Result<(), Failure> {
        match self.file() {
            None => to_stdout(|out| out.write_all(text.as_bytes())),
            Some(path) => {
                put(path, text)?;
                context.stderr.note(format_args!("wrote {}: {what}", path.display()));
                context.stderr.hint(format_args!("`rehearse mock {}` serves it", path.display()));
                Ok(())
            }
        }
    }
}
