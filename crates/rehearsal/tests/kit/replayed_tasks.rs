//! Tasks, which are replayed to clients of the era in which they were recorded.

use rehearsal::core::protocol::Revision;
use rehearsal::replay::{Replay, ReplayOptions};
use serde_json::json;

use crate::replays::client;
use crate::transcript::{Peer, replay, session};

const HANDSHAKE: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"s","version":"1"}}}
> {"method":"notifications/initialized"}
"#;

/// A task that requests something of its client, in 2025-11-25.
const IN_2025: &str = r#"
HANDSHAKE
> {"id":1,"method":"tools/call","params":{"name":"dig","task":{}}}
< {"id":1,"result":{"task":{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":null}}}
> {"id":2,"method":"tasks/get","params":{"taskId":"t"}}
< {"id":2,"result":{"taskId":"t","status":"input_required","createdAt":"x","lastUpdatedAt":"x","ttl":null}}
> {"id":3,"method":"tasks/result","params":{"taskId":"t"}}
< {"id":1,"method":"elicitation/create","params":{"message":"Where?","requestedSchema":{"type":"object","properties":{}},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}
> {"id":1,"result":{"action":"accept","content":{}}}
< {"id":3,"result":{"content":[{"type":"text","text":"gold"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}
"#;

/// A task that requests something of its client, in 2026-07-28.
const IN_2026: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"dig",META}}
< {"id":1,"result":{"resultType":"task","taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttlMs":null}}
> {"id":2,"method":"tasks/get","params":{"taskId":"t",META}}
< {"id":2,"result":{"resultType":"complete","taskId":"t","status":"input_required","createdAt":"x","lastUpdatedAt":"x","ttlMs":null,
    "inputRequests":{"where":{"method":"elicitation/create","params":{"message":"Where?","requestedSchema":{"type":"object","properties":{}}}}}}}
> {"id":3,"method":"tasks/update","params":{"taskId":"t","inputResponses":{"where":{"action":"accept","content":{}}},META}}
< {"id":3,"result":{"resultType":"complete"}}
> {"id":4,"method":"tasks/get","params":{"taskId":"t",META}}
< {"id":4,"result":{"resultType":"complete","taskId":"t","status":"completed","createdAt":"x","lastUpdatedAt":"x","ttlMs":null,"result":{"content":[{"type":"text","text":"gold"}]}}}
"#;

fn whole(transcript: &str) -> String {
    transcript.replace("HANDSHAKE", HANDSHAKE)
}

fn recorded(transcript: &str) -> Replay {
    replay(&[session("a", &whole(transcript))], ReplayOptions::default())
}

#[tokio::test]
async fn a_client_of_the_recorded_era_gets_the_task_as_recorded() {
    for transcript in [IN_2025, IN_2026] {
        let replay = recorded(transcript);
        for _ in 0..2 {
            Peer::new(&replay).play(&whole(transcript)).await;
        }
        assert!(replay.ledger().unwrap().is_complete());
    }
}

#[tokio::test]
async fn a_client_that_cannot_have_the_task_is_refused() {
    for (transcript, call) in [(IN_2025, 2), (IN_2026, 1)] {
        let replay = recorded(transcript);
        for builder in [client(&replay).modern(), client(&replay).legacy(Revision::V2025_11_25)] {
            let client = builder.connect().await.unwrap();
            let refused = client.call_tool("dig", json!({})).await.unwrap();
            let expected =
                format!("tools/call dig was recorded as a task, which this client cannot have: session a, call {call}");
            assert_eq!(refused.error().unwrap().message, expected);
        }
        assert_eq!(replay.ledger().unwrap().unmatched, 2);
    }
}
