//! "Basic Tool Invocation" of the specification.

use instruction_server::InstructionClient;
use rehearsal::testing::{assert_contains, assert_success, assert_tool_exists};

use crate::fixture::in_every_setting;

in_every_setting! {
    /// `test_route_instructions_basic`
    async fn a_message_is_routed_to_its_instruction(client) {
        let response = client.route_instructions("how do I conduct a retrospective?").await.unwrap();

        assert_success(&response);
        assert!(response.content().to_lowercase().contains("retrospective"));
        assert_contains(&response, "1. Retrospective (retrospective, process;");
    }

    /// `test_list_tools`
    async fn the_tools_are_discovered(client) {
        let tools = client.list_tools().await.unwrap();

        for expected in ["route_instructions", "get_instructions", "search_instructions", "switch_engine"] {
            assert_tool_exists(&tools, expected);
        }
        assert_eq!(tools.len(), 4);
    }
}
