//! Tools of a handler, in addition to those of an answer chain.

use std::sync::Arc;
use std::time::Duration;

use rehearsal::Client;
use rehearsal::client::{ClientError, Protocol};
use rehearsal::core::answer::{
    Answer, IncomingRequest, ListedForm, Lists, Provenance, Surface, SurfaceItem, WrittenFor,
};
use rehearsal::core::json::RawJson;
use rehearsal::core::message::{Method, Reply};
use rehearsal::core::protocol::Revision;
use rehearsal::mock::chain_of;
use rehearsal::serve::{Handler, RequestHandle, Server, ServerOptions};
use rehearsal::wire::{BoxFuture, memory};
use serde_json::json;

/// A tool that sends progress, and then waits for the time in its argument.
struct Waiter;

impl Handler for Waiter {
    fn surface(&self) -> Surface {
        let value = json!({"name": "wait", "inputSchema": {"type": "object"}});
        let tool = SurfaceItem { id: "wait".to_owned(), form: ListedForm::Newest(value), needs: None };
        Surface { lists: Some(Arc::new(Lists::new([vec![tool], vec![], vec![], vec![]], None))), ..Surface::default() }
    }

    fn handles(&self, request: &IncomingRequest) -> bool {
        request.method == Method::TOOLS_CALL && request.subject() == Some("wait")
    }

    fn call<'a>(&'a self, request: RequestHandle<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let token = &request.request().meta()["progressToken"];
            request.notify(Method::PROGRESS, &json!({"progressToken": token, "progress": 1})).await;
            let milliseconds = request.request().params["arguments"]["ms"].as_u64().unwrap_or_default();
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            let result = json!({"content": [{"type": "text", "text": format!("waited {milliseconds} ms")}]});
            let answer = Answer::new(Reply::Result(RawJson::from_value(&result)), Provenance::Live);
            Answer { written_for: WrittenFor::Newest, ..answer }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_adds_tools_to_a_mock_sends_progress_and_is_cancelled() {
    let chain = chain_of("m.yaml", "tools: [{ name: hello, answers: [{ text: hi }] }]").unwrap();
    let server =
        Server::with_options(chain, ServerOptions { handlers: vec![Arc::new(Waiter)], ..ServerOptions::default() });
    for protocol in [Protocol::Modern, Protocol::Legacy(Revision::V2025_06_18)] {
        let (near, far) = memory::pair();
        let served = server.clone();
        tokio::spawn(async move { served.serve(far).await });
        let client = Client::connection(near).protocol(protocol).connect().await.unwrap();
        let tools: Vec<_> = client.list_tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
        assert_eq!(tools, ["hello", "wait"]);
        assert_eq!(client.call_tool("hello", json!({})).await.unwrap().content(), "hi");
        let waited = client.call("wait").arguments(json!({"ms": 50})).with_progress().await.unwrap();
        assert_eq!((waited.content().as_str(), waited.progress().len()), ("waited 50 ms", 1));
        let cancelled = client.call("wait").arguments(json!({"ms": 3_600_000})).timeout(Duration::from_secs(1)).await;
        assert!(matches!(cancelled, Err(ClientError::TimedOut { .. })), "{cancelled:?}");
        assert_eq!(client.call_tool("hello", json!({})).await.unwrap().content(), "hi");
    }
}
