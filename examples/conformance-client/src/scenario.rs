//! What the suite says about a scenario, in the environment.

use rehearsal::client::Protocol;
use serde_json::Value;

/// What the suite says about a scenario.
pub(crate) struct Scenario {
    pub(crate) name: String,
    context: Value,
    version: Option<String>,
}

impl Scenario {
    pub(crate) fn read() -> Scenario {
        let variable = |name: &str| std::env::var(name).ok();
        let context = variable("MCP_CONFORMANCE_CONTEXT").and_then(|text| serde_json::from_str(&text).ok());
        Scenario {
            name: variable("MCP_CONFORMANCE_SCENARIO").unwrap_or_default(),
            context: context.unwrap_or_default(),
            version: variable("MCP_CONFORMANCE_PROTOCOL_VERSION"),
        }
    }

    /// Which era the suite plays; versions of it before 0.2 know only handshakes, and do not say.
    pub(crate) fn protocol(&self) -> Protocol {
        self.version.as_deref().unwrap_or("legacy").parse().unwrap_or_default()
    }

    /// Something that the client could not know otherwise, such as a secret.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.context.get(key)?.as_str()
    }

    /// The calls to make, where the suite says which: names and arguments.
    pub(crate) fn tool_calls(&self) -> Vec<(String, Value)> {
        let calls = self.context.get("toolCalls").and_then(Value::as_array);
        let call = |call: &Value| Some((call.get("name")?.as_str()?.to_owned(), call.get("arguments")?.clone()));
        calls.into_iter().flatten().filter_map(call).collect()
    }
}
