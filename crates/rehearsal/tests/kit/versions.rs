//! Recordings with everything that a version has are replayed to clients of all five versions, and every message is checked
//! against the shapes of the client's version.

use std::path::Path;

use rehearsal::core::exchange::Side;
use rehearsal::core::message::{Body, Message, Request};
use rehearsal::core::protocol::{Era, Revision};
use rehearsal::core::shape::{check_notification, check_request, check_response};
use rehearsal::core::trace::TimelineItem;
use rehearsal::replay::{Replay, ReplayOptions};
use rehearsal::store::{BadLines, Input, Recording};
use serde_json::{Value, json};

use crate::transcript::{Peer, journal, session};

/// A session of 2025-11-25 with everything that other versions do not have.
const IN_2025: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"completions":{},"logging":{},
    "tasks":{"list":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"s","version":"1","title":"S","icons":[{"src":"a:i"}]},"instructions":"be kind"}}
> {"id":1,"method":"tools/list"}
< {"id":1,"result":{"tools":[{"name":"all","title":"All","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},
    "execution":{"taskSupport":"optional"},"icons":[{"src":"a:i"}],"_meta":{"a/b":1}}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}
> {"id":2,"method":"tools/call","params":{"name":"all","_meta":{"progressToken":1}}}
< {"method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"half"}}
< {"method":"notifications/message","params":{"level":"info","data":"log"}}
< {"method":"notifications/tasks/status","params":{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":null}}
< {"method":"notifications/elicitation/complete","params":{"elicitationId":"e"}}
< {"method":"notifications/tools/list_changed"}
< {"method":"notifications/resources/updated","params":{"uri":"a:b"}}
< {"method":"notifications/vendor","params":{"own":true}}
< {"id":"p","method":"ping"}
> {"id":"p","result":{}}
< {"id":"f","method":"elicitation/create","params":{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}},
    "task":{"ttl":1},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}
> {"id":"f","result":{"action":"accept","content":{"name":"Ada"}}}
< {"id":"c","method":"elicitation/create","params":{"message":"Which?","requestedSchema":{"type":"object","properties":{"some":{"type":"array","items":{"enum":["a"]}}}}}}
> {"id":"c","result":{"action":"decline"}}
< {"id":"u","method":"elicitation/create","params":{"mode":"url","message":"Log in","url":"https://a.b","elicitationId":"e"}}
> {"id":"u","result":{"action":"accept"}}
< {"id":"s","method":"sampling/createMessage","params":{"maxTokens":9,"tools":[{"name":"t","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"auto"},
    "messages":[{"role":"user","content":[{"type":"text","text":"one"},{"type":"audio","data":"AA==","mimeType":"audio/wav"},{"type":"tool_use","id":"1","name":"t","input":{}}]}]}}
> {"id":"s","result":{"role":"assistant","model":"m","content":{"type":"text","text":"ok"}}}
< {"id":"r","method":"roots/list"}
> {"id":"r","result":{"roots":[]}}
< {"id":"g","method":"tasks/get","params":{"taskId":"t"}}
> {"id":"g","error":{"code":-32602,"message":"no task"}}
< {"id":2,"result":{"content":[{"type":"text","text":"t","_meta":{"a/b":1},"annotations":{"lastModified":"x"}},{"type":"audio","data":"AA==","mimeType":"audio/wav"},
    {"type":"resource_link","uri":"a:b","name":"b","icons":[{"src":"a:i"}]}],"structuredContent":{"a":1}}}
> {"id":3,"method":"tools/call","params":{"name":"login"}}
< {"id":3,"error":{"code":-32042,"message":"log in first","data":{"elicitations":[{"mode":"url","message":"Log in","url":"https://a.b","elicitationId":"e"}]}}}
> {"id":4,"method":"tools/call","params":{"name":"login"}}
< {"id":4,"result":{"content":[{"type":"text","text":"logged in"}]}}
> {"id":5,"method":"resources/read","params":{"uri":"a:none"}}
< {"id":5,"error":{"code":-32002,"message":"no such resource","data":{"uri":"a:none"}}}
> {"id":6,"method":"prompts/get","params":{"name":"p"}}
< {"id":6,"result":{"messages":[{"role":"user","content":{"type":"audio","data":"AA==","mimeType":"audio/wav"}}]}}
> {"id":7,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b"}}}
< {"id":7,"result":{"completion":{"values":["b"]},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}
> {"id":12,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"c"}}}
< {"id":"k","method":"roots/list"}
> {"id":"k","result":{"roots":[]}}
< {"id":12,"result":{"completion":{"values":["c"]}}}
> {"id":8,"method":"resources/list"}
< {"id":8,"result":{"resources":[{"uri":"a:b","name":"b","title":"B","icons":[{"src":"a:i"}],"annotations":{"lastModified":"x"}}]}}
> {"id":9,"method":"prompts/list"}
< {"id":9,"result":{"prompts":[{"name":"p","title":"P","arguments":[{"name":"a","title":"A"}],"icons":[{"src":"a:i"}]}]}}
> {"id":10,"method":"resources/templates/list"}
< {"id":10,"result":{"resourceTemplates":[{"uriTemplate":"a:{b}","name":"b","title":"B"}]}}
> {"id":11,"method":"resources/read","params":{"uri":"a:b"}}
< {"id":11,"result":{"contents":[{"uri":"a:b","text":"x","_meta":{"a/b":1}}]}}
"#;

/// A session of 2026-07-28 with everything that other versions do not have.
const IN_2026: &str = r#"
> {"id":0,"method":"server/discover","params":{META}}
< {"id":0,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{},"prompts":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},
    "ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1","icons":[{"src":"a:i"}]}}}}
> {"id":1,"method":"tools/list","params":{META}}
< {"id":1,"result":{"resultType":"complete","ttlMs":5,"cacheScope":"public","tools":[{"name":"all","title":"All","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}],
    "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}
> {"id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:b"],"taskIds":["t"]},META}}
< {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:b"]},"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
> {"id":2,"method":"tools/call","params":{"name":"all",META}}
< {"method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"half"}}
< {"method":"notifications/message","params":{"level":"info","data":"log"}}
< {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
< {"method":"notifications/resources/updated","params":{"uri":"a:b","_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
< {"method":"notifications/tasks","params":{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttlMs":null,"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
< {"id":2,"result":{"resultType":"input_required","requestState":"s","inputRequests":{
    "form":{"method":"elicitation/create","params":{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}},
    "url":{"method":"elicitation/create","params":{"mode":"url","message":"Log in","url":"https://a.b"}},
    "model":{"method":"sampling/createMessage","params":{"maxTokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}]}},
    "roots":{"method":"roots/list"}}}}
> {"id":3,"method":"tools/call","params":{"name":"all","requestState":"s","inputResponses":{"form":{"action":"decline"}},META}}
< {"id":3,"result":{"resultType":"complete","content":[{"type":"resource_link","uri":"a:b","name":"b"}],"structuredContent":[1],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}
> {"id":4,"method":"tools/call","params":{"name":"needs",META}}
< {"id":4,"error":{"code":-32021,"message":"needs sampling","data":{"requiredCapabilities":{"sampling":{}}}}}
> {"id":5,"method":"resources/read","params":{"uri":"a:none",META}}
< {"id":5,"error":{"code":-32602,"message":"no such resource","data":{"uri":"a:none"}}}
> {"id":6,"method":"resources/read","params":{"uri":"a:b",META}}
< {"id":6,"result":{"resultType":"complete","ttlMs":5,"cacheScope":"public","contents":[{"uri":"a:b","text":"x","_meta":{"a/b":1}}]}}
"#;

/// The messages that a client of a version receives when it repeats the recorded requests, one per line. Panics if a message does
/// not conform to that version.
async fn transcript_of(trace: &Path, revision: Revision) -> String {
    let input = Input::File(trace.to_owned());
    let replay = Replay::open(&input, ReplayOptions::default()).unwrap();
    let mut client = CheckingClient { peer: Peer::new(&replay), revision, transcript: String::new(), id: 100 };
    client.begin().await;
    for moment in Recording::open(&input).unwrap().timeline(BadLines::Refuse) {
        let TimelineItem::Call { call, .. } = moment.unwrap() else { continue };
        let Some(request) = call.request.message.as_request().filter(|_| call.asker == Side::Client) else { continue };
        let params = request.params.as_ref().map_or(Value::Null, |params| params.value().unwrap());
        let opens = ["initialize", "server/discover", "subscriptions/listen"];
        if !opens.contains(&request.method.as_str()) && params.get("requestState").is_none() {
            client.complete(request.method.as_str(), params).await;
        }
    }
    client.transcript
}

/// A client with all capabilities and subscriptions that checks every message that it receives.
struct CheckingClient {
    peer: Peer,
    revision: Revision,
    transcript: String,
    id: i64,
}

impl CheckingClient {
    async fn begin(&mut self) {
        match self.revision.era() {
            Era::Legacy => {
                let params = json!({"protocolVersion": self.revision.as_str(), "capabilities": capabilities(), "clientInfo": {"name": "j", "version": "1"}});
                self.complete("initialize", params).await;
                self.peer.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
                self.complete("resources/subscribe", json!({"uri": "a:b"})).await;
            }
            Era::Modern => {
                self.complete("server/discover", json!({})).await;
                let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["a:b"], "taskIds": ["t"]});
                let listen = self.request("subscriptions/listen", json!({"notifications": filter}));
                self.peer.send(listen).await;
                let acknowledged = self.peer.receive().await;
                self.check(&acknowledged, None).await;
            }
        }
    }

    fn request(&mut self, method: &str, mut params: Value) -> Value {
        self.id += 1;
        if params.is_null() {
            params = json!({});
        }
        params["_meta"] = json!({"progressToken": "mine"});
        if self.revision.era() == Era::Modern {
            params["_meta"] = json!({"progressToken": "mine", "io.modelcontextprotocol/protocolVersion": self.revision.as_str(),
                "io.modelcontextprotocol/clientCapabilities": capabilities(), "io.modelcontextprotocol/logLevel": "debug"});
        }
        json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
    }

    /// Sends a request, answers all server requests, and completes all input rounds.
    async fn complete(&mut self, method: &str, params: Value) {
        let mut more = json!({});
        for _ in 0..8 {
            let mut params = params.clone();
            if let (Some(params), Some(more)) = (params.as_object_mut(), more.as_object()) {
                params.extend(more.clone());
            }
            let request = self.request(method, params);
            self.transcript += &format!("> {method}\n");
            self.peer.send(request.clone()).await;
            let request = Message::parse(request.to_string()).as_request().unwrap().clone();
            let result = loop {
                let message = self.peer.receive().await;
                if let Some(result) = self.check(&message, Some(&request)).await {
                    break result;
                }
            };
            if result["resultType"] != "input_required" {
                return;
            }
            let requests = result["inputRequests"].as_object().into_iter().flatten();
            let answers: Value =
                requests.map(|(name, it)| (name.clone(), answer(it["method"].as_str().unwrap()))).collect();
            more = json!({"requestState": result["requestState"], "inputResponses": answers});
        }
        panic!("{method} never completes its input rounds:\n{}", self.transcript);
    }

    /// Notes and checks a message; returns the result if it is the response to the request.
    async fn check(&mut self, message: &Message, request: Option<&Request>) -> Option<Value> {
        let received: Value = serde_json::from_slice(message.raw()).unwrap();
        let mut shown = received.clone();
        for key in ["jsonrpc", "id"] {
            shown.as_object_mut().unwrap().shift_remove(key);
        }
        if shown["result"].get("requestState").is_some() {
            shown["result"]["requestState"] = "[STATE]".into();
        }
        self.transcript += &format!("< {shown}\n");
        let findings = match message.body() {
            Body::Notification(notification) => check_notification(notification, Side::Server, self.revision),
            Body::Request(incoming) => {
                let answer = answer(incoming.method.as_str());
                self.peer.send(json!({"jsonrpc": "2.0", "id": received["id"], "result": answer})).await;
                check_request(incoming, Side::Server, self.revision)
            }
            Body::Response(response) => check_response(response, request.unwrap(), Side::Client, self.revision),
            other => panic!("{other:?}"),
        };
        let findings: Vec<_> = findings.iter().filter(|it| !it.message.contains("notifications/vendor")).collect();
        assert!(findings.is_empty(), "{}: {findings:#?}\n{}", self.revision, self.transcript);
        received.get("method").is_none().then(|| received.get("result").cloned().unwrap_or_default())
    }
}

fn capabilities() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}})
}

fn answer(method: &str) -> Value {
    match method {
        "elicitation/create" => json!({"action": "accept", "content": {}}),
        "sampling/createMessage" => {
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "ok"}})
        }
        "roots/list" => json!({"roots": []}),
        _ => json!({}),
    }
}

async fn assert_in_all_versions(name: &str, transcript: &str) {
    let (_directory, journal) = journal(&[session(name, transcript)]);
    for revision in Revision::ALL {
        insta::assert_snapshot!(format!("{name}_in_{revision}"), transcript_of(&journal, revision).await);
    }
}

#[tokio::test]
async fn recordings_of_2025_11_25_conform_in_every_version() {
    assert_in_all_versions("2025-11-25", IN_2025).await;
}

#[tokio::test]
async fn recordings_of_2026_07_28_conform_in_every_version() {
    assert_in_all_versions("2026-07-28", IN_2026).await;
}

#[tokio::test]
async fn recordings_of_other_tools_conform_in_every_version() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces");
    for name in [
        "mcp-cassette-0.4.json",
        "mcp-recorder-0.5.json",
        "mcporter-0.12.ndjson",
        "mcptest-1.3.json",
        "python.jsonl",
        "python.log",
    ] {
        // Each in its own folder, because the index is written next to the trace.
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join(name);
        std::fs::copy(folder.join(name), &trace).unwrap();
        for revision in Revision::ALL {
            assert!(!transcript_of(&trace, revision).await.is_empty());
        }
    }
}
