//! "MCP Protocol Essentials" of the specification: what passes between the two, and how it is read.

use std::time::Duration;

use instruction_server::InstructionClient;
use rehearsal::client::ClientError;
use serde_json::json;

use crate::fixture::in_every_setting;

in_every_setting! {
    /// The request and the success response of the specification, member by member.
    async fn the_example_request_gets_the_example_response(client) {
        let arguments = json!({"message": "how do I conduct a retrospective?", "limit": 5});
        let params = json!({"name": "route_instructions", "arguments": arguments});
        let response = client.request("tools/call", params).await.unwrap();

        let raw = response.raw();
        assert_eq!(raw["jsonrpc"], "2.0");
        assert!(raw["id"].is_number());
        assert_eq!(raw["result"]["content"][0]["type"], "text");
        assert_eq!(response.content(), raw["result"]["content"][0]["text"].as_str().unwrap());
    }

    /// `MCPResponse`: `success`, `content`, `error_code`, `error_message` and `raw`.
    async fn a_response_is_read_into_its_parts(client) {
        let good = client.route_instructions("/pongogo-log").await.unwrap();
        assert!(good.success() && good.content().contains("Work log"));
        assert!(good.error_code().is_none() && good.error_message().is_none());

        let bad = client.call_tool("nonexistent_tool", json!({})).await.unwrap();
        assert!(!bad.success() && bad.content().is_empty());
        assert_eq!(bad.error_code(), Some(-32602));
        assert_eq!(bad.error_message().as_deref(), bad.raw()["error"]["message"].as_str());
    }

    async fn the_server_returns_its_name_and_capabilities(client) {
        assert_eq!(client.server_info()["name"], "instruction-server");
        assert!(client.server_capabilities()["tools"].is_object());
        assert!(client.instructions().unwrap().contains("route_instructions"));
    }

    async fn a_call_can_have_its_own_timeout(client) {
        let hurried = client.route_instructions("anything").call().timeout(Duration::ZERO).await;
        assert!(matches!(hurried, Err(ClientError::TimedOut { .. })), "{hurried:?}");
        assert!(client.route_instructions("anything").await.is_ok());
    }

    /// Where the specification raises `RuntimeError("MCP server process not running")`.
    async fn a_closed_client_fails_at_once(client) {
        client.close().await;
        let late = client.list_tools().await;
        assert!(late.is_err(), "{late:?}");
    }

    async fn concurrent_calls_get_their_own_answers(client) {
        let mut calls = Vec::new();
        for (command, title) in [("retro", "1. Retrospective"), ("log", "1. Work log"), ("plan", "1. Planning")].repeat(8) {
            let call = client.route_instructions(format!("/pongogo-{command}")).limit(1).call();
            calls.push((call.start().await.unwrap(), title));
        }
        for (call, title) in calls {
            assert!(call.await.unwrap().content().starts_with(title));
        }
    }
}
