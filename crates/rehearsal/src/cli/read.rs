//! `rehearse read`

use clap::Args;
use rehearsal::Client;
use rehearsal::client::ServerResponse;
use rehearsal::core::protocol::content::ResourceContents;
use rehearsal::core::protocol::{Content, Resource, ResourceTemplate};
use rehearsal::core::suggest::closest;
use serde_json::Value;

use super::answer_exit::exit_for;
use super::context::Context;
use super::exit::{Exit, Failure};
use super::output::to_stdout;
use super::save::SaveArgs;
use super::server::{ServerArgs, ShownAs};
use crate::print::{raw_json, resource};

/// Read a resource and print its contents
#[derive(Args, Debug)]
#[command(after_help = format!("{AFTER_HELP}\n\n{}", Exit::help()))]
pub(super) struct ReadArgs {
    /// The URI of the resource
    uri: String,

    #[command(flatten)]
    pub(super) server: ServerArgs,

    #[command(flatten)]
    pub(super) save: SaveArgs,
}

const AFTER_HELP: &str = "\
Text is printed unchanged. For bytes, the type and size are printed; --save writes the bytes to a file.
With --json the result, or the error, is printed exactly as the server sent it.

Examples:
  rehearse read demo://resource/dynamic/text/1 -- npx -y @modelcontextprotocol/server-everything
  rehearse read tiny://pixel --save images -- tiny-server";

impl ReadArgs {
    /// Reads the resource and prints it.
    pub(super) async fn run(&self, client: &Client, context: &Context) -> Result<Exit, Failure> {
        let answer = client.read_resource(&self.uri).await?;
        let contents = contents(&answer);
        to_stdout(|out| match self.server.shown_as() {
            ShownAs::Json => raw_json(&answer, out),
            ShownAs::Text => resource(&contents, &context.stdout, out),
        })?;
        let exit = exit_for(&answer, &context.stderr);
        if answer.error().is_some() {
            self.suggest(client, context).await;
        }
        let saved = self.save.save(&contents, "resource", self.server.shown_as(), &context.stderr)?;
        Ok(exit.and(saved))
    }

    /// Suggests a listed resource. Servers may have unlisted resources, so this is done after the error.
    async fn suggest(&self, client: &Client, context: &Context) {
        let resources = client.listing::<Resource>().await.map(|listing| listing.items).unwrap_or_default();
        if resources.iter().any(|resource| resource.uri == self.uri) {
            return;
        }
        let templates = client.listing::<ResourceTemplate>().await.map(|listing| listing.items).unwrap_or_default();
        let by_name = resources.iter().find(|resource| resource.name.as_ref() == Some(&self.uri));
        let uris = resources.iter().map(|resource| resource.uri.as_str());
        let known = uris.chain(templates.iter().map(|template| template.uri_template.as_str()));
        match by_name.map(|resource| resource.uri.as_str()).or_else(|| closest(&self.uri, known)) {
            Some(close) => context.stderr.hint(format_args!("did you mean `{close}`?")),
            None => context.stderr.hint("`rehearse list --resources --templates` lists the resources"),
        }
    }
}

/// The contents of a resource, also those that are invalid.
fn contents(answer: &ServerResponse) -> Vec<Content> {
    let contents = answer.result().get("contents").and_then(Value::as_array);
    let read = |one: &Value| ResourceContents::read(one).map_or_else(|| Content::Other(one.clone()), Content::Resource);
    contents.into_iter().flatten().map(read).collect()
}
