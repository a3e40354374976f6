//! The scenario, from the environment variables that the suite sets.

use rehearsal::client::Protocol;
use serde_json::Value;

/// A scenario of the suite.
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

    /// The era of the scenario; versions of the suite before 0.2 have only handshakes and no variable for it.
    pub(crate) fn protocol(&self) -> Protocol {
        self.version.as_deref().unwrap_or("legacy").parse().unwrap_or_default()
    }

    /// A value of the context, such as a secret.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.context.get(key)?.as_str()
    }

    /// The tool calls that the suite requests, with names and arguments; empty if it requests none.
    pub(crate) fn tool_calls(&self) -> Vec<(String, Value)> {
        let calls = self.context.get("toolCalls").and_then(Value::as_array);
        let call = |call: &Value| Some((call.get("name")?.as_str()?.to_owned(), call.get("arguments")?.clone()));
        calls.into_iter().flatten().filter_map(call).collect()
    }
}
