//! A mock answers: `>` goes in, what comes out is compared line by line, and time passes when it is told to.

mod offers;
mod plays;
mod rules;
mod written;
mod wrong;

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::message::{Method, Reply};
use crate::protocol::{Revision, meta};
use crate::script::mock::{MockFile, Otherwise};
use crate::script::read;

fn mock(text: &str) -> Arc<Mock> {
    mock_otherwise(text, Otherwise::Refuse)
}

fn mock_otherwise(text: &str, otherwise: Otherwise) -> Arc<Mock> {
    let file: MockFile = read("m.yaml", text).unwrap_or_else(|error| panic!("{error}"));
    let source = Source { file: "m.yaml", mock: &file };
    let read =
        |_: &str, path: &str| if path == "there" { Ok(b"\x00\xff".to_vec()) } else { Err("not found".to_owned()) };
    Arc::new(Mock::compile(&[source], otherwise, &read).unwrap_or_else(|errors| panic!("{}", errors[0])))
}

struct Stage {
    mock: Arc<Mock>,
    state: State,
    memory: Memory,
    seal: Seal,
    capabilities: Value,
}

impl Stage {
    fn new(text: &str) -> Stage {
        let mock = mock(text);
        let (state, capabilities) = (State::new(&mock), json!({"elicitation": {}, "sampling": {}, "roots": {}}));
        Stage { mock, state, memory: Memory::default(), seal: Seal::new([1; 32]), capabilities }
    }

    /// A stage of the handshake era.
    fn legacy(text: &str, revision: Revision) -> Stage {
        let mut stage = Stage::new(text);
        let (client, capabilities) = (json!({"name": "old"}).into(), stage.capabilities.clone().into());
        stage.memory.handshake = Some(Handshake { revision, client, capabilities });
        stage
    }

    fn asked(&self, method: &str, params: Value) -> Asked {
        let mut params = params;
        if self.memory.handshake.is_none() {
            params["_meta"][meta::PROTOCOL_VERSION] = "2026-07-28".into();
            params["_meta"][meta::CLIENT_CAPABILITIES] = self.capabilities.clone();
        }
        let method = Method::from(method);
        let terms = Terms::of(&method, &params, &self.memory, self.mock.revisions()).unwrap();
        Asked::new(method, params, terms)
    }

    /// Everything that happens until the answer, a line each; questions are answered from `answers`.
    fn ask(&mut self, method: &str, params: Value, answers: &Value) -> Vec<String> {
        let asked = self.asked(method, params);
        let world = World { now_ms: 1_000_000, seal: &self.seal };
        let (mut play, mut act) = match self.mock.begin(asked, &mut self.memory, &mut self.state, &world) {
            Begun::Answered(answer) => return vec![said(&answer)],
            Begun::Plays(play, act) => (play, act),
            Begun::Listens(wanted, ..) => return vec![format!("listens {}", wanted.accepted())],
            Begun::AboutTask(about, ..) => return vec![format!("{about:?}")],
            Begun::Unknown(answer, _) => return vec![said(&answer)],
        };
        let mut lines = Vec::new();
        loop {
            match act {
                Act::Wait(delay) => lines.push(format!("wait {:?}", delay.to)),
                Act::Notify { method, params } => lines.push(format!("{method} {params}")),
                Act::Tell(change) => lines.push(format!("tell {change:?}")),
                Act::Ask(questions) => {
                    for question in questions {
                        lines.push(format!("ask {} {} {}", question.name, question.method, question.params));
                        let answer = answers.get(&question.name).cloned().ok_or_else(|| "no answer".to_owned());
                        play.answered(&question.name, answer);
                    }
                }
                Act::CloseStream { retry } => lines.push(format!("close stream {:?}", retry.map(|retry| retry.to))),
                Act::Detach(terms) => {
                    let said = terms.status_message.map_or_else(String::new, |said| format!(" {said}"));
                    lines.push(format!("task {:?}{said}", terms.ttl_ms));
                }
                Act::Pose(_) | Act::Hear(_) | Act::Withdraw(..) => lines.push(format!("{act:?}")),
                Act::Reply(answer) => {
                    lines.push(said(&answer));
                    return lines;
                }
            }
            act = play.next(&mut self.state, &world);
        }
    }

    /// The answer to what is answered at once.
    fn answer(&mut self, method: &str, params: Value) -> Answer {
        let asked = self.asked(method, params);
        let world = World { now_ms: 1, seal: &self.seal };
        match self.mock.begin(asked, &mut self.memory, &mut self.state, &world) {
            Begun::Answered(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    /// The text of what a tool says.
    fn call(&mut self, tool: &str, arguments: Value) -> String {
        let lines = self.ask("tools/call", json!({"name": tool, "arguments": arguments}), &json!({}));
        let said = lines.last().cloned().unwrap_or_default();
        let value: Value = serde_json::from_str(&said).unwrap_or_default();
        value["content"][0]["text"].as_str().map_or(said, str::to_owned)
    }

    fn result(&mut self, method: &str, params: Value) -> Value {
        let lines = self.ask(method, params, &json!({}));
        serde_json::from_str(lines.last().unwrap()).unwrap_or_else(|_| panic!("{lines:?}"))
    }
}

fn said(answer: &Answer) -> String {
    match &answer.reply {
        Reply::Result(result) => {
            let mut result = result.value().unwrap();
            // What every result of 2026-07-28 repeats.
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
