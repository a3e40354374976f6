//! Server requests and input requests, in both eras.

use rehearsal::client::ClientHandlers;
use rehearsal::core::message::Method;
use serde_json::json;

use super::peer::{HANDSHAKE, META, connect, discovery, legacy, meanwhile, unconnected};

#[tokio::test]
async fn server_requests_are_answered_during_a_call_and_ids_do_not_collide() {
    let (builder, mut peer) = unconnected();
    let builder = builder.legacy("2025-11-25".parse().unwrap());
    let builder =
        builder.handlers(ClientHandlers::new().roots([("file:///x", "x")]).elicitation_accept(json!({"name": "Ada"})));
    let capabilities = r#""capabilities":{"roots":{"listChanged":true},"elicitation":{}},"clientInfo""#;
    let script = HANDSHAKE.replacen(r#""capabilities":{},"clientInfo""#, capabilities, 1);
    let client = connect(builder, &mut peer, &script).await.unwrap();
    let call = meanwhile(async move { client.call_tool("ask", json!({})).await.unwrap().success() });
    peer.play(
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{}}}
        < {"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"message":"name?"}}
        > {"jsonrpc":"2.0","id":2,"result":{"action":"accept","content":{"name":"Ada"}}}
        < {"jsonrpc":"2.0","id":"r","method":"roots/list"}
        > {"jsonrpc":"2.0","id":"r","result":{"roots":[{"uri":"file:///x","name":"x"}]}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        "#,
    )
    .await;
    assert!(call.await.unwrap());
}

#[tokio::test]
async fn a_server_request_without_answer_is_refused_but_ping_is_answered() {
    let (_client, mut peer) = legacy().await;
    peer.play(
        r#"
        < {"jsonrpc":"2.0","id":0,"method":"ping"}
        > {"jsonrpc":"2.0","id":0,"result":{}}
        < {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}
        > {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"this client has no answer to sampling/createMessage"}}
        "#,
    )
    .await;
}

#[tokio::test]
async fn scripted_answers_are_sent_in_order_once_each() {
    let (builder, mut peer) = unconnected();
    let answers = ClientHandlers::new().on_sequence(Method::ROOTS_LIST, [json!({"roots": []})]);
    let builder = builder.legacy("2025-11-25".parse().unwrap()).handlers(answers).capabilities(json!({}));
    let _client = connect(builder, &mut peer, HANDSHAKE).await.unwrap();
    peer.play(
        r#"
        < {"jsonrpc":"2.0","id":0,"method":"roots/list"}
        > {"jsonrpc":"2.0","id":0,"result":{"roots":[]}}
        < {"jsonrpc":"2.0","id":1,"method":"roots/list"}
        > {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"roots/list was requested more often than there are scripted answers"}}
        "#,
    )
    .await;
}

#[tokio::test]
async fn input_responses_are_sent_with_a_new_id_and_the_exact_state() {
    let (builder, mut peer) = unconnected();
    let answers = ClientHandlers::new().elicitation_accept(json!({"name": "Ada"}));
    let builder = builder.modern().handlers(answers).capabilities(json!({}));
    let client = connect(builder, &mut peer, &discovery()).await.unwrap();
    let call = meanwhile(async move { client.call_tool("ask", json!({})).await.unwrap().content() });
    let request = |id: u32, more: &str| {
        let params = format!(r#""name":"ask","arguments":{{}},{more}{META}"#);
        format!(r#"> {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{params}}}}}"#)
    };
    let required = |id: u32, state: &str| {
        let input_requests = r#""inputRequests":{"who":{"method":"elicitation/create","params":{}}}"#;
        format!(r#"< {{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required",{input_requests}{state}}}}}"#)
    };
    let inputs = r#""inputResponses":{"who":{"action":"accept","content":{"name":"Ada"}}},"#;
    let script = [
        request(2, ""),
        required(2, r#","requestState":"a \"b\"""#),
        request(3, &format!(r#"{inputs}"requestState":"a \"b\"","#)),
        required(3, ""),
        request(4, inputs),
        r#"< {"jsonrpc":"2.0","id":4,"result":{"resultType":"complete","content":[{"type":"text","text":"Hello, Ada!"}]}}"#.into(),
    ];
    peer.play(&script.join("\n")).await;
    assert_eq!(call.await.unwrap(), "Hello, Ada!");
}

#[tokio::test]
async fn input_required_is_returned_to_the_caller_without_an_answer() {
    let (client, mut peer) = super::peer::modern().await;
    let call = meanwhile(async move { client.call_tool("ask", json!({})).await.unwrap() });
    peer.receive().await;
    peer.send(r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"x":{"method":"roots/list"}}}}"#)
        .await;
    let response = call.await.unwrap();
    assert!(response.is_input_required() && !response.success());
}

#[tokio::test]
async fn a_panicking_answer_is_an_error_response_and_the_connection_stays_open() {
    let (builder, mut peer) = unconnected();
    let answers = ClientHandlers::new().on(Method::ROOTS_LIST, |_| panic!("on purpose"));
    let builder = builder.legacy("2025-11-25".parse().unwrap()).handlers(answers).capabilities(json!({}));
    let client = connect(builder, &mut peer, HANDSHAKE).await.unwrap();
    peer.play(
        r#"
        < {"jsonrpc":"2.0","id":0,"method":"roots/list"}
        > {"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"the scripted answer to roots/list panicked"}}
        "#,
    )
    .await;
    let ping = meanwhile(async move { client.ping().await.unwrap().success() });
    peer.play("> {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n< {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}")
        .await;
    assert!(ping.await.unwrap());
}
