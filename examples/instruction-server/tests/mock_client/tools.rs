//! The "Convenience Methods" of the specification: every argument of every tool, and its default.

use instruction_server::InstructionClient;
use rehearsal::client::ServerResponse;
use rehearsal::testing::{assert_contains, assert_success};
use serde_json::{Value, json};

use crate::fixture::in_every_setting;

/// The names of the instructions in an answer, in their order.
fn names(response: &ServerResponse) -> Vec<String> {
    assert_success(response);
    let instructions = response.structured_content().unwrap()["instructions"].as_array().unwrap();
    instructions.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

in_every_setting! {
    async fn routing_returns_five_instructions_by_default(client) {
        let message = "test, review, commit, release and plan the task, and log the incident";
        let defaults = client.call_tool("route_instructions", json!({"message": message})).await.unwrap();
        assert_eq!(names(&defaults).len(), 5);
        assert_eq!(names(&client.route_instructions(message).await.unwrap()), names(&defaults));
        assert_eq!(names(&client.route_instructions(message).limit(2).await.unwrap()), names(&defaults)[..2]);
    }

    async fn the_context_of_a_conversation_counts(client) {
        let context = json!({"previous_messages": ["the pull request needs a review"]});
        let response = client.route_instructions("what now?").context(context).limit(1).await.unwrap();
        assert_eq!(names(&response), ["code-review"]);
        let without = client.route_instructions("what now?").await.unwrap();
        assert_eq!(names(&without), [""; 0]);
        assert_contains(&without, "No instruction has to do with that.");
    }

    async fn instructions_are_got_by_topic_and_category(client) {
        let by_topic = client.get_instructions().topic("retro").await.unwrap();
        assert_eq!(names(&by_topic), ["retrospective"]);
        assert_contains(&by_topic, "## What went well");
        let exactly = client.get_instructions().topic("retro").exact_match().await.unwrap();
        assert_eq!(names(&exactly), [""; 0]);
        let by_category = client.get_instructions().category("process").exact_match().await.unwrap();
        assert_eq!(names(&by_category), ["learning-loop", "planning", "retrospective"]);
        let by_both = client.get_instructions().topic("learning").category("process").await.unwrap();
        assert_eq!(names(&by_both), ["learning-loop"]);
        let all = client.call_tool("get_instructions", json!({})).await.unwrap();
        assert_eq!(names(&all).len(), 10);
    }

    async fn a_search_returns_the_best_passages(client) {
        let response = client.search_instructions("blameless timeline").await.unwrap();
        assert_eq!(names(&response)[0], "incidents");
        assert_contains(&response, "write the timeline and hold a blameless retrospective");
        let one = client.search_instructions("retrospective").limit(1).await.unwrap();
        assert_eq!(names(&one), ["retrospective"]);
    }

    async fn another_engine_ranks_differently_until_it_is_switched_back(client) {
        let before = client.route_instructions("/pongogo-retro").await.unwrap();
        assert_eq!(names(&before)[0], "retrospective");

        let switched = client.switch_engine("durian-0.5").await.unwrap();
        assert_success(&switched);
        assert_eq!(switched.content(), "switched from durian-0.6 to durian-0.5");
        let without_commands = client.route_instructions("/pongogo-retro").await.unwrap();
        assert_eq!(names(&without_commands), [""; 0]);
        let text_alone = client.search_instructions("journal").await.unwrap();
        assert_eq!(names(&text_alone), [""; 0], "the word is only a tag");

        assert_success(&client.switch_engine("durian-0.6").await.unwrap());
        assert_eq!(names(&client.route_instructions("/pongogo-retro").await.unwrap()), names(&before));
        assert_eq!(names(&client.search_instructions("journal").await.unwrap()), ["work-log"]);
    }

    async fn structured_content_matches_the_output_schema(client) {
        let tools = client.list_tools().await.unwrap();
        for (tool, arguments) in [
            ("route_instructions", json!({"message": "/pongogo-retro and more about testing"})),
            ("get_instructions", json!({"topic": "nothing of the kind"})),
            ("search_instructions", json!({"query": "retrospective"})),
            ("switch_engine", json!({"engine_version": "durian-0.6"})),
        ] {
            let response = client.call_tool(tool, arguments).await.unwrap();
            assert_success(&response);
            let schema = tools.iter().find(|one| one.name == tool).unwrap().output_schema.clone().unwrap();
            let structured: &Value = response.structured_content().unwrap();
            jsonschema::validate(&schema, structured).unwrap_or_else(|error| panic!("{tool}: {error}: {structured}"));
        }
    }
}
