//! `rehearse list`

use clap::Args;
use rehearsal::Client;
use rehearsal::client::{ClientError, Listing};
use rehearsal::core::protocol::code;
use serde_json::Value;

use super::context::Context;
use super::exit::{Exit, Failure};
use super::output::to_stdout;
use super::server::{ServerArgs, ShownAs};
use crate::print::{PrintedLists, sanitize_line};

/// One of several servers that are listed.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListedServer<'a> {
    /// Its name in the configuration.
    pub(super) name: &'a str,
    /// True if no server is listed before it.
    pub(super) is_first: bool,
}

/// Show what a server offers: its tools, resources, resource templates and prompts
#[derive(Args, Debug)]
#[command(after_help = format!("{AFTER_HELP}\n\n{}", Exit::help()))]
pub(super) struct ListArgs {
    /// List tools
    #[arg(long, help_heading = LISTS)]
    tools: bool,

    /// List resources
    #[arg(long, help_heading = LISTS)]
    resources: bool,

    /// List resource templates
    #[arg(long, help_heading = LISTS)]
    templates: bool,

    /// List prompts
    #[arg(long, help_heading = LISTS)]
    prompts: bool,

    /// Show whole descriptions, the fields of all schemas, their defaults and limits, and annotations
    #[arg(short, long, help_heading = LISTS)]
    long: bool,

    #[command(flatten)]
    pub(super) server: ServerArgs,
}

const LISTS: &str = "Lists";

const AFTER_HELP: &str = "\
By default, all lists are printed whose capability the server declares. An argument in brackets is
optional. The lists go to stdout, the name and version of the server to stderr. An item that no client
can use, such as a tool without a name, is reported with its path, and the exit status is 1.

With --config and without --server, every server of the file is listed below its name. A server
that fails is reported; the others are still listed.

Examples:
  rehearse list -- npx -y @modelcontextprotocol/server-everything
  rehearse list --tools --long --url http://127.0.0.1:3000/mcp
  rehearse list --config .mcp.json
  rehearse list --json -- ./my-server | jq '.tools[].name'";

impl ListArgs {
    /// Requests the lists and prints them, below a heading if this is one of several servers.
    pub(super) async fn run(
        &self,
        server: Option<ListedServer<'_>>,
        client: &Client,
        context: &Context,
    ) -> Result<Exit, Failure> {
        let lists = self.fetch(client).await?;
        if self.server.shown_as() == ShownAs::Json {
            to_stdout(|out| lists.json(server.map(|server| server.name), out))?;
            return Ok(report_unusable(&lists, context));
        }
        let prefix = server.map(|server| format!("{}: ", server.name)).unwrap_or_default();
        context.stderr.note(format_args!("{prefix}{}", introduction(client)));
        if let Some(ListedServer { name, is_first }) = server {
            let (heading, gap) = (context.stdout.palette.heading, if is_first { "" } else { "\n" });
            to_stdout(|out| writeln!(out, "{gap}{heading}server{heading:#} {}", sanitize_line(name)))?;
        }
        let terminal = &context.stdout;
        to_stdout(|out| if self.long { lists.details(terminal, out) } else { lists.tables(terminal, out) })?;
        let PrintedLists { tools, resources, templates, prompts, .. } = &lists;
        let none = tools.is_none() && resources.is_none() && templates.is_none() && prompts.is_none();
        if none && lists.refused.is_empty() {
            context.stderr.note(format_args!("{prefix}it declares neither tools nor resources nor prompts"));
            context.stderr.hint("`--tools` lists its tools anyway");
        }
        for what in lists.empty() {
            context.stderr.note(format_args!("{prefix}it has no {what}"));
        }
        Ok(report_unusable(&lists, context))
    }

    async fn fetch(&self, client: &Client) -> Result<PrintedLists, ClientError> {
        let everything = !(self.tools || self.resources || self.templates || self.prompts);
        if everything {
            return fetch_everything(client).await;
        }
        let mut lists = PrintedLists::default();
        if self.tools {
            lists.tools = lists.usable(client.listing().await?);
        }
        if self.resources {
            lists.resources = lists.usable(client.listing().await?);
        }
        if self.templates {
            lists.templates = lists.usable(client.listing().await?);
        }
        if self.prompts {
            lists.prompts = lists.usable(client.listing().await?);
        }
        Ok(lists)
    }
}

/// Reports listed items that cannot be used, each with its path, and lists that the server refused.
pub(super) fn report_unusable(lists: &PrintedLists, context: &Context) -> Exit {
    lists.unusable.iter().for_each(|unusable| context.stderr.error(unusable));
    lists.refused.iter().for_each(|refused| context.stderr.error(refused));
    if lists.unusable.is_empty() && lists.refused.is_empty() { Exit::Ok } else { Exit::ChecksFailed }
}

/// All lists that a server declares.
pub(super) async fn fetch_everything(client: &Client) -> Result<PrintedLists, ClientError> {
    let declared =
        |capability: &str| client.server_capabilities().get(capability).is_some_and(|value| !value.is_null());
    let mut lists = PrintedLists::default();
    if declared("tools") {
        lists.tools = answered(&mut lists, client.listing().await)?;
    }
    if declared("resources") {
        lists.resources = answered(&mut lists, client.listing().await)?;
        match client.listing().await {
            // Templates have no capability of their own: a server with resources need not support them.
            Err(error) if is_unknown_method(&error) => {}
            listing => lists.templates = answered(&mut lists, listing)?.filter(|list| !list.is_empty()),
        }
    }
    if declared("prompts") {
        lists.prompts = answered(&mut lists, client.listing().await)?;
    }
    Ok(lists)
}

/// Returns the usable items of a list. A list that the server refuses is stored as refused, so that the others are
/// still printed.
fn answered<T>(
    lists: &mut PrintedLists,
    listing: Result<Listing<T>, ClientError>,
) -> Result<Option<Vec<T>>, ClientError> {
    match listing {
        Ok(listing) => Ok(lists.usable(listing)),
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
