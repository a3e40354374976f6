//! Requests to a chain of a mock file and the protocol; the actions and the reply are compared line by line.

mod faults;
mod offers;
mod round_trip;
mod rules;
mod steps;

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::message::{Method, Reply};
use crate::protocol::{Revision, meta};
use crate::script::mock::MockFile;
use crate::script::read;

fn mock(text: &str) -> Arc<Mock> {
    let file: MockFile = read("m.yaml", text).unwrap_or_else(|error| panic!("{error}"));
    let source = MockSource { file: "m.yaml", mock: &file };
    let read =
        |_: &str, path: &str| if path == "there" { Ok(b"\x00\xff".to_vec()) } else { Err("not found".to_owned()) };
    Arc::new(Mock::compile(&[source], &read).unwrap_or_else(|errors| panic!("{}", errors[0])))
}

/// A chain that answers from a mock file, and one connection to it.
struct Fixture {
    chain: Chain,
    state: ConnectionState,
    signer: StateSigner,
    capabilities: Value,
}

impl Fixture {
    fn new(text: &str) -> Fixture {
        Fixture::with_sources(vec![Arc::new(ScriptSource::new(mock(text)))])
    }

    fn with_sources(mut sources: Vec<Arc<dyn AnswerSource>>) -> Fixture {
        sources.push(Arc::new(ProtocolSource));
        let capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {}});
        let signer = StateSigner::new([1; 32]);
        Fixture { chain: Chain::new(sources), state: ConnectionState::default(), signer, capabilities }
    }

    /// A legacy connection.
    fn legacy(text: &str, revision: Revision) -> Fixture {
        let mut fixture = Fixture::new(text);
        let (client, capabilities) = (json!({"name": "old"}).into(), fixture.capabilities.clone().into());
        fixture.state.legacy.client = Some(NegotiatedClient { revision, client, capabilities });
        fixture
    }

    fn request(&self, method: &str, params: Value) -> Arc<IncomingRequest> {
        let mut params = params;
        if self.state.legacy.client.is_none() {
            params["_meta"][meta::PROTOCOL_VERSION] = "2026-07-28".into();
            params["_meta"][meta::CLIENT_CAPABILITIES] = self.capabilities.clone();
        }
        let method = Method::from(method);
        let context = self.chain.request_context(&method, &params, &self.state.legacy).unwrap();
        Arc::new(IncomingRequest::new(method, params, context))
    }

    fn decide(&mut self, request: &Arc<IncomingRequest>, now_ms: u64) -> Decision {
        let environment = Environment { now_ms, signer: &self.signer };
        match self.chain.begin(request, &mut self.state, environment) {
            Decision::Unanswered(passed) => {
                Decision::Answer(self.chain.refusal(request, &passed, &mut self.state, environment))
            }
            decision => decision,
        }
    }

    /// Every action until the answer, one per line; input requests are answered from `inputs`.
    fn run(&mut self, method: &str, params: Value, inputs: &Value) -> Vec<String> {
        let request = self.request(method, params);
        let (mut active, mut action) = match self.decide(&request, 1_000_000) {
            Decision::Answer(answer) => return vec![reply_text(&answer)],
            Decision::Respond(active, action) => (active, action),
            Decision::Listen(filter, _) => return vec![format!("subscribes {}", filter.accepted())],
            Decision::Task(task) => return vec![format!("{task:?}")],
            Decision::Unanswered(_) => panic!("refused above"),
        };
        let mut lines = Vec::new();
        loop {
            match action {
                Action::Wait(delay) => lines.push(format!("wait {:?}", delay.to)),
                Action::Notify { method, params } => lines.push(format!("{method} {params}")),
                Action::NotifySubscribers(change) => lines.push(format!("notify {change:?}")),
                Action::RequestInput(requests) => {
                    for request in requests {
                        lines.push(format!("ask {} {} {}", request.name, request.method, request.params));
                        let input = inputs.get(&request.name).cloned().ok_or_else(|| "no answer".to_owned());
                        active.responder.set_input(&request.name, input);
                    }
                }
                Action::AwaitInput(_) => {}
                Action::CloseStream { retry } => lines.push(format!("close stream {:?}", retry.map(|retry| retry.to))),
                Action::StartTask(options) => {
                    let message = options.status_message.map_or_else(String::new, |message| format!(" {message}"));
                    lines.push(format!("task {:?}{message}", options.ttl_ms));
                }
                Action::CancelInput(..) | Action::End => lines.push(format!("{action:?}")),
                Action::Reply(answer) => {
                    lines.push(reply_text(&answer));
                    return lines;
                }
            }
            let environment = Environment { now_ms: 1_000_000, signer: &self.signer };
            action = self.chain.next(&mut active, &request, &mut self.state, environment);
        }
    }

    /// The answer to a request that needs no action.
    fn answer(&mut self, method: &str, params: Value) -> Answer {
        let request = self.request(method, params);
        match self.decide(&request, 1) {
            Decision::Answer(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    /// The text of a tool's result.
    fn call(&mut self, tool: &str, arguments: Value) -> String {
        let lines = self.run("tools/call", json!({"name": tool, "arguments": arguments}), &json!({}));
        let text = lines.last().cloned().unwrap_or_default();
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        value["content"][0]["text"].as_str().map_or(text, str::to_owned)
    }

    fn result(&mut self, method: &str, params: Value) -> Value {
        let lines = self.run(method, params, &json!({}));
        serde_json::from_str(lines.last().unwrap()).unwrap_or_else(|_| panic!("{lines:?}"))
    }
}

fn reply_text(answer: &Answer) -> String {
    match &answer.reply {
        Reply::Result(result) => {
            let mut result = result.value().unwrap();
            // Members that every result of 2026-07-28 repeats.
            if let Some(object) = result.as_object_mut() {
                let meta = object.get_mut("_meta").and_then(Value::as_object_mut);
                if meta.is_some_and(|meta| meta.shift_remove(meta::SERVER_INFO).is_some() && meta.is_empty()) {
                    object.shift_remove("_meta");
                }
            }
            result.to_string()
        }
        Reply::Error(error) => error.to_string(),
    }
}
