//! A client on Rehearsal's library that the official MCP conformance suite can drive.
//!
//! The suite starts `conformance-client URL` for every scenario, with what the scenario needs in the environment, and watches
//! from the server's side. So this does with every server what any client would: connect, look at everything that is
//! offered, and use all of it.

mod login;
mod scenario;
mod use_all;

use std::process::ExitCode;

use rehearsal::Client;
use rehearsal::client::{ClientError, ClientHandlers};
use serde_json::json;

use crate::scenario::Scenario;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: conformance-client URL");
        return ExitCode::from(2);
    };
    match run(&url, &Scenario::read()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(url: &str, scenario: &Scenario) -> Result<(), ClientError> {
    let answers = ClientHandlers::new()
        .elicitation_defaults()
        .sampling_text("an answer of no model")
        .roots([("file:///tmp", "tmp")]);
    let builder = Client::url(url)
        .protocol(scenario.protocol())
        .client_info("conformance-client", env!("CARGO_PKG_VERSION"))
        .capabilities(json!({"elicitation": {"form": {"applyDefaults": true}}, "sampling": {}, "roots": {}}))
        .handlers(answers)
        .oauth(login::oauth(scenario));
    let client = builder.connect().await?;
    let done = use_all::use_all(&client, scenario).await;
    client.close().await;
    done
}
