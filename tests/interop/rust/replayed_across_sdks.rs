//! Sessions recorded over one transport with one SDK and replayed over other transports to other SDKs: concurrency, progress,
//! sampling, elicitation, errors and images.

use std::path::PathBuf;

use rehearsal::record::{HttpRecording, Recorder};
use rehearsal_wire::http::proxy::HttpProxyOptions;
use serde_json::{Value, json};

use crate::clients::run_script;
use crate::generated::plain;
use crate::installation::{node, python, sdk_server};
use crate::mocked::rehearse;
use crate::replayed::TraceFile;
use crate::server_everything;

/// Records a client on the Python SDK and a server over HTTP.
async fn recorded(trace_file: &TraceFile, url: &str, script: &str, era: &str, words: &[&str]) -> Value {
    let recorder = Recorder::builder().trace(trace_file.path()).build();
    let options = HttpProxyOptions::new("127.0.0.1:0".parse().unwrap(), url).unwrap();
    let recording = HttpRecording::start(&recorder, options).await.unwrap();
    let before = recording.url();
    let mut words = words.to_vec();
    words.extend(["--url", before.as_str()]);
    let seen = run_script(&python("python"), script, era, &words).await;
    recording.stop().await;
    assert!(!recorder.summary().failed);
    seen
}

/// The requests to the reference server.
fn calls() -> Value {
    let call = |name: &str, arguments: Value| json!({"method": "tools/call", "params": {"name": name, "arguments": arguments}});
    json!([
        {"method": "tools/list"},
        call("get-tiny-image", json!({})),
        call("trigger-long-running-operation", json!({"duration": 0.2, "steps": 2})),
        call("trigger-sampling-request", json!({"prompt": "hi", "maxTokens": 10})),
        call("trigger-elicitation-request", json!({})),
        call("no-such-tool", json!({})),
        call("get-sum", json!({"a": "no number"})),
        {"method": "resources/read", "params": {"uri": "demo://resource/dynamic/blob/1"}},
        {"method": "resources/read", "params": {"uri": "demo://no/such"}},
        {"method": "prompts/get", "params": {"name": "args-prompt", "arguments": {"city": "Oslo"}}},
        // The first is sent first and answered last.
        [call("trigger-long-running-operation", json!({"duration": 1, "steps": 1})), call("get-sum", json!({"a": 1, "b": 2}))],
    ])
}

/// The results that a client got, without what may differ.
fn counted(seen: &Value) -> Value {
    let answers = seen.as_array().unwrap().iter().zip(calls().as_array().unwrap().clone());
    let one = |call: &Value, answer: &Value| {
        let method = call["method"].as_str().unwrap();
        let mut plain = plain(method, answer);
        // A resource that is not there is another error since 2026-07-28.
        if method == "resources/read" && plain["code"].is_number() {
            plain["code"] = json!("not found");
        }
        plain
    };
    let progress = |answer: &Value| -> Vec<Value> {
        let numbers = |entry: &Value| json!([entry[0], entry[1].as_f64(), entry[2].as_f64(), entry[3]]);
        let received = answer["received"].as_array().unwrap().iter();
        // The TypeScript SDK adds progress of its own for an input round.
        let own = |entry: &Value| entry[3].as_str().is_some_and(|message| message.starts_with("Fulfilling input"));
        received.filter(|entry| entry[0] == "progress" && !own(entry)).map(numbers).collect()
    };
    let counted = answers.map(|(answer, call)| match call.as_array() {
        None => json!([one(&call, answer), progress(answer)]),
        Some(together) => {
            let answers = together.iter().zip(answer["answers"].as_array().unwrap());
            json!([
                answers.map(|(call, answer)| one(call, answer)).collect::<Vec<_>>(),
                answer["order"],
                progress(answer)
            ])
        }
    });
    counted.collect()
}

fn clients() -> [(PathBuf, &'static str); 2] {
    [(python("python"), "python"), (node(), "typescript")]
}

/// The arguments with which a script connects to a replay, on each transport.
fn transports<'a>(rehearse: &'a str, trace: &'a str, url: &'a str, sse: &'a str) -> [Vec<&'a str>; 3] {
    [vec!["--stdio", rehearse, "replay", "-q", trace], vec!["--url", url], vec!["--url", sse, "--transport", "sse"]]
}

fn extension(client: &str) -> &'static str {
    if client == "python" { "py" } else { "mjs" }
}

#[tokio::test]
async fn the_reference_server_over_http_replays_to_other_sdks_on_every_transport() {
    let trace_file = TraceFile::new();
    let server = server_everything::http("streamableHttp").await;
    let file = trace_file.path().with_file_name("calls.json");
    std::fs::write(&file, calls().to_string()).unwrap();
    let words = ["--calls", file.to_str().unwrap()];
    let seen = recorded(&trace_file, &server.url, "python_calls.py", "legacy", &words).await;
    server.stop().await;
    let expected = counted(&seen);
    let text = expected.to_string();
    for part in ["image/png", "sampled", "Ada", "progress", "blob"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!(expected[10][1], json!([1, 0]), "the quick one overtook the slow one");
    let (rehearse, trace) = (rehearse().to_str().unwrap().to_owned(), trace_file.path().display().to_string());
    for (program, client) in clients() {
        // A replay for each, so that each begins with the first answers.
        for (at, era) in [(0, "legacy"), (1, "modern"), (0, "modern"), (2, "legacy")] {
            let server = trace_file.over_http().await;
            let sse = server.url.replace("/mcp", "/sse");
            let mut words = words.to_vec();
            words.extend(&transports(&rehearse, &trace, &server.url, &sse)[at]);
            let script = format!("{client}_calls.{}", extension(client));
            let seen = counted(&run_script(&program, &script, era, &words).await);
            for (call, (seen, expected)) in
                seen.as_array().unwrap().iter().zip(expected.as_array().unwrap()).enumerate()
            {
                assert_eq!(seen, expected, "{client}, {era}, {:?}, call {call}", &words[2..]);
            }
        }
    }
}

#[tokio::test]
async fn a_modern_fastmcp_recording_replays_to_other_sdks_in_both_eras() {
    let trace_file = TraceFile::new();
    let server = sdk_server(&python("python"), "fastmcp_server.py", "http").await;
    let mut expected = recorded(&trace_file, &server.url, "python_client.py", "modern", &[]).await;
    server.stop().await;
    assert_eq!((&expected["ask"], &expected["sample"]), (&json!("accept: Ada"), &json!("sampled")));
    let without_version = |seen: &mut Value| seen["protocol_version"] = Value::Null;
    without_version(&mut expected);
    let served = trace_file.over_http().await;
    let sse = served.url.replace("/mcp", "/sse");
    let (rehearse, trace) = (rehearse().to_str().unwrap().to_owned(), trace_file.path().display().to_string());
    let transports = transports(&rehearse, &trace, &served.url, &sse);
    for (program, client) in clients() {
        for (transport, era) in [(&transports[0], "legacy"), (&transports[1], "modern"), (&transports[2], "legacy")] {
            let script = format!("{client}_client.{}", extension(client));
            let mut seen = run_script(&program, &script, era, transport).await;
            without_version(&mut seen);
            assert_eq!(seen, expected, "{client}, {era}, {transport:?}");
        }
    }
}
