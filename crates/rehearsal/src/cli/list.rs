//! `rehearse list`

use clap::Args;
use rehearsal::Client;
use rehearsal::client::{ClientError, Listing};
use rehearsal::core::protocol::code;
use serde_json::Value;

use super::context::Context;
use super::exit::{Exit, Failure};
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
brackets may be left out. The tables go to stdout; who the server is goes to stderr. What cannot
be used, such as a tool without a name, is reported with its place, and the status is 1.

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
            return Ok(report_unusable(&lists, context));
        }
        context.talk.note(introduction(client));
        let screen = &context.stdout;
        to_stdout(|out| if self.long { lists.details(screen, out) } else { lists.tables(screen, out) })?;
        let Lists { tools, resources, templates, prompts, .. } = &lists;
        let none = tools.is_none() && resources.is_none() && templates.is_none() && prompts.is_none();
        if none && lists.refused.is_empty() {
            context.talk.note("it declares neither tools nor resources nor prompts");
            context.talk.hint("`--tools` asks for its tools all the same");
        }
        for what in lists.empty() {
            context.talk.note(format_args!("it has no {what}"));
        }
        Ok(report_unusable(&lists, context))
    }

    async fn fetch(&self, client: &Client) -> Result<Lists, ClientError> {
        let everything = !(self.tools || self.resources || self.templates || self.prompts);
        if everything {
            return fetch_everything(client).await;
        }
        let mut lists = Lists::default();
        if self.tools {
            lists.tools = lists.sorted(client.listing().await?);
        }
        if self.resources {
            lists.resources = lists.sorted(client.listing().await?);
        }
        if self.templates {
            lists.templates = lists.sorted(client.listing().await?);
        }
        if self.prompts {
            lists.prompts = lists.sorted(client.listing().await?);
        }
        Ok(lists)
    }
}

/// Says what is listed and cannot be used, each with its place.
pub(super) fn report_unusable(lists: &Lists, context: &Context) -> Exit {
    lists.unusable.iter().for_each(|unusable| context.talk.error(unusable));
    lists.refused.iter().for_each(|refused| context.talk.error(refused));
    if lists.unusable.is_empty() && lists.refused.is_empty() { Exit::Ok } else { Exit::ChecksFailed }
}

/// All lists that a server declares.
pub(super) async fn fetch_everything(client: &Client) -> Result<Lists, ClientError> {
    let declared = |capability: &str| client.server_capabilities().get(capability).is_some_and(|it| !it.is_null());
    let mut lists = Lists::default();
    if declared("tools") {
        lists.tools = answered(&mut lists, client.listing().await)?;
    }
    if declared("resources") {
        lists.resources = answered(&mut lists, client.listing().await)?;
        match client.listing().await {
            // Templates have no capability of their own, so a server with resources need not know them.
            Err(error) if is_unknown_method(&error) => {}
            listing => lists.templates = answered(&mut lists, listing)?.filter(|list| !list.is_empty()),
        }
    }
    if declared("prompts") {
        lists.prompts = answered(&mut lists, client.listing().await)?;
    }
    Ok(lists)
}

/// What can be used of a list; one that the server refuses is put aside, and does not hide the others.
fn answered<T>(lists: &mut Lists, listing: Result<Listing<T>, ClientError>) -> Result<Option<Vec<T>>, ClientError> {
    match listing {
        Ok(listing) => Ok(lists.sorted(listing)),
        Err(error @ (ClientError::ErrorReply { .. } | ClientError::BadResult { .. })) => {
            lists.refused.push(error);
            Ok(None)
        }
        Err(error) => Err(error),
    }
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
