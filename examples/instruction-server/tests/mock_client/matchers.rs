//! "Response Matchers" and "Assertion Helpers" of the specification.

use instruction_server::{CHECKLIST_MATCHER, InstructionClient, LEARNING_LOOP_MATCHER, WORK_LOG_MATCHER};
use rehearsal::testing::{ContentMatcher, ContentPattern, assert_contains, assert_success};
use serde_json::json;

use crate::fixture::in_every_setting;

in_every_setting! {
    async fn the_predefined_matchers_distinguish_their_situations(client) {
        let log = client.route_instructions("add an entry to the work log").limit(1).await.unwrap();
        let checklist = client.route_instructions("what is on the checklist?").limit(1).await.unwrap();
        WORK_LOG_MATCHER.assert_matches(&log);
        CHECKLIST_MATCHER.assert_matches(&checklist);
        assert!(!CHECKLIST_MATCHER.matches(&log) && !WORK_LOG_MATCHER.matches(&checklist));
        assert!(!LEARNING_LOOP_MATCHER.matches(&log) && !LEARNING_LOOP_MATCHER.matches(&checklist));
    }

    async fn texts_and_expressions_are_matched_with_and_without_case(client) {
        let response = client.route_instructions("/pongogo-retro").await.unwrap();
        let both = ContentMatcher::patterns(["WHAT WENT WELL".into(), ContentPattern::Regex(r"^1\. retro".into())]);
        both.assert_matches(&response);
        assert!(!both.case_sensitive().matches(&response));
    }

    async fn a_failure_matches_nothing(client) {
        let response = client.call_tool("route_instructions", json!({})).await.unwrap();
        assert!(!ContentMatcher::text("message").matches(&response));
    }

    /// `assert_routing_success` and `assert_contains_instruction`
    async fn an_answer_is_asserted_to_contain_an_instruction(client) {
        let response = client.get_instructions().category("documentation").await.unwrap();
        assert_success(&response);
        assert_contains(&response, "work-log");
    }
}
