//! How the client finds out which version the server supports.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rehearsal::Client;
use rehearsal::client::ClientError;
use rehearsal::core::exchange::Channel;
use rehearsal::core::message::Method;
use rehearsal::core::protocol::Revision;
use rehearsal::wire::{BoxFuture, Outgoing, SendError, Sender, StopOutcome};

use super::peer::{HANDSHAKE, connect, discovery, meanwhile, unconnected, unconnected_with_sender};

#[tokio::test]
async fn a_chosen_version_is_offered_and_nothing_is_probed() {
    let (builder, mut peer) = unconnected();
    let script = HANDSHAKE.replace("2025-11-25", "2025-03-26");
    let client = connect(builder.legacy(Revision::V2025_03_26), &mut peer, &script).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_03_26);
    assert_eq!(client.server_info()["name"], "peer");
}

#[tokio::test]
async fn the_server_may_answer_with_another_version() {
    let (builder, mut peer) = unconnected();
    let script = HANDSHAKE.replacen("2025-11-25", "2025-06-18", 1);
    let script = script
        .replace("\"result\":{\"protocolVersion\":\"2025-11-25\"", "\"result\":{\"protocolVersion\":\"2024-11-05\"");
    let client = connect(builder.legacy(Revision::V2025_06_18), &mut peer, &script).await.unwrap();
    assert_eq!(client.revision(), Revision::V2024_11_05);
}

#[tokio::test]
async fn an_unknown_version_is_refused() {
    let (builder, mut peer) = unconnected();
    let script = r#"
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{}}}
    "#;
    let error = connect(builder.legacy(Revision::V2025_06_18), &mut peer, script).await.unwrap_err();
    assert!(matches!(error, ClientError::NoCommonVersion { .. }), "{error}");
    assert_eq!(error.to_string(), "the server supports [\"1999-01-01\"]; this client was set to 2025-06-18");
}

#[tokio::test]
async fn a_server_that_can_be_discovered_is_modern() {
    let (builder, mut peer) = unconnected();
    let client = connect(builder, &mut peer, &discovery()).await.unwrap();
    assert_eq!(client.revision(), Revision::V2026_07_28);
}

