//! `rehearse list`

use clap::Args;
use rehearsal::Client;
use rehearsal::client::ClientError;
use rehearsal::core::protocol::code;
use serde_json::Value;

use super::context::Context;
use super::exit::Exit;
use super::failure::Failure;
use super::output::to_stdout;
use super::server::{ServerOptions, ShownAs};
use crate::print::Lists;

/// Show what a server offers: its tools, resources, resource templates and prompts
#[derive(Args, Debug)]
#[command(after_help = format!("{MORE}\n\n{}", Exit::help()))]
pub(super) struct List {
    /// List tools
    #[arg(long, help_heading = "What to list")]
    tools: bool,

    /// List resources
    #[arg(long, help_heading = "What to list")]
    resources: bool,

    /// List resource templates
    #[arg(long, help_heading = "What to list")]
    templates: bool,

    /// List prompts
    #[arg(long, help_heading = "What to list")]
    prompts: bool,

    /// Show whole descriptions and what each argument is for
    #[arg(short, long, help_heading = "What to list")]
    long: bool,

    #[command(flatten)]
    pub(super) server: ServerOptions,
}

const MORE: &str = "\
Without --tools and the like everything is listed that the server declares. An argument in
brackets may be left out. The tables go to stdout; who the server is goes to stderr.

Examples:
  rehearse list -- npx -y @modelcontextprotocol/server-everything
  rehearse list --tools --long --url http://127.0.0.1:3000/mcp
  rehearse list --json -- ./my-server | jq '.tools[].name'";

impl List {
    /// Asks for the lists and prints them.
    pub(super) async fn run(&self, client: &Client, context: &Context) -> Result<Exit, Failure> {
        let lists = self.fetch(client).await?;
        if self.server.shown_as() == ShownAs::Json {
            to_stdout(|out| lists.json(out))?;
            return Ok(Exit::Ok);
        }
        context.talk.say(introduction(client));
        let screen = &context.stdout;
        to_stdout(|out| if self.long { lists.details(screen, out) } else { lists.tables(screen, out) })?;
        let Lists { tools, resources, templates, prompts } = &lists;
        if tools.is_none() && resources.is_none() && templates.is_none() && prompts.is_none() {
            context.talk.say("it declares neither tools nor resources nor prompts");
            context.talk.hint("`--tools` asks for its tools all the same");
        }
        for what in lists.empty() {
            context.talk.say(format_args!("it has no {what}"));
        }
        Ok(Exit::Ok)
    }

    async fn fetch(&self, client: &Client) -> Result<Lists, ClientError> {
        let everything = !(self.tools || self.resources || self.templates || self.prompts);
        if everything {
            return fetch_everything(client).await;
        }
        let mut lists = Lists::default();
        if self.tools {
            lists.tools = Some(client.list_tools().await?);
        }
        if self.resources {
            lists.resources = Some(client.list_resources().await?);
        }
        if self.templates {
            lists.templates = Some(client.list_resource_templates().await?);
        }
        if self.prompts {
            lists.prompts = Some(client.list_prompts().await?);
        }
        Ok(lists)
    }
}

/// All lists that a server declares.
pub(super) async fn fetch_everything(client: &Client) -> Result<Lists, ClientError> {
    let declared = |capability: &str| client.server_capabilities().get(capability).is_some_and(|it| !it.is_null());
    let mut lists = Lists::default();
    if declared("tools") {
        lists.tools = Some(client.list_tools().await?);
    }
    if declared("resources") {
        lists.resources = Some(client.list_resources().await?);
        match client.list_resource_templates().await {
            Ok(templates) => lists.templates = Some(templates).filter(|list| !list.is_empty()),
            // Templates have no capability of their own, so a server with resources need not know them.
            Err(error) if is_unknown_method(&error) => {}
            Err(error) => return Err(error),
        }
    }
    if declared("prompts") {
        lists.prompts = Some(client.list_prompts().await?);
    }
    Ok(lists)
}

/// `weather 1.2.0, protocol 2025-11-25`
fn introduction(client: &Client) -> String {
    let text = |key: &str| client.server_info().get(key).and_then(Value::as_str);
    let name = text("name").unwrap_or("a server without a name");
    let version = text("version").map(|version| format!(" {version}")).unwrap_or_default();
    format!("{name}{version}, protocol {}", client.revision().as_str())
}

fn is_unknown_method(error: &ClientError) -> bool {
    matches!(error, ClientError::ErrorReply { error, .. } if error.code == code::METHOD_NOT_FOUND)
}
