//! "Error Handling Tests" of the specification, and the other ways in which a call can be wrong.

use instruction_server::InstructionClient;
use rehearsal::testing::{assert_error_code, assert_failure, assert_success};
use serde_json::json;

use crate::fixture::in_every_setting;

in_every_setting! {
    /// `test_invalid_tool_name`; where the specification guesses -32601, servers on `rmcp` return -32602, as MCP does.
    async fn a_tool_that_does_not_exist_cannot_be_called(client) {
        let response = client.call_tool("nonexistent_tool", json!({"arg": "value"})).await.unwrap();

        assert!(!response.success());
        assert_error_code(&response, -32602);
    }

    /// `test_invalid_arguments`
    async fn a_call_without_its_required_argument_fails_with_its_name(client) {
        let response = client.call_tool("route_instructions", json!({"invalid_param": 123})).await.unwrap();

        assert!(!response.success());
        let message = response.error_message().unwrap();
        assert!(response.is_tool_error() && response.error_code().is_none());
        assert!(message.contains("'invalid_param' was unexpected"), "{message}");
        assert!(message.contains("\"message\" is a required property"), "{message}");
    }

    async fn an_invalid_argument_fails_with_the_reason(client) {
        for (tool, arguments, why) in [
            ("route_instructions", json!({"message": 5}), r#"`message`: 5 is not of type "string""#),
            ("route_instructions", json!({"message": "x", "context": "y"}), "`context`: "),
            ("route_instructions", json!({"message": "x", "limit": 0}), "`limit`: 0 is less than the minimum of 1"),
            ("search_instructions", json!({"query": ""}), "`query`: "),
            ("search_instructions", json!({"query": "x", "limit": "5"}), r#"`limit`: "5" is not of type "integer""#),
            ("get_instructions", json!({"exact_match": "yes"}), "`exact_match`: "),
            ("switch_engine", json!({}), r#""engine_version" is a required property"#),
        ] {
            let response = client.call_tool(tool, arguments).await.unwrap();
            assert_failure(&response);
            let message = response.error_message().unwrap();
            assert!(message.contains(why), "{tool}: {message}");
        }
    }

    async fn an_unknown_engine_fails_with_the_known_ones_and_changes_nothing(client) {
        let response = client.switch_engine("durain-0.5").await.unwrap();
        assert_failure(&response);
        let message = "unknown engine version \"durain-0.5\"; there are durian-0.5 and durian-0.6; did you mean durian-0.5?";
        assert_eq!(response.error_message().as_deref(), Some(message));

        let next = client.route_instructions("/pongogo-retro").await.unwrap();
        assert_success(&next);
        assert_eq!(next.structured_content().unwrap()["engine_version"], "durian-0.6");
    }
}