#[tokio::test]
async fn a_server_that_refuses_its_listed_version_gets_a_second_probe() {
    let lines: Vec<String> = discovery().lines().map(str::to_owned).collect();
    let refused = |id: u8| {
        let data = r#"{"supported":["2026-07-28"],"requested":"2026-07-28"}"#;
        format!(r#"< {{"jsonrpc":"2.0","id":{id},"error":{{"code":-32022,"message":"no","data":{data}}}}}"#)
    };
    let again = |line: &str| line.replacen("\"id\":1", "\"id\":2", 1);
    let (builder, mut peer) = unconnected();
    let script = [lines[0].clone(), refused(1), again(&lines[0]), again(&lines[1])].join("\n");
    let client = connect(builder.modern(), &mut peer, &script).await.unwrap();
    assert_eq!(client.revision(), Revision::V2026_07_28);

    let (builder, mut peer) = unconnected();
    let script = [lines[0].clone(), refused(1), again(&lines[0]), refused(2)].join("\n");
    let error = connect(builder.modern(), &mut peer, &script).await.unwrap_err();
    assert!(matches!(error, ClientError::ErrorReply { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_know_the_probe_gets_a_handshake() {
    let (builder, mut peer) = unconnected();
    let probe = discovery().lines().next().unwrap().to_owned();
    let refused = r#"< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#;
    let handshake = HANDSHAKE.replace("\"id\":1", "\"id\":2");
    let client = connect(builder, &mut peer, &format!("{probe}\n{refused}\n{handshake}")).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_11_25);
}

#[tokio::test]
async fn a_server_that_answers_the_probe_with_anything_else_gets_a_handshake() {
    for result in ["{}", "null", r#"{"content":[{"type":"text","text":"what?"}]}"#, r#"{"supportedVersions":"all"}"#] {
        let (builder, mut peer) = unconnected();
        let probe = discovery().lines().next().unwrap().to_owned();
        let answer = format!(r#"< {{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        let handshake = HANDSHAKE.replace("\"id\":1", "\"id\":2");
        let client = connect(builder, &mut peer, &format!("{probe}\n{answer}\n{handshake}")).await.unwrap();
        assert_eq!(client.revision(), Revision::V2025_11_25, "{result}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_gets_a_handshake_too() {
    let (builder, mut peer) = unconnected();
    let probe = discovery().lines().next().unwrap().to_owned();
    let handshake = HANDSHAKE.replace("\"id\":1", "\"id\":2");
    let client = connect(builder, &mut peer, &format!("{probe}\n{handshake}")).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_11_25);
}

#[tokio::test(start_paused = true)]
async fn a_slow_starter_that_refuses_the_handshake_for_the_probe_is_modern() {
    let (builder, mut peer) = unconnected();
    let probe: Vec<String> = discovery().lines().map(str::to_owned).collect();
    let initialize = HANDSHAKE.trim().lines().next().unwrap().replace("\"id\":1", "\"id\":2");
    let refused =
        r#"< {"jsonrpc":"2.0","id":2,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}}"#;
    let script = format!("{}\n{initialize}\n{refused}\n{}", probe[0], probe[1]);
    let client = connect(builder, &mut peer, &script).await.unwrap();
    assert_eq!(client.revision(), Revision::V2026_07_28);
}

#[tokio::test]
async fn a_modern_server_of_other_versions_is_refused_with_their_names() {
    let (builder, mut peer) = unconnected();
    let script = r#"
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":["2030-01-01"],"requested":"2026-07-28"}}}
    "#;
    let error = connect(builder, &mut peer, script).await.unwrap_err();
    assert!(error.to_string().contains("2030-01-01"), "{error}");
}

/// Sends every message except `notifications/initialized`.
#[derive(Debug)]
struct Stubborn(Arc<dyn Sender>);

impl Sender for Stubborn {
    fn open_channel(&self) -> Channel {
        self.0.open_channel()
    }

    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<(), SendError>> {
        match outgoing.message.method() {
            Some(method) if *method == Method::INITIALIZED => Box::pin(std::future::pending()),
            _ => self.0.send(outgoing),
        }
    }

    fn send_bytes(&self, channel: Channel, bytes: Bytes) -> BoxFuture<'_, Result<(), SendError>> {
        self.0.send_bytes(channel, bytes)
    }

    fn close(&self) -> BoxFuture<'_, StopOutcome> {
        self.0.close()
    }

    fn abort(&self) {
        self.0.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_read_initialized_is_reported() {
    let (builder, mut peer) = unconnected_with_sender(|sender| Arc::new(Stubborn(sender)));
    let builder = builder.legacy(Revision::V2025_11_25).timeout(Duration::from_secs(5));
    let script: Vec<&str> = HANDSHAKE.lines().filter(|line| !line.contains("initialized")).collect();
    let error = connect(builder, &mut peer, &script.join("\n")).await.unwrap_err();
    assert_eq!(error.to_string(), "the server did not take notifications/initialized within 5 s");
}

#[tokio::test]
async fn a_program_that_echoes_its_input_is_recognized() {
    for builder in [Client::command("cat"), Client::command("cat").legacy(Revision::V2025_11_25)] {
        let error = builder.connect().await.unwrap_err().to_string();
        assert!(error.ends_with("the server echoes its input, as `cat` does"), "{error}");
    }
}

#[tokio::test]
async fn a_pending_call_fails_when_the_client_is_dropped() {
    let (builder, mut peer) = unconnected();
    let client = connect(builder, &mut peer, &discovery()).await.unwrap();
    let call = client.call("slow").start().await.unwrap();
    let waiting = meanwhile(async move { call.await });
    drop(client);
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the server was closed by us before it answered tools/call");
}
