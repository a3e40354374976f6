//! Conversations as people write them down.
//!
//! ```text
//! > tools/call {"name": "greet"}      ask                          >> the same without waiting for the answer
//! < {"content": []}                   the result has this          x {"code": -32602}  it is an error that has this
//! ! notifications/message {…}         the server told this         ? roots/list {…}    the server asked this
//! = {"roots": []}                     our answer to its question   - notifications/cancelled {…}  we tell this
//! ~ tasks/get {…} {…}                 ask again until the result has this
//! ```
//!
//! `$STATE` and `$TASK` are the `requestState` and the `taskId` of the last result, `$ID` the id of the last request.

use rehearsal::core::matcher::Matcher;
use serde_json::{Deserializer, Value, json};

use crate::peer::Peer;

/// What a play remembers.
#[derive(Default)]
struct Memory {
    asked: Option<Value>,
    answer: Option<Value>,
    question: Option<Value>,
    state: String,
    task: String,
}

/// Goes through a play, line by line; `name` says which one it is.
pub(crate) async fn play(peer: &mut Peer, name: &str, lines: &str) {
    let mut memory = Memory::default();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let what = format!("{name} in {}: {line}", peer.revision);
        let (mark, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{what}"));
        let rest = memory.filled(rest);
        match mark {
            ">" | ">>" => {
                let (method, values) = parts(&rest, &what);
                let id = peer.request(method, values.into_iter().next()).await;
                memory.answer = None;
                if mark == ">" {
                    memory.hear(peer.answer_to(&id).await);
                }
                memory.asked = Some(id);
            }
            "<" | "x" => {
                let id = memory.asked.clone().unwrap_or_else(|| panic!("{what}"));
                if memory.answer.is_none() {
                    memory.hear(peer.answer_to(&id).await);
                }
                let answer = memory.answer.as_ref().unwrap();
                let member = if mark == "<" { "result" } else { "error" };
                fits(&json!({member: value(&rest, &what)}), answer, &what);
            }
            "!" | "?" => {
                let (method, values) = parts(&rest, &what);
                let has_id = mark == "?";
                let is_it = |message: &Value| message["method"] == method && message.get("id").is_some() == has_id;
                let found = peer.awaited(&what, is_it).await;
                if let Some(expected) = values.into_iter().next() {
                    fits(&json!({"params": expected}), &found, &what);
                }
                if has_id {
                    memory.question = Some(found["id"].clone());
                }
            }
            "=" => {
                let id = memory.question.take().unwrap_or_else(|| panic!("{what}"));
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": value(&rest, &what)});
                peer.say(&answer.to_string()).await;
            }
            "-" => {
                let (method, values) = parts(&rest, &what);
                peer.notify(method, values.into_iter().next()).await;
            }
            "~" => {
                let (method, values) = parts(&rest, &what);
                let [params, expected] = &values[..] else { panic!("{what}") };
                let matcher = Matcher::subset(json!({"result": expected}));
                // As a client polls; the patience of the harness ends it.
                for attempt in 0.. {
                    let answer = peer.ask(method, Some(params.clone())).await;
                    if matcher.check(&answer).is_empty() {
                        memory.hear(answer);
                        break;
                    }
                    assert!(attempt < 600, "{what}: {answer}");
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            }
            _ => panic!("{what}"),
        }
    }
}

impl Memory {
    fn hear(&mut self, answer: Value) {
        let word = |key: &str| answer["result"][key].as_str().map(str::to_owned);
        if let Some(state) = word("requestState") {
            self.state = state;
        }
        if let Some(task) = word("taskId").or_else(|| answer["result"]["task"]["taskId"].as_str().map(str::to_owned)) {
            self.task = task;
        }
        self.answer = Some(answer);
    }

    fn filled(&self, text: &str) -> String {
        let id = self.asked.as_ref().map(Value::to_string).unwrap_or_default();
        text.replace("$STATE", &self.state).replace("$TASK", &self.task).replace("$ID", &id)
    }
}

/// A method and the values after it.
fn parts<'a>(text: &'a str, what: &str) -> (&'a str, Vec<Value>) {
    let (method, values) = text.split_once(' ').unwrap_or((text, ""));
    let values =
        Deserializer::from_str(values).into_iter().map(|value| value.unwrap_or_else(|error| panic!("{what}: {error}")));
    (method, values.collect())
}

fn value(text: &str, what: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{what}: {error}"))
}

fn fits(expected: &Value, found: &Value, what: &str) {
    let mismatches = Matcher::subset(expected.clone()).check(found);
    let lines: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{what}\n  {}\n  in {found}", lines.join("\n  "));
}
