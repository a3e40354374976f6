//! Everything that a server offers, used.

use rehearsal::Client;
use rehearsal::client::ClientError;
use rehearsal::core::schema::example;
use serde_json::{Value, json};

use crate::scenario::Scenario;

/// The suite's tool that shows what a client made of a schema.
const SCHEMA_ECHO: &str = "json_schema_echo";

/// Lists everything, calls every tool, gets every prompt and reads every resource.
///
/// A server may refuse some of that; how a client takes it is for the suite to judge.
pub(crate) async fn use_all(client: &Client, scenario: &Scenario) -> Result<(), ClientError> {
    let tools = client.list_tools().await?;
    let calls = scenario.tool_calls();
    if calls.is_empty() {
        for tool in &tools {
            let mut arguments = example(&tool.input_schema).unwrap_or_else(|| json!({}));
            // A tool that wants a schema to look at gets one as it came: that of the first tool.
            if tool.name == SCHEMA_ECHO {
                arguments = json!({"schema": tools[0].input_schema});
            }
            told(&tool.name, client.call_tool(&tool.name, arguments).await.map(drop));
        }
    }
    for (tool, arguments) in calls {
        told(&tool, client.call_tool(&tool, arguments).await.map(drop));
    }
    let offers = |what: &str| client.server_capabilities().get(what).is_some_and(Value::is_object);
    if offers("prompts") {
        for prompt in client.list_prompts().await? {
            told(&prompt.name, client.get_prompt(&prompt.name, json!({})).await.map(drop));
        }
    }
    if offers("resources") {
        for resource in client.list_resources().await? {
            told(&resource.uri, client.read_resource(&resource.uri).await.map(drop));
        }
    }
    Ok(())
}

fn told(what: &str, done: Result<(), ClientError>) {
    if let Err(error) = done {
        eprintln!("{what}: {error}");
    }
}
