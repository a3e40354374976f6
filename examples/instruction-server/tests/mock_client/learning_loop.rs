//! "E2E Scenario Tests" of the specification.

use instruction_server::{InstructionClient, LEARNING_LOOP_MATCHER};
use rehearsal::testing::assert_success;

use crate::fixture::in_every_setting;

in_every_setting! {
    /// `test_implicit_learning_loop_trigger`
    async fn being_done_with_a_task_suggests_the_learning_loop(client) {
        let finished = client.route_instructions("I just finished implementing the new feature").await.unwrap();
        assert_success(&finished);

        let response = client.route_instructions("I'm done with this task").await.unwrap();

        LEARNING_LOOP_MATCHER.assert_matches(&response);
    }

    /// `test_explicit_retro_command`
    async fn the_command_for_a_retrospective_produces_one(client) {
        let response = client.route_instructions("/pongogo-retro").await.unwrap();

        assert!(response.success());
        let content = response.content().to_lowercase();
        assert!(content.contains("what went well"), "{content}");
        assert!(content.contains("what could improve"), "{content}");
    }
}
