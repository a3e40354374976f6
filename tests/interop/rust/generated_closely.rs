//! Servers made from recordings, looked at closely: order of questions, exact numbers, older clients, subscribers.

use std::sync::mpsc;

use rehearsal::Client;
use rehearsal::client::{Asked, Listen};
use rehearsal::core::message::Method;
use serde_json::{Value, json};

use crate::generated::{Trace, built};
use crate::generated_exactly::{Called, called, journal, printed, stateless};
use crate::installed::TIMEOUT;

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// A server of 2026-07-28 that asks three things at once, in an order that is not that of their names, and then the first again
/// under the same name.
fn asking() -> Vec<Called> {
    let questions = json!({
        "z": {"method": "elicitation/create", "params": {"mode": "form", "message": "Who?",
            "requestedSchema": {"type": "object", "properties": {}}}},
        "a": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}},
        "m": {"method": "roots/list", "params": {}},
    });
    let asked = json!({"resultType": "input_required", "inputRequests": questions, "requestState": "s"});
    let call = json!({"name": "ask", "arguments": {}});
    let mut back = call.clone();
    back["requestState"] = json!("s");
    back["inputResponses"] = json!({"z": {"action": "accept"}, "a": {}, "m": {"roots": []}});
    let again = json!({"resultType": "input_required", "inputRequests": {"z": questions["z"]}, "requestState": "t"});
    let mut back_again = call.clone();
    back_again["requestState"] = json!("t");
    back_again["inputResponses"] = json!({"z": {"action": "accept"}});
    vec![("tools/call", call, asked), ("tools/call", back, again), ("tools/call", back_again, text("went on"))]
}

/// Tools that say more than versions before 2026-07-28 take, and numbers that are nearly the same.
fn wide() -> Vec<Called> {
    let tool = |name: &str, kind: &str| json!({"name": name, "inputSchema": {"type": "object"}, "outputSchema": {"type": kind}});
    let tools = json!({"tools": [tool("list", "array"), tool("ask", "object")]});
    let call = |name: &str, number: Value| json!({"name": name, "arguments": {"n": number}});
    let structured = json!({"content": [{"type": "text", "text": "[1]"}], "structuredContent": [1]});
    vec![
        ("tools/list", json!({}), tools),
        ("tools/call", call("list", json!(1)), structured),
        ("tools/call", call("number", json!(1e16)), text("the float")),
        ("tools/call", call("number", json!(9_007_199_254_740_993_u64)), text("the integer")),
    ]
}

fn client(server: &[String], protocol: &str) -> rehearsal::client::ClientBuilder {
    Client::command(&server[0]).arguments(&server[1..]).timeout(TIMEOUT).protocol(protocol.parse().unwrap())
}

/// What a client is asked before its call is answered.
async fn asked(server: &[String], protocol: &str) -> Vec<&'static str> {
    let (sender, asked) = mpsc::channel();
    let answer = |name: &'static str, answer: Value| {
        let sender = sender.clone();
        move |_: &Asked| {
            sender.send(name).unwrap();
            Ok(answer.clone())
        }
    };
    let sampled = json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "none"});
    let client = client(server, protocol).answering(|answers| {
        let answers =
            answers.on(Method::ELICITATION, answer("elicitation", json!({"action": "accept", "content": {}})));
        let answers = answers.on(Method::SAMPLING, answer("sampling", sampled));
        answers.on(Method::ROOTS_LIST, answer("roots", json!({"roots": []})))
    });
    let client = client.capabilities(json!({"elicitation": {}, "sampling": {}, "roots": {}})).connect().await.unwrap();
    assert_eq!(client.call_tool("ask", json!({})).await.unwrap().content(), "went on");
    client.close().await;
    asked.try_iter().collect()
}

