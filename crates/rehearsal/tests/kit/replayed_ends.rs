//! Tasks that have ended: no client sees them go back.

use rehearsal::replay::Options;

use crate::transcript::{Peer, replay, session};

pub(crate) const HANDSHAKE: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"s","version":"1"}}}
> {"method":"notifications/initialized"}
"#;

const BEGUN: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"dig","task":{}}}
< {"id":1,"result":{"task":{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":null}}}
"#;

const RESULT: &str = r#"
> {"id":2,"method":"tasks/result","params":{"taskId":"t"}}
< {"id":2,"result":{"content":[{"type":"text","text":"gold"}]}}
"#;

/// A look at the task, in the shape of 2025-11-25.
fn looks(id: u32, status: &str) -> String {
    format!(
        r#"
> {{"id":{id},"method":"tasks/get","params":{{"taskId":"t"}}}}
< {{"id":{id},"result":{{"taskId":"t","status":"{status}","createdAt":"x","lastUpdatedAt":"x","ttl":null}}}}
"#
    )
}

async fn hears(recorded: &[&str], transcript: &[&str]) {
    let sessions: Vec<String> = recorded.iter().enumerate().map(|(at, it)| session(&format!("s{at}"), it)).collect();
    let replay = replay(&sessions, Options::default());
    Peer::of(&replay).play(&transcript.concat()).await;
    assert_eq!(replay.ledger().unwrap().unmatched, 0);
}

#[tokio::test]
async fn a_task_whose_result_was_given_has_ended() {
    let recorded = [HANDSHAKE, BEGUN, &looks(3, "working"), &looks(4, "working"), RESULT, &looks(5, "completed")];
    let again = looks(7, "completed");
    let early = [HANDSHAKE, BEGUN, RESULT, &looks(6, "completed"), &again];
    hears(&[&recorded.concat()], &early).await;
    let late = [HANDSHAKE, BEGUN, &looks(3, "working"), RESULT, &looks(6, "completed"), &again];
    hears(&[&recorded.concat()], &late).await;
    hears(&[&recorded.concat()], &recorded).await;
}

#[tokio::test]
async fn a_task_has_ended_even_where_nobody_looked_at_its_end() {
    let recorded = [HANDSHAKE, BEGUN, &looks(3, "working"), RESULT].concat();
    let (first, second) = (looks(4, "completed"), looks(5, "completed"));
    hears(&[&recorded], &[HANDSHAKE, BEGUN, &looks(3, "working"), RESULT, &first, &second]).await;
    hears(&[&recorded], &[HANDSHAKE, BEGUN, RESULT, &first, &second]).await;
    let failed = RESULT.replace(r#""text":"gold"}]"#, r#""text":"gold"}],"isError":true"#);
    let recorded = recorded.replace(RESULT, &failed);
    hears(&[&recorded], &[HANDSHAKE, BEGUN, &failed, &looks(4, "failed"), &looks(5, "failed")]).await;
}

#[tokio::test]
async fn a_task_that_was_cancelled_stays_cancelled() {
    let cancelled = looks(3, "cancelled").replace("tasks/get", "tasks/cancel");
    let recorded = [HANDSHAKE, BEGUN, &looks(4, "working"), &looks(5, "working"), &cancelled].concat();
    let looked = [looks(6, "cancelled"), looks(7, "cancelled")].concat();
    hears(&[&recorded], &[HANDSHAKE, BEGUN, &cancelled, &looked]).await;
    hears(&[&recorded], &[HANDSHAKE, BEGUN, &looks(4, "working"), &cancelled, &looked]).await;
}

#[tokio::test]
async fn a_task_that_was_told_to_have_ended_has() {
    let status = |status: &str| {
        format!(
            r#"< {{"method":"notifications/tasks/status","params":{{"taskId":"t","status":"{status}","createdAt":"x","lastUpdatedAt":"x","ttl":null}}}}"#
        )
    };
    let other = |id: u32, told: &str| {
        format!(
            r#"
> {{"id":{id},"method":"resources/read","params":{{"uri":"a:b"}}}}
{told}
< {{"id":{id},"result":{{"contents":[]}}}}
"#
        )
    };
    let (ends, works) = (other(3, &status("completed")), other(8, &status("working")));
    let recorded =
        [HANDSHAKE, BEGUN, &looks(4, "working"), &works, &looks(5, "working"), &ends, &looks(6, "completed")];
    hears(&[&recorded.concat()], &recorded).await;
    // Whoever makes other calls first hears nothing that it knows better.
    let recorded = [HANDSHAKE, BEGUN, &looks(4, "working"), &ends, &works, &looks(6, "completed")];
    let heard = [HANDSHAKE, BEGUN, &ends, &looks(4, "completed"), &other(8, ""), &looks(6, "completed")];
    hears(&[&recorded.concat()], &heard).await;
}

#[tokio::test]
async fn another_task_of_the_same_name_begins_anew() {
    let recorded = [HANDSHAKE, BEGUN, &looks(3, "working"), &looks(4, "completed")].concat();
    let ended = [looks(5, "completed"), looks(6, "completed")].concat();
    let once = [BEGUN, &looks(3, "working"), &looks(4, "completed"), &ended].concat();
    hears(&[&recorded, &recorded], &[HANDSHAKE, &once, &once]).await;
}
