//! Uses everything that a server offers.

use rehearsal::Client;
use rehearsal::client::ClientError;
use rehearsal::core::schema::example;
use serde_json::{Value, json};

use crate::scenario::Scenario;

/// The suite's tool that returns the schema that a client sends.
const SCHEMA_ECHO: &str = "json_schema_echo";

/// Lists everything, calls every tool, gets every prompt and reads every resource.
///
/// A server may refuse some of it; the suite judges the reaction of the client.
pub(crate) async fn use_all(client: &Client, scenario: &Scenario) -> Result<(), ClientError> {
    let tools = client.list_tools().await?;
    let calls = scenario.tool_calls();
    if calls.is_empty() {
        for tool in &tools {
            let mut arguments = example(&tool.input_schema).unwrap_or_else(|| json!({}));
            // The tool that inspects a schema gets the unchanged schema of the first tool.
            if tool.name == SCHEMA_ECHO {
                arguments = json!({"schema": tools[0].input_schema});
            }
            report(&tool.name, client.call_tool(&tool.name, arguments).await.map(drop));
        }
    }
    for (tool, arguments) in calls {
        report(&tool, client.call_tool(&tool, arguments).await.map(drop));
    }
    let offers = |what: &str| client.server_capabilities().get(what).is_some_and(Value::is_object);
    if offers("prompts") {
        for prompt in client.list_prompts().await? {
            report(&prompt.name, client.get_prompt(&prompt.name, json!({})).await.map(drop));
        }
    }
    if offers("resources") {
        for resource in client.list_resources().await? {
            report(&resource.uri, client.read_resource(&resource.uri).await.map(drop));
        }
    }
    Ok(())
}

fn report(what: &str, done: Result<(), ClientError>) {
    if let Err(error) = done {
        eprintln!("{what}: {error}");
    }
}