#[tokio::test]
async fn questions_numbers_and_schemas_are_exactly_those_that_were_recorded() {
    let trace = Trace::new();
    stateless(&trace, &[wide(), asking()].concat());
    for kind in ["mock", "python", "rust"] {
        let server = trace.generate(kind);
        for protocol in ["2026-07-28", "2025-11-25"] {
            let context = format!("{kind}, {protocol}");
            let expected = ["elicitation", "sampling", "roots", "elicitation"];
            assert_eq!(asked(&server, protocol).await, expected, "{context}");
            let client = client(&server, protocol).connect().await.unwrap();
            // An integer and a float are the same where they are, and not where they are nearly.
            for (number, expected) in [
                (json!(10_000_000_000_000_000_u64), Some("the float")),
                (json!(10_000_000_000_000_001_u64), None),
                (json!(9_007_199_254_740_993_u64), Some("the integer")),
                (json!(9_007_199_254_740_992.0), None),
            ] {
                let answer = client.call_tool("number", json!({"n": number})).await.unwrap();
                match expected {
                    Some(expected) => assert_eq!(answer.content(), expected, "{context}"),
                    None => assert_eq!(answer.error().map(|it| it.code), Some(-32602), "{context}: {number}"),
                }
            }
            // Before 2026-07-28 structured content is an object.
            let is_old = protocol == "2025-11-25";
            let listed = client.request("tools/list", json!({})).await.unwrap();
            let tools = &listed.result()["tools"];
            assert_eq!(tools[0].get("outputSchema").is_none(), is_old, "{context}: {tools}");
            assert_eq!(tools[1]["outputSchema"], json!({"type": "object"}), "{context}");
            let answer = client.call_tool("list", json!({"n": 1})).await.unwrap();
            assert_eq!(answer.structured_content().is_none(), is_old, "{context}");
            client.close().await;
        }
    }
}

#[tokio::test]
async fn subscribers_hear_of_changes_that_were_told_before_an_answer() {
    let trace = Trace::new();
    let about = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"}});
    let capabilities = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
    let discovered = json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities,
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
    let mut answer = text("touched");
    answer["resultType"] = json!("complete");
    let mut messages = called(&[
        ("server/discover", json!({"_meta": about}), discovered),
        ("tools/call", json!({"name": "touch", "arguments": {}, "_meta": about}), answer),
    ]);
    for (method, params) in
        [("notifications/tools/list_changed", json!({})), ("notifications/resources/updated", json!({"uri": "a://b"}))]
    {
        let at = messages.len() - 1;
        messages.insert(at, ("server", json!({"type": "notification", "method": method, "params": params})));
    }
    journal(&trace, messages);
    for kind in ["python", "rust"] {
        let server = trace.generate(kind);
        let client = client(&server, "2026-07-28").connect().await.unwrap();
        let listen = Listen { tools: true, uris: vec!["a://b".to_owned()], ..Listen::default() };
        let subscription = client.listen(listen).await.unwrap();
        // At once: the SDK may have acknowledged the subscription before the program knows of it.
        assert_eq!(client.call_tool("touch", json!({})).await.unwrap().content(), "touched", "{kind}");
        client.notification("notifications/tools/list_changed").await.unwrap_or_else(|error| panic!("{kind}: {error}"));
        let updated = client.notification("notifications/resources/updated").await.unwrap();
        assert_eq!(updated.params().unwrap().field("uri").unwrap().text().as_deref(), Some("a://b"), "{kind}");
        drop(subscription);
        client.close().await;
    }
}

#[test]
fn a_person_changes_what_a_generated_project_answers() {
    let trace = Trace::new();
    stateless(&trace, &wide());
    trace.generate("rust");
    let matching = trace.path("generated.rust/src/matching.rs");
    let source = std::fs::read_to_string(&matching).unwrap();
    // The example in the comment, as it is.
    let example: String = source
        .lines()
        .filter_map(|line| line.strip_prefix("    /// "))
        .skip_while(|line| *line != "```text")
        .skip(1)
        .take_while(|line| *line != "```")
        .map(|line| format!("        {line}\n"))
        .collect();
    assert!(example.contains("return Some(Response"), "{example}");
    let beginning = "-> Option<Response> {\n";
    let changed = source.replacen(beginning, &format!("{beginning}{example}"), 1);
    std::fs::write(&matching, changed).unwrap();
    let server = [built(&trace.path("generated.rust")).to_str().unwrap().to_owned()];
    let line = "for tool in now none list; do $REHEARSE request tools/call --params \"{\\\"name\\\":\\\"$tool\\\"}\" -- \"$@\"; done 2>&1";
    let said = printed(&trace, line, &server);
    assert!(said.contains("SystemTime"), "{said}");
    assert!(said.contains("Unknown tool: none"), "{said}");
    assert!(said.contains("Nothing was recorded for these arguments of list"), "{said}");
}
