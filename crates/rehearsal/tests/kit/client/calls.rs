//! Requests and their responses, timeouts, cancellation, notifications and lists.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rehearsal::client::{ClientError, ListenFilter};
use rehearsal::core::message::GarbledReason;
use serde_json::json;

use super::peer::{META, legacy, meanwhile, modern};

#[tokio::test]
async fn responses_out_of_order_reach_their_callers() {
    let (client, mut peer) = legacy().await;
    let calls: Vec<_> = (0..3)
        .map(|number| {
            let client = client.clone();
            meanwhile(async move { client.call_tool("echo", json!({"n": number})).await.unwrap().content() })
        })
        .collect();
    for _ in 0..3 {
        peer.receive().await;
    }
    for id in [4, 2, 3] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{id}"}}]}}}}"#);
        peer.send(&text).await;
    }
    let mut contents = Vec::new();
    for call in calls {
        contents.push(call.await.unwrap());
    }
    assert_eq!(contents, ["2", "3", "4"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_is_cancelled_and_its_late_response_ignored() {
    let (client, mut peer) = legacy().await;
    let calling = client.clone();
    let call = meanwhile(async move { calling.call("slow").timeout(Duration::from_millis(500)).await });
    peer.play(r#"> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{}}}"#).await;
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "no answer to tools/call within 0.5 s");
    peer.play(
        r#"
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        "#,
    )
    .await;
    let pinging = client.clone();
    let ping = meanwhile(async move { pinging.ping().await });
    peer.play("> {\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}\n< {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}")
        .await;
    assert!(ping.await.unwrap().unwrap().success());
    assert!(client.evidence().strays.is_empty());
}

#[tokio::test]
async fn a_call_can_be_cancelled_with_a_reason() {
    let (client, mut peer) = legacy().await;
    let call = client.call("slow").start().await.unwrap();
    peer.receive().await;
    call.cancel("changed my mind").await;
    let params = r#"{"requestId":2,"reason":"changed my mind"}"#;
    let line = format!("> {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{params}}}");
    peer.play(&line).await;
}

#[tokio::test]
async fn a_dropped_call_is_cancelled() {
    let (client, mut peer) = legacy().await;
    let call = client.call("slow").start().await.unwrap();
    peer.receive().await;
    drop(call);
    peer.play(r#"> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#).await;
}

#[tokio::test]
async fn progress_and_logs_reach_their_call() {
    let (client, mut peer) = legacy().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (progress, log, calling) = (seen.clone(), seen.clone(), client.clone());
    let call = meanwhile(async move {
        let call = calling.call("slow").on_progress(move |update| progress.lock().unwrap().push(format!("{update:?}")));
        call.on_log(move |message| log.lock().unwrap().push(format!("{message:?}"))).await.unwrap()
    });
    peer.play(
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{},"_meta":{"progressToken":2}}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1,"total":2}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":9,"progress":1}}
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"half way"}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        "#,
    )
    .await;
    let response = call.await.unwrap();
    assert_eq!((response.progress().len(), response.logs().len()), (1, 1));
    let expected = [
        "ProgressUpdate { progress: 1.0, total: Some(2.0), message: None }",
        "LogMessage { level: \"info\", logger: None, data: String(\"half way\") }",
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
    assert_eq!(client.take_notifications().len(), 1, "the progress with an unknown token");
}

#[tokio::test]
async fn a_response_with_both_result_and_error_fails_at_once() {
    let (client, mut peer) = legacy().await;
    let call = meanwhile(async move { client.call_tool("echo", json!({})).await });
    peer.receive().await;
    peer.send(r#"{"jsonrpc":"2.0","id":2,"result":{},"error":{"code":1,"message":"m"}}"#).await;
    let error = call.await.unwrap().unwrap_err();
    assert!(matches!(error, ClientError::Garbled { reason: GarbledReason::ResultAndError, .. }), "{error}");
    let expected = "the answer to tools/call is not a response: both `result` and `error`\n  {\"jsonrpc\"";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[tokio::test]
async fn every_pending_call_fails_when_the_server_closes() {
    let (client, mut peer) = legacy().await;
    let calling = client.clone();
    let call = meanwhile(async move { calling.call_tool("echo", json!({})).await });
    peer.receive().await;
    peer.leave().await;
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the server closed the connection before it answered tools/call");
    let error = client.ping().await.unwrap_err();
    assert_eq!(error.to_string(), "the server closed the connection before it answered ping");
}

#[tokio::test]
async fn all_pages_of_a_list_are_read() {
    let (client, mut peer) = legacy().await;
    let listing = meanwhile(async move { client.list_tools().await });
    peer.play(
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}
        < {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a"}],"nextCursor":"x"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":"x"}}
        < {"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"b"}],"nextCursor":null}}
        "#,
    )
    .await;
    let names: Vec<String> = listing.await.unwrap().unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["a", "b"]);
}

#[tokio::test]
async fn a_list_that_never_ends_is_an_error() {
    let (client, mut peer) = legacy().await;
    let listing = meanwhile(async move { client.list_tools().await });
    for id in [2, 3] {
        peer.receive().await;
        peer.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[],"nextCursor":"x"}}}}"#)).await;
    }
    let error = listing.await.unwrap().unwrap_err().to_string();
    assert_eq!(
        error,
        "the result of tools/list is not usable: the cursor \"x\" came twice, so the list would never end"
    );
}

#[tokio::test]
async fn a_batch_of_responses_is_split() {
    let (client, mut peer) = legacy().await;
    let (one, other) = (client.clone(), client.clone());
    let one = meanwhile(async move { one.ping().await.unwrap().success() });
    peer.receive().await;
    let other = meanwhile(async move { other.ping().await.unwrap().success() });
    peer.receive().await;
    peer.send(r#"[{"jsonrpc":"2.0","id":3,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]"#).await;
    assert!(one.await.unwrap() && other.await.unwrap());
}

#[tokio::test]
async fn a_client_can_send_arbitrary_bytes() {
    let (client, mut peer) = legacy().await;
    client.send_bytes(&b"not json"[..]).await.unwrap();
    client.notify("notifications/odd", json!({"x": 1})).await.unwrap();
    peer.play("> not json\n> {\"jsonrpc\":\"2.0\",\"method\":\"notifications/odd\",\"params\":{\"x\":1}}").await;
}

#[tokio::test]
async fn a_subscription_opens_when_it_is_acknowledged() {
    let (client, mut peer) = modern().await;
    let listening = client.clone();
    let listen =
        meanwhile(async move { listening.listen(ListenFilter { tools: true, ..ListenFilter::default() }).await });
    let request = r#"{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"#;
    peer.play(&format!("> {request}{META}}}}}")).await;
    let tag = r#""_meta":{"io.modelcontextprotocol/subscriptionId":2}"#;
    let acknowledged = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"#;
    peer.send(&format!("{acknowledged}{tag}}}}}")).await;
    let subscription = listen.await.unwrap().unwrap();
    assert_eq!(subscription.accepted, json!({"toolsListChanged": true}));
    peer.send(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{{tag}}}}}"#)).await;
    client.notification("notifications/tools/list_changed").await.unwrap();
    drop(subscription);
    peer.play(r#"> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#).await;
}
