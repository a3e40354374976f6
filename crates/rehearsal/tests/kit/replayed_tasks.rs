//! What a task asked its client in one era, asked in the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rehearsal::client::Answers;
use rehearsal::core::message::Method;
use rehearsal::replay::Options;
use serde_json::json;

use crate::replays::client;
use crate::transcript::{Peer, replay, session};

const HANDSHAKE: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"s","version":"1"}}}
> {"method":"notifications/initialized"}
"#;

/// A task that wants to know something, of 2025-11-25.
const IN_2025: &str = r#"
HANDSHAKE
> {"id":1,"method":"tools/call","params":{"name":"dig","task":{}}}
< {"id":1,"result":{"task":{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":null}}}
> {"id":2,"method":"tasks/get","params":{"taskId":"t"}}
< {"id":2,"result":{"taskId":"t","status":"input_required","createdAt":"x","lastUpdatedAt":"x","ttl":null}}
> {"id":3,"method":"tasks/result","params":{"taskId":"t"}}
< {"id":"q","method":"elicitation/create","params":{"message":"Where?","requestedSchema":{"type":"object","properties":{}},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}
> {"id":"q","result":{"action":"accept","content":{}}}
< {"id":3,"result":{"content":[{"type":"text","text":"gold"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}
"#;

/// The client looks again when it has the result, and asks for the result again.
const LATER: &str = r#"
> {"id":4,"method":"tasks/get","params":{"taskId":"t"}}
< {"id":4,"result":{"taskId":"t","status":"completed","createdAt":"x","lastUpdatedAt":"x","ttl":null}}
> {"id":5,"method":"tasks/result","params":{"taskId":"t"}}
< {"id":5,"result":{"content":[{"type":"text","text":"gold"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}
"#;

/// The same of 2026-07-28.
const IN_2026: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"dig",TASKS}}
< {"id":1,"result":{"resultType":"task","taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttlMs":null}}
> {"id":2,"method":"tasks/get","params":{"taskId":"t",TASKS}}
< {"id":2,"result":{"resultType":"complete","taskId":"t","status":"input_required","createdAt":"x","lastUpdatedAt":"x","ttlMs":null,
    "inputRequests":{"where":{"method":"elicitation/create","params":{"message":"Where?","requestedSchema":{"type":"object","properties":{}}}}}}}
> {"id":3,"method":"tasks/update","params":{"taskId":"t","inputResponses":{"where":{"action":"accept","content":{}}},TASKS}}
< {"id":3,"result":{"resultType":"complete"}}
> {"id":4,"method":"tasks/get","params":{"taskId":"t",TASKS}}
< {"id":4,"result":{"resultType":"complete","taskId":"t","status":"completed","createdAt":"x","lastUpdatedAt":"x","ttlMs":null,"result":{"content":[{"type":"text","text":"gold"}]}}}
"#;

const TASKS: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

async fn hears(recorded: &str, transcript: &str) {
    let whole = |text: &str| text.replace("HANDSHAKE", HANDSHAKE).replace("TASKS", TASKS).replace("INFO", INFO);
    let replay = replay(&[session("a", &whole(recorded))], Options::default());
    Peer::of(&replay).play(&whole(transcript)).await;
    assert_eq!(replay.ledger().unwrap().unused, 0);
}

const INFO: &str = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}"#;

#[tokio::test]
async fn a_client_of_2026_is_asked_by_the_task() {
    let transcript = r#"
    > {"id":1,"method":"tools/call","params":{"name":"dig",TASKS}}
    < {"id":1,"result":{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttlMs":null,"resultType":"task",INFO}}
    > {"id":2,"method":"tasks/get","params":{"taskId":"t",TASKS}}
    < {"id":2,"result":{"taskId":"t","status":"input_required","createdAt":"x","lastUpdatedAt":"x","ttlMs":null,
        "inputRequests":{"question-1":{"method":"elicitation/create","params":{"message":"Where?","requestedSchema":{"type":"object","properties":{}}}}},"resultType":"complete",INFO}}
    > {"id":3,"method":"tasks/update","params":{"taskId":"t","inputResponses":{"question-1":{"action":"decline"}},TASKS}}
    < {"id":3,"result":{"resultType":"complete",INFO}}
    > {"id":4,"method":"tasks/get","params":{"taskId":"t",TASKS}}
    < {"id":4,"result":{"taskId":"t","status":"completed","createdAt":"x","lastUpdatedAt":"x","ttlMs":null,"result":{"content":[{"type":"text","text":"gold"}],"resultType":"complete",INFO},"resultType":"complete",INFO}}
    "#;
    hears(IN_2025, transcript).await;
    hears(&[IN_2025, LATER].concat(), transcript).await;
}

#[tokio::test]
async fn a_client_of_2025_is_asked_while_it_waits_for_the_result() {
    let transcript = r#"
    HANDSHAKE
    > {"id":1,"method":"tools/call","params":{"name":"dig","task":{}}}
    < {"id":1,"result":{"task":{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":null}}}
    > {"id":2,"method":"tasks/get","params":{"taskId":"t"}}
    < {"id":2,"result":{"taskId":"t","status":"input_required","createdAt":"x","lastUpdatedAt":"x","ttl":null}}
    > {"id":3,"method":"tasks/result","params":{"taskId":"t"}}
    < {"id":1,"method":"elicitation/create","params":{"message":"Where?","requestedSchema":{"type":"object","properties":{}},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}
    > {"id":1,"result":{"action":"decline"}}
    < {"id":3,"result":{"content":[{"type":"text","text":"gold"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}
    "#;
    // The server of the recording has said nothing about itself.
    let unnamed = HANDSHAKE.replace(r#""name":"s","version":"1"}}}"#, r#""name":"recorded","version":"0"}}}"#);
    let unnamed = unnamed.replace(r#","tasks":{"requests":{"tools":{"call":{}}}}"#, "");
    hears(IN_2026, &transcript.replace("HANDSHAKE", &unnamed)).await;
    let late = transcript.replace(
        r#"> {"id":3,"method":"tasks/result""#,
        r#"> {"id":9,"method":"tasks/get","params":{"taskId":"t"}}
        < {"id":9,"result":{"taskId":"t","status":"completed","createdAt":"x","lastUpdatedAt":"x","ttl":null}}
        > {"id":3,"method":"tasks/result""#,
    );
    let asked = late.find(r#"< {"id":1,"method":"elicitation"#).unwrap();
    let told = late.find(r#"< {"id":3,"result""#).unwrap();
    let late = format!("{}{}", &late[..asked], &late[told..]);
    hears(IN_2026, &late.replace("HANDSHAKE", &unnamed)).await;
}

#[tokio::test]
async fn a_client_without_tasks_is_asked_before_it_is_answered() {
    let transcript = r#"
    HANDSHAKE
    > {"id":1,"method":"tools/call","params":{"name":"dig"}}
    < {"id":1,"method":"elicitation/create","params":{"message":"Where?","requestedSchema":{"type":"object","properties":{}}}}
    > {"id":1,"result":{"action":"decline"}}
    < {"id":1,"result":{"content":[{"type":"text","text":"gold"}]}}
    "#;
    let unnamed = HANDSHAKE.replace(r#""name":"s","version":"1"}}}"#, r#""name":"recorded","version":"0"}}}"#);
    let unnamed = unnamed.replace(r#","tasks":{"requests":{"tools":{"call":{}}}}"#, "");
    hears(IN_2026, &transcript.replace("HANDSHAKE", &unnamed)).await;
    hears(IN_2025, transcript).await;
    hears(&[IN_2025, LATER].concat(), transcript).await;
}

#[tokio::test]
async fn what_a_task_asked_again_because_nobody_answered_is_asked_once() {
    let (before, asked) = IN_2025.split_at(IN_2025.find(r#"> {"id":3"#).unwrap());
    let question = asked.lines().nth(1).unwrap();
    let given_up = format!(
        "{before}{}\n{question}\n{}\n{}",
        r#"> {"id":8,"method":"tasks/result","params":{"taskId":"t"}}"#,
        r#"> {"method":"notifications/cancelled","params":{"requestId":8}}"#,
        asked.replace(r#""id":"q""#, r#""id":"r""#)
    );
    let transcript = r#"
    HANDSHAKE
    > {"id":1,"method":"tools/call","params":{"name":"dig"}}
    < {"id":1,"method":"elicitation/create","params":{"message":"Where?","requestedSchema":{"type":"object","properties":{}}}}
    > {"id":1,"result":{"action":"decline"}}
    < {"id":1,"result":{"content":[{"type":"text","text":"gold"}]}}
    "#;
    hears(&given_up, transcript).await;
}

#[tokio::test]
async fn a_client_of_2026_without_tasks_is_sent_away_until_it_knows() {
    for recorded in [IN_2025, &[IN_2025, LATER].concat(), IN_2026] {
        let recorded = recorded.replace("HANDSHAKE", HANDSHAKE).replace("TASKS", TASKS);
        let replay = replay(&[session("a", &recorded)], Options::default());
        let asked = Arc::new(AtomicUsize::new(0));
        let (count, answers) = (Arc::clone(&asked), Answers::new());
        let answers = answers.on(Method::ELICITATION, move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(json!({"action": "accept", "content": {}}))
        });
        let client = client(&replay).answering(|_| answers).modern().connect().await.unwrap();
        let result = client.call_tool("dig", json!({})).await.unwrap().into_result().unwrap();
        assert_eq!(result["content"][0]["text"], "gold");
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert_eq!(replay.ledger().unwrap().unused, 0);
    }
}

#[tokio::test]
async fn what_came_of_a_task_is_a_whole_result_for_a_client_of_2026_without_tasks() {
    let transcript = r#"
    > {"id":1,"method":"tools/call","params":{"name":"dig","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
    < {"id":1,"result":{"content":[{"type":"text","text":"gold"}],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"recorded","version":"0"}}}}
    "#;
    hears(IN_2026, transcript).await;
}

/// What `tasks/get` of 2026-07-28 says of a task that waits for these.
fn waiting(id: u32, names: &[&str]) -> String {
    let question = r#"{"method":"elicitation/create","params":{"message":"Where?","requestedSchema":{"type":"object","properties":{}}}}"#;
    let questions: Vec<String> = names.iter().map(|name| format!(r#""{name}":{question}"#)).collect();
    let questions = questions.join(",");
    format!(
        r#"
    > {{"id":{id},"method":"tasks/get","params":{{"taskId":"t",TASKS}}}}
    < {{"id":{id},"result":{{"resultType":"complete","taskId":"t","status":"input_required","createdAt":"x","lastUpdatedAt":"x","ttlMs":null,"inputRequests":{{{questions}}}}}}}
    "#
    )
}

/// The client's answers to these.
fn updated(id: u32, names: &[&str]) -> String {
    let answers: Vec<String> = names.iter().map(|name| format!(r#""{name}":{{"action":"decline"}}"#)).collect();
    let answers = answers.join(",");
    format!(
        r#"
    > {{"id":{id},"method":"tasks/update","params":{{"taskId":"t","inputResponses":{{{answers}}},TASKS}}}}
    < {{"id":{id},"result":{{"resultType":"complete"}}}}
    "#
    )
}

const BEGUN: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"dig",TASKS}}
< {"id":1,"result":{"resultType":"task","taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttlMs":null}}
"#;

const ENDED: &str = r#"
> {"id":9,"method":"tasks/get","params":{"taskId":"t",TASKS}}
< {"id":9,"result":{"resultType":"complete","taskId":"t","status":"completed","createdAt":"x","lastUpdatedAt":"x","ttlMs":null,"result":{"content":[]}}}
"#;

#[tokio::test]
async fn a_task_waits_for_its_client_however_often_it_is_looked_at() {
    let recorded = [BEGUN, &waiting(2, &["where"]), &updated(3, &["where"]), ENDED].concat();
    let looks: String = (2..6).map(|id| waiting(id, &["where"])).collect();
    hears(&recorded, &[BEGUN, &looks, &updated(6, &["where"]), ENDED].concat()).await;
}

#[tokio::test]
async fn a_task_wants_what_is_left_of_its_questions() {
    let recorded = [BEGUN, &waiting(2, &["a", "b"]), &updated(3, &["a", "b"]), ENDED].concat();
    let rest =
        waiting(4, &["b"]).replace(r#""resultType":"complete","taskId""#, r#""resultType":"complete",INFO,"taskId""#);
    let rest = rest.replace("INFO", &INFO.replace(r#""s","version":"1""#, r#""recorded","version":"0""#));
    let transcript = [BEGUN, &waiting(2, &["a", "b"]), &updated(3, &["a"]), &rest, &updated(5, &["b"]), ENDED];
    hears(&recorded, &transcript.concat()).await;
}

#[tokio::test]
async fn a_task_whose_client_is_quicker_than_the_recorded_one_asks_it_once() {
    let looks = [waiting(2, &["where"]), waiting(3, &["where"]), waiting(4, &["where"])].concat();
    let recorded = [BEGUN, &looks, &updated(5, &["where"]), ENDED].concat();
    hears(&recorded, &[BEGUN, &waiting(2, &["where"]), &updated(3, &["where"]), ENDED].concat()).await;
}

#[tokio::test]
async fn a_task_that_was_not_content_asks_for_the_same_again() {
    let [first, second] = [2, 4].map(|id| [waiting(id, &["where"]), updated(id + 1, &["where"])].concat());
    let recorded = [BEGUN, &first, &second, ENDED].concat();
    hears(&recorded, &[BEGUN, &first, &waiting(6, &["where"]), &second, ENDED].concat()).await;
}

#[tokio::test]
async fn a_task_that_went_on_without_its_client_goes_on() {
    let recorded = [BEGUN, &waiting(2, &["where"]), ENDED].concat();
    hears(&recorded, &recorded).await;
    let cancelled = r#"
    > {"id":3,"method":"tasks/cancel","params":{"taskId":"t",TASKS}}
    < {"id":3,"result":{"resultType":"complete"}}
    "#;
    let ended = ENDED.replace("completed", "cancelled").replace(r#","result":{"content":[]}}}"#, "}}");
    let late = updated(4, &["where"]);
    let recorded = [BEGUN, &waiting(2, &["where"]), cancelled, &late, &ended].concat();
    hears(&recorded, &[BEGUN, &waiting(2, &["where"]), cancelled, &ended, &late].concat()).await;
}
