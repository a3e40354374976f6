//! What a server of 2025-11-25 says of a task after it has given its handle.

use rehearsal::replay::{Options, Replay};
use serde_json::{Value, json};

use crate::replayed_ends::HANDSHAKE;
use crate::transcript::{META, Peer, replay, session};

/// Progress after the handle, during a look, after it, during another call, and while the client waits for the result.
const RECORDED: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"dig","task":{},"_meta":{"progressToken":"P"}}}
< {"id":1,"result":{"task":{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":null}}}
< {"method":"notifications/progress","params":{"progressToken":"P","progress":1}}
> {"id":2,"method":"tasks/get","params":{"taskId":"t"}}
< {"method":"notifications/progress","params":{"progressToken":"P","progress":2}}
< {"id":2,"result":{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":null}}
< {"method":"notifications/message","params":{"level":"info","data":"deep"}}
> {"id":3,"method":"tools/call","params":{"name":"rest","_meta":{"progressToken":"R"}}}
< {"method":"notifications/progress","params":{"progressToken":"R","progress":7}}
< {"method":"notifications/progress","params":{"progressToken":"P","progress":3}}
< {"id":3,"result":{"content":[]}}
> {"id":4,"method":"tasks/result","params":{"taskId":"t"}}
< {"method":"notifications/progress","params":{"progressToken":"P","progress":4}}
< {"id":4,"result":{"content":[{"type":"text","text":"gold"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}
"#;

fn recorded() -> Replay {
    replay(&[session("a", &[HANDSHAKE, RECORDED].concat())], Options::default())
}

async fn hears(replay: &Replay, transcript: &str) {
    Peer::of(replay).play(&[HANDSHAKE, transcript].concat()).await;
    assert_eq!(replay.ledger().unwrap().unused_recordings, []);
}

#[tokio::test]
async fn progress_of_a_task_has_the_token_of_its_call() {
    hears(&recorded(), &RECORDED.replace(r#""P""#, "17").replace(r#""R""#, r#""P""#)).await;
}

#[tokio::test]
async fn whoever_gave_no_token_hears_no_progress() {
    let silent = |line: &&str| !line.contains(r#""progressToken":"P","progress""#);
    let transcript: String = RECORDED.lines().filter(silent).map(|line| format!("{line}\n")).collect();
    hears(&recorded(), &transcript.replace(r#","_meta":{"progressToken":"P"}"#, "")).await;
}

#[tokio::test]
async fn what_was_said_at_a_look_is_said_once_however_often_it_is_looked() {
    let look = r#"
    > {"id":2,"method":"tasks/get","params":{"taskId":"t"}}
    < {"id":2,"result":{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":null}}
    "#;
    let rest = RECORDED.find(r#"> {"id":3"#).unwrap();
    hears(&recorded(), &[&RECORDED[..rest], look, look, &RECORDED[rest..]].concat()).await;
}

#[tokio::test]
async fn whoever_does_not_look_hears_it_before_the_result() {
    let transcript = r#"
    > {"id":1,"method":"tools/call","params":{"name":"dig","task":{},"_meta":{"progressToken":"P"}}}
    < {"id":1,"result":{"task":{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":null}}}
    < {"method":"notifications/progress","params":{"progressToken":"P","progress":1}}
    > {"id":4,"method":"tasks/result","params":{"taskId":"t"}}
    < {"method":"notifications/progress","params":{"progressToken":"P","progress":2}}
    < {"method":"notifications/message","params":{"level":"info","data":"deep"}}
    < {"method":"notifications/progress","params":{"progressToken":"P","progress":4}}
    < {"id":4,"result":{"content":[{"type":"text","text":"gold"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}
    "#;
    Peer::of(&recorded()).play(&[HANDSHAKE, transcript].concat()).await;
}

#[tokio::test]
async fn whoever_knows_no_tasks_since_2026_hears_it_under_the_token_of_each_round() {
    let status = |status: &str| {
        let told = r#"< {"method":"notifications/tasks/status","params":{"taskId":"t","status":"STATUS","createdAt":"x","lastUpdatedAt":"x","ttl":null}}"#;
        told.replace("STATUS", status) + "\n"
    };
    let question = r#"
    < {"id":9,"method":"elicitation/create","params":{"message":"Deeper?","requestedSchema":{"type":"object","properties":{}},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}
    > {"id":9,"result":{"action":"accept","content":{}}}
    "#;
    let told = |progress: u8| {
        format!(r#"< {{"method":"notifications/progress","params":{{"progressToken":"P","progress":{progress}"#)
    };
    let [handle, waits] = [told(1), told(4)];
    // Whoever comes back after the question is where it was, though it is known by then how the task has ended.
    let recorded = RECORDED
        .replace(&handle, &[status("working"), status("working"), status("input_required"), handle.clone()].concat());
    let recorded = recorded.replace(&waits, &[question, &*status("completed"), &waits].concat());
    let replay = replay(&[session("a", &[HANDSHAKE, &recorded].concat())], Options::default());
    let mut peer = Peer::of(&replay);
    let mut params: Value = serde_json::from_str(&format!(r#"{{"name":"dig",{META}}}"#)).unwrap();
    let mut heard = Vec::new();
    for token in [17, 18] {
        params["_meta"]["progressToken"] = token.into();
        peer.say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})).await;
        loop {
            let message: Value = serde_json::from_slice(peer.hear().await.raw()).unwrap();
            if message.get("method").is_none() {
                params["requestState"] = message["result"]["requestState"].clone();
                params["inputResponses"] = json!({"question-1": {"action": "accept", "content": {}}});
                heard.push(message["result"]["resultType"].to_string());
                break;
            }
            heard.push(format!("{} {}", message["params"]["progressToken"], message["params"]["progress"]));
        }
    }
    assert_eq!(heard, ["17 1", "17 2", "\"input_required\"", "18 4", "\"complete\""]);
}

#[tokio::test]
async fn whoever_knows_no_tasks_hears_all_of_it_before_the_answer() {
    let transcript = r#"
    > {"id":1,"method":"tools/call","params":{"name":"dig","_meta":{"progressToken":5}}}
    < {"method":"notifications/progress","params":{"progressToken":5,"progress":1}}
    < {"method":"notifications/progress","params":{"progressToken":5,"progress":2}}
    < {"method":"notifications/message","params":{"level":"info","data":"deep"}}
    < {"method":"notifications/progress","params":{"progressToken":5,"progress":4}}
    < {"id":1,"result":{"content":[{"type":"text","text":"gold"}]}}
    "#;
    Peer::of(&recorded()).play(&[HANDSHAKE, transcript, transcript].concat()).await;
}
