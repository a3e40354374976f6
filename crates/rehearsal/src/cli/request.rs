//! `rehearse request`

use clap::Args;
use rehearsal::Client;
use rehearsal::core::message::Method;
use rehearsal::core::protocol::code;
use rehearsal::core::suggest::closest;
use rehearsal_core::json::RawJson;
use serde_json::Value;

use super::answer_exit::exit_for;
use super::context::Context;
use super::exit::{Exit, Failure};
use super::flag_values::{JsonSource, parsed, raw_input};
use super::output::to_stdout;
use super::server::{ServerArgs, ShownAs};
use crate::print::{pretty_json, raw_json};

/// Send any request and print its result as JSON
#[derive(Args, Debug)]
#[command(after_help = format!("{AFTER_HELP}\n\n{}", Exit::help()))]
pub(super) struct RequestArgs {
    /// The method, such as completion/complete
    method: String,

    /// The params as JSON, as @FILE, or as - for stdin; sent unchecked
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    params: Option<String>,

    #[command(flatten)]
    pub(super) server: ServerArgs,
}

const AFTER_HELP: &str = "\
The request comes after the handshake, and in 2026-07-28 its params get the `_meta` that every
request needs there, unless they have one. The result is printed with its members on lines of
their own; with --json the result, or the error, is printed exactly as the server wrote it.

Examples:
  rehearse request ping --protocol legacy -- ./my-server
  rehearse request tools/list --params '{\"cursor\": \"wrong\"}' -- ./my-server
  rehearse request acme/anything --params @params.json --url http://127.0.0.1:3000/mcp";

impl RequestArgs {
    /// Parses `--params`.
    pub(super) fn params(&self) -> Result<Value, Failure> {
        let Some(params) = &self.params else { return Ok(Value::Null) };
        let raw = raw_input("--params", params)?;
        let exact = RawJson::parse(raw.get().as_bytes()).and_then(|raw| raw.value());
        exact.or_else(|_| parsed(JsonSource::Flag("--params"), raw.get()))
    }

    /// Sends the request and prints the result.
    pub(super) async fn run(&self, params: Value, client: &Client, context: &Context) -> Result<Exit, Failure> {
        let answer = client.request(self.method.as_str(), params).await?;
        to_stdout(|out| match self.server.shown_as() {
            ShownAs::Json => raw_json(&answer, out),
            // `exit_for` prints the error on stderr.
            ShownAs::Text if answer.error().is_some() => Ok(()),
            ShownAs::Text => pretty_json(&answer, &context.stdout, out),
        })?;
        let exit = exit_for(&answer, &context.stderr);
        if answer.error_code() == Some(code::METHOD_NOT_FOUND) {
            self.suggest(context);
        }
        Ok(exit)
    }

    /// Suggests a known method. Servers may have methods of their own, so this is done after the error.
    fn suggest(&self, context: &Context) {
        let requests = Method::KNOWN.iter().copied().filter(|name| !name.starts_with("notifications/"));
        if let Some(close) = closest(&self.method, requests).filter(|close| *close != self.method) {
            context.stderr.hint(format_args!("did you mean `{close}`?"));
        }
    }
}
