//! Servers generated from recordings of real ones, used by clients of other projects.
//!
//! ```text
//! real server ⇄ rehearse record ⇄ client      then      rehearse generate ──► mock, Python, Rust ⇄ clients of other projects
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use rehearsal::Client;
use rehearsal::client::{ClientBuilder, Protocol};
use rehearsal::core::exchange::Side;
use rehearsal::core::message::Reply;
use rehearsal::core::trace::{Part, RecordedCall, TraceReader};
use serde_json::{Value, json};

use crate::clients::{Era, run_script};
use crate::installation::{TIMEOUT, folder, node, npm_server, python};
use crate::recorded::rehearse;
use crate::rmcp_client;

/// The program of `examples/tiny-server`, beside which everything else is built.
const TINY: &str = env!("CARGO_BIN_EXE_tiny");

/// A folder with a recording in it.
pub(crate) struct Trace {
    folder: tempfile::TempDir,
}

impl Trace {
    pub(crate) fn new() -> Trace {
        Trace { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// The command line that starts a server and records it.
    fn recorder(&self, server: impl IntoIterator<Item = impl Into<OsString>>) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![rehearse().into()];
        words.extend(["record", "-q", "--no-redact", "-o"].map(OsString::from));
        words.extend([self.path("trace.jsonl").into_os_string(), "--".into()]);
        words.extend(server.into_iter().map(Into::into));
        words
    }

    fn client(&self, server: impl IntoIterator<Item = impl Into<OsString>>) -> ClientBuilder {
        let words = self.recorder(server);
        Client::command(&words[0]).args(&words[1..]).timeout(TIMEOUT)
    }

    /// The recorded client requests with their responses; only methods that the SDKs have functions for.
    fn calls(&self) -> Vec<RecordedCall> {
        let file = BufReader::new(File::open(self.path("trace.jsonl")).unwrap());
        let calls = TraceReader::new(file).filter_map(|part| match part.unwrap() {
            Part::Call(call) if call.asker == Side::Client => Some(*call),
            _ => None,
        });
        let methods = ["tools/list", "resources/list", "prompts/list", "tools/call", "resources/read", "prompts/get"];
        let calls = calls.filter(|call| call.response.is_some());
        calls.filter(|call| methods.contains(&call.request.message.method().unwrap().as_str())).collect()
    }

    /// Runs `rehearse generate`, and returns the command line of the generated server.
    pub(crate) fn generate(&self, kind: &str) -> Vec<String> {
        let output = self.name(&format!("generated.{kind}"));
        let mut generate = Command::new(rehearse());
        generate.args(["generate", "--as", kind, "-o", &output]).arg(self.path("trace.jsonl"));
        let ran = generate.stdin(Stdio::null()).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        match kind {
            "mock" => {
                let check = Command::new(rehearse()).args(["check", &output]).output().unwrap();
                assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
                vec![rehearse().to_str().unwrap().to_owned(), "mock".to_owned(), output]
            }
            "python" => vec![python("python").to_str().unwrap().to_owned(), output],
            _ => vec![built(Path::new(&output)).to_str().unwrap().to_owned()],
        }
    }
}

/// Builds a generated project with what the workspace has compiled, downloaded and locked already.
pub(crate) fn built(project: &Path) -> PathBuf {
    let sources = ["preceding", "exact", "main", "matching", "recorded"]
        .map(|name| project.join("src").join(name).with_extension("rs"));
    let format = Command::new("rustfmt").args(["--edition", "2024", "--check"]).args(&sources).output();
    if let Ok(format) = format {
        assert!(format.status.success(), "not formatted:\n{}", String::from_utf8_lossy(&format.stdout));
    }
    let workspace = folder().join("../..");
    std::fs::copy(workspace.join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
    let target = Path::new(TINY).parent().unwrap().parent().unwrap();
    // The next project may have the same name.
    static BUILDING: Mutex<()> = Mutex::new(());
    let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    // Cargo treats the two as one project, and files older than its last build as unchanged.
    let main = File::options().append(true).open(&sources[2]).unwrap();
    main.set_modified(SystemTime::now()).unwrap();
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--offline", "--target-dir"]).arg(target).current_dir(project);
    let ran = build.stdin(Stdio::null()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let manifest = std::fs::read_to_string(project.join("Cargo.toml")).unwrap();
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).unwrap().trim_matches('"').to_owned();
    let program = project.join("server");
    std::fs::copy(target.join("debug").join(name), &program).unwrap();
    program
}

/// Everything that a tool can answer with, of the official reference server.
async fn everything() -> Trace {
    let trace = Trace::new();
    let server: [OsString; 3] = [node().into(), npm_server("server-everything").into(), "stdio".into()];
    let client =
        trace.client(server).protocol(Protocol::Legacy("2025-11-25".parse().unwrap())).connect().await.unwrap();
    client.list_tools().await.unwrap();
    client.list_resources().await.unwrap();
    client.list_prompts().await.unwrap();
    for (tool, arguments) in [
        ("echo", json!({"message": "hello"})),
        ("echo", json!({"message": "{{ 1 }} \"quoted\" \\ it's\n\ttwo lines 😀 {% endraw %}"})),
        ("get-sum", json!({"a": 1, "b": 2.5})),
        ("get-sum", json!({"a": "no number"})),
        ("get-tiny-image", json!({})),
        ("get-structured-content", json!({"location": "Chicago"})),
        ("get-annotated-message", json!({"messageType": "error", "includeImage": true})),
        ("get-resource-reference", json!({"resourceType": "Text", "resourceId": 1})),
        ("get-resource-reference", json!({"resourceType": "Blob", "resourceId": 2})),
        ("get-resource-links", json!({"count": 2})),
    ] {
        client.call_tool(tool, arguments).await.unwrap();
    }
    client.read_resource("demo://resource/dynamic/blob/1").await.unwrap();
    client.get_prompt("simple-prompt", json!({})).await.unwrap();
    client.get_prompt("args-prompt", json!({"city": "Oslo"})).await.unwrap();
    // Twice, with different contents: the resource contains its time of creation.
    for _ in 0..2 {
        client.read_resource("demo://resource/dynamic/text/1").await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    }
    client.close().await;
    trace
}

/// Structured content and failures of a server on the Python SDK.
async fn time() -> Trace {
    let trace = Trace::new();
    let server: [OsString; 3] = [python("mcp-server-time").into(), "--local-timezone".into(), "UTC".into()];
    let client = trace.client(server).connect().await.unwrap();
    client.list_tools().await.unwrap();
    for zone in ["Europe/Oslo", "Mars/Base"] {
        let arguments = json!({"source_timezone": zone, "target_timezone": "Asia/Tokyo", "time": "12:30"});
        client.call_tool("convert_time", arguments).await.unwrap();
    }
    client.close().await;
    trace
}

/// A server on FastMCP, in the stateless era.
async fn fastmcp() -> Trace {
    let trace = Trace::new();
    let script = folder().join("servers/fastmcp_server.py");
    let server: [OsString; 3] = [python("python").into(), script.into(), "stdio".into()];
    let client = trace.client(server).modern().connect().await.unwrap();
    client.list_tools().await.unwrap();
    client.list_resources().await.unwrap();
    client.list_prompts().await.unwrap();
    client.call_tool("echo", json!({"message": "hello"})).await.unwrap();
    client.call_tool("add", json!({"a": 2, "b": 40})).await.unwrap();
    client.call_tool("fail", json!({})).await.unwrap();
    client.read_resource("tiny://greeting").await.unwrap();
    client.get_prompt("greet", json!({"who": "Ada"})).await.unwrap();
    client.close().await;
    trace
}

/// A recording that was converted from the format of the Python interceptor.
fn python_dialect() -> Trace {
    let trace = Trace::new();
    let fixture = folder().join("../../fixtures/traces/python.jsonl");
    let mut convert = Command::new(rehearse());
    convert.args(["trace", "convert"]).arg(fixture).arg(trace.path("trace.jsonl"));
    assert!(convert.stdin(Stdio::null()).status().unwrap().success());
    trace
}

/// The SDK of a client.
#[derive(Clone, Copy, Debug)]
enum Sdk {
    Python,
    TypeScript,
    Rust,
}

/// Sends the recorded requests to a server, one after the other, and returns the answers.
async fn answers(sdk: Sdk, era: Era, server: &[String], trace: &Trace, calls: &[Value]) -> Vec<Value> {
    let file = trace.name("calls.json");
    std::fs::write(&file, Value::from(calls.to_vec()).to_string()).unwrap();
    let word = match era {
        Era::Auto => "auto",
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    };
    let mut words = vec!["--calls", &file, "--stdio"];
    words.extend(server.iter().map(String::as_str));
    let answers = match sdk {
        Sdk::Python => run_script(&python("python"), "python_calls.py", word, &words).await,
        Sdk::TypeScript => run_script(&node(), "typescript_calls.mjs", word, &words).await,
        Sdk::Rust => {
            let mut command = tokio::process::Command::new(&server[0]);
            command.args(&server[1..]);
            let client = rmcp_client::over_stdio(command, era, None).await;
            let mut answers = Vec::new();
            for call in calls {
                answers.push(client.answer(call["method"].as_str().unwrap(), &call["params"]).await);
            }
            client.close().await;
            answers.into()
        }
    };
    answers.as_array().unwrap().clone()
}

/// An answer without what a version or an SDK adds.
pub(crate) fn plain(method: &str, answer: &Value) -> Value {
    if let Some(error) = answer.get("error") {
        return json!({"code": error["code"], "message": error["message"]});
    }
    let mut result = answer["result"].clone();
    let list = method.split('/').next().unwrap().to_owned();
    if let Some(items) = result.get(&list).and_then(Value::as_array).filter(|_| method.ends_with("/list")) {
        let keys = ["name", "uri", "title", "description", "inputSchema", "outputSchema", "mimeType", "arguments"];
        let kept =
            |item: &Value| keys.iter().map(|key| (key.to_string(), without_nulls(&item[*key]))).collect::<Value>();
        return items.iter().map(kept).collect();
    }
    let object = result.as_object_mut().unwrap();
    for key in ["_meta", "resultType", "ttlMs", "cacheScope"] {
        object.remove(key);
    }
    // Both mean the same.
    if object.get("isError") == Some(&json!(false)) {
        object.remove("isError");
    }
    without_nulls(&result)
}

/// Removes `"required": false` and `null`, which mean the same as an absent member.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept =
                fields.iter().filter(|(key, value)| !(value.is_null() || *key == "required" && **value == false));
            kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        // Numbers are numbers: Python and Rust write 1.0 where others write 1.
        Value::Number(number) => json!(number.as_f64()),
        other => other.clone(),
    }
}

/// Asserts that a server answers like the recording, with each client.
async fn answers_like(trace: &Trace, server: &[String], clients: &[(Sdk, Era)]) {
    let recorded = trace.calls();
    let calls: Vec<Value> = recorded
        .iter()
        .map(|call| {
            let params = call.request.message.params().map(|params| params.value().unwrap()).unwrap_or_default();
            let mut params = params.as_object().cloned().unwrap_or_default();
            params.remove("_meta");
            json!({"method": call.request.message.method().unwrap().as_str(), "params": params})
        })
        .collect();
    let expected: Vec<Value> = recorded
        .iter()
        .map(|call| {
            let answer = match &call.response.as_ref().unwrap().message.as_response().unwrap().reply {
                Reply::Result(result) => json!({"result": result.value().unwrap()}),
                Reply::Error(error) => json!({"error": {"code": error.code, "message": error.message}}),
            };
            plain(call.request.message.method().unwrap().as_str(), &answer)
        })
        .collect();
    assert!(!expected.is_empty());
    for (sdk, era) in clients {
        let seen = answers(*sdk, *era, server, trace, &calls).await;
        assert_eq!(seen.len(), expected.len());
        for ((call, seen), expected) in calls.iter().zip(&seen).zip(&expected) {
            let method = call["method"].as_str().unwrap();
            let context = format!("{sdk:?}, {era:?}, {server:?}: {call}");
            assert_eq!(plain(method, seen), *expected, "{context}");
        }
        // An unrecorded request is refused.
        let unknown = json!({"method": "tools/call", "params": {"name": "no_such_tool", "arguments": {}}});
        let refused = answers(*sdk, *era, server, trace, &[unknown]).await;
        assert_eq!(refused[0]["error"]["code"], -32602, "{sdk:?}, {server:?}: {refused:?}");
    }
}

const LEGACY: [(Sdk, Era); 3] = [(Sdk::Python, Era::Legacy), (Sdk::TypeScript, Era::Legacy), (Sdk::Rust, Era::Legacy)];
const MODERN: [(Sdk, Era); 3] = [(Sdk::Python, Era::Modern), (Sdk::TypeScript, Era::Modern), (Sdk::Rust, Era::Modern)];

#[tokio::test]
async fn servers_generated_from_the_reference_server_answer_like_it() {
    let trace = everything().await;
    let mock = trace.generate("mock");
    answers_like(&trace, &mock, &LEGACY).await;
    answers_like(&trace, &trace.generate("python"), &LEGACY).await;
    answers_like(&trace, &trace.generate("rust"), &LEGACY).await;
    // In the other era too.
    answers_like(&trace, &mock, &MODERN).await;
}

#[tokio::test]
async fn servers_generated_from_a_fastmcp_server_answer_like_it() {
    let trace = fastmcp().await;
    answers_like(&trace, &trace.generate("mock"), &MODERN).await;
    answers_like(&trace, &trace.generate("python"), &MODERN).await;
    answers_like(&trace, &trace.generate("rust"), &MODERN).await;
}

#[tokio::test]
async fn servers_generated_from_the_time_server_answer_like_it() {
    let trace = time().await;
    answers_like(&trace, &trace.generate("mock"), &LEGACY).await;
    answers_like(&trace, &trace.generate("python"), &LEGACY).await;
}

#[tokio::test]
async fn servers_generated_from_a_python_interceptor_file_answer_like_it() {
    let trace = python_dialect();
    let clients = [(Sdk::Python, Era::Legacy), (Sdk::Rust, Era::Modern)];
    answers_like(&trace, &trace.generate("python"), &clients).await;
}

/// Writes a script that starts and records a server, for a client that starts its server itself.
fn recording(trace: &Trace, script: &str) -> String {
    let script = folder().join("servers").join(script);
    let server: [OsString; 3] = [python("python").into(), script.into(), "stdio".into()];
    // The clients' command lines accept no `--`, and servers print to stderr that they are ready.
    let recorder = trace.recorder(server);
    let quoted: Vec<_> = recorder.iter().map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    std::fs::write(trace.path("record.sh"), format!("exec {} 2>/dev/null\n", quoted.join(" "))).unwrap();
    trace.name("record.sh")
}

#[tokio::test]
async fn generated_servers_send_requests_and_notifications_like_the_real_server() {
    for (era, kind) in [("legacy", "mock"), ("modern", "mock"), ("legacy", "python"), ("modern", "rust")] {
        let trace = Trace::new();
        let words = ["--stdio", "/bin/sh", &recording(&trace, "fastmcp_server.py")];
        let mut expected = run_script(&python("python"), "python_client.py", era, &words).await;
        let mock = trace.generate(kind);
        // The mock has its own error for an unknown tool, and its own version.
        let strip = |seen: &mut Value| ["unknown", "protocol_version"].iter().for_each(|key| seen[*key] = Value::Null);
        strip(&mut expected);
        assert_eq!(expected["ask"], "accept: Ada");
        let mut words = vec!["--stdio"];
        words.extend(mock.iter().map(String::as_str));
        for other in ["legacy", "modern"] {
            for (program, client) in [(python("python"), "python_client.py"), (node(), "typescript_client.mjs")] {
                let mut seen = run_script(&program, client, other, &words).await;
                strip(&mut seen);
                assert_eq!(seen, expected, "{kind}, {client}, recorded {era}, replayed {other}");
            }
        }
    }
}

#[tokio::test]
async fn generated_servers_send_audio_progress_and_log_messages() {
    let trace = Trace::new();
    let calls = json!([
        {"method": "tools/list"},
        {"method": "tools/call", "params": {"name": "beep"}},
        {"method": "tools/call", "params": {"name": "talk"}},
    ]);
    std::fs::write(trace.path("calls.json"), calls.to_string()).unwrap();
    let file = trace.name("calls.json");
    let results = async |server: &[String], era: &str| {
        let mut words = vec!["--calls", &file, "--stdio"];
        words.extend(server.iter().map(String::as_str));
        let answers = run_script(&python("python"), "python_calls.py", era, &words).await;
        json!([answers[1]["result"]["content"], answers[2]["result"]["content"], answers[2]["received"]])
    };
    let direct = ["/bin/sh".to_owned(), recording(&trace, "sounds.py")];
    let expected = results(&direct, "legacy").await;
    assert_eq!(expected[0][0]["type"], "audio");
    assert_eq!(expected[2].as_array().unwrap().len(), 4, "{expected}");
    for kind in ["mock", "python", "rust"] {
        let server = trace.generate(kind);
        for era in ["legacy", "modern"] {
            assert_eq!(results(&server, era).await, expected, "{kind}, {era}");
        }
    }
}

#[tokio::test]
async fn servers_generated_from_the_reference_server_declare_and_subscribe_like_it() {
    let trace = Trace::new();
    let server: [OsString; 3] = [node().into(), npm_server("server-everything").into(), "stdio".into()];
    let client =
        trace.client(server).protocol(Protocol::Legacy("2025-11-25".parse().unwrap())).connect().await.unwrap();
    client.list_resources().await.unwrap();
    client.list_resource_templates().await.unwrap();
    let uri = json!({"uri": "demo://resource/dynamic/text/1"});
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        client.request(method, uri.clone()).await.unwrap();
    }
    client.close().await;
    for kind in ["mock", "python", "rust"] {
        let mut verify = Command::new(rehearse());
        verify.arg("verify").arg(trace.path("trace.jsonl"));
        if kind == "mock" {
            // A mock of a recording has no tasks and declares none; `generate` reports that.
            verify.args(["--ignore", "$.result.capabilities.tasks"]);
        }
        verify.arg("--").args(trace.generate(kind));
        let ran = verify.stdin(Stdio::null()).output().unwrap();
        let output = String::from_utf8(ran.stdout).unwrap() + &String::from_utf8(ran.stderr).unwrap();
        assert!(output.contains("5 as recorded, 0 different, 0 skipped"), "{kind}: {output}");
    }
}

/// Runs `rehearse verify` on a server, and returns its status and output.
pub(crate) fn verified(trace: &Trace, more: &[&str], server: &[OsString]) -> (Option<i32>, String) {
    let mut verify = Command::new(rehearse());
    verify.arg("verify").arg(trace.path("trace.jsonl")).args(more).arg("--").args(server).stdin(Stdio::null());
    let ran = verify.output().unwrap();
    let output = String::from_utf8(ran.stdout).unwrap() + &String::from_utf8(ran.stderr).unwrap();
    (ran.status.code(), output)
}

/// The resources of the reference server contain the time.
const TIMES: [&str; 4] =
    ["--ignore", "$.result.contents[*]['text','blob']", "--ignore", "$.result.content[*].resource"];

#[tokio::test]
async fn a_real_server_is_verified_against_its_own_recording() {
    let trace = everything().await;
    let server: [OsString; 3] = [node().into(), npm_server("server-everything").into(), "stdio".into()];
    let verify = |more: &[&str]| verified(&trace, more, &server);
    let (status, output) = verify(&[]);
    assert_eq!(status, Some(1), "{output}");
    assert!(output.contains("~ tools/call get-resource-reference"), "{output}");
    let (status, output) = verify(&TIMES);
    assert_eq!(status, Some(0), "{output}");
    // Also in an older version: members that it does not have are no differences.
    let (status, output) = verify(&[&["--protocol", "2024-11-05"][..], &TIMES].concat());
    assert_eq!(status, Some(0), "{output}");
    // After an update the server equals the recording, except for the times.
    let (status, output) = verify(&["--update"]);
    assert_eq!(status, Some(0), "{output}");
    let (status, output) = verify(&TIMES);
    assert_eq!(status, Some(0), "{output}");
}

#[tokio::test]
async fn a_recording_of_one_era_is_verified_in_the_other() {
    let script = folder().join("servers/fastmcp_server.py");
    let server: [OsString; 3] = [python("python").into(), script.into(), "stdio".into()];
    let trace = fastmcp().await;
    for protocol in ["2025-11-25", "2024-11-05", "2026-07-28"] {
        let (status, output) = verified(&trace, &["--protocol", protocol], &server);
        assert_eq!(status, Some(0), "{protocol}: {output}");
    }
    // The answers of another version are written as the recording has them.
    let (status, output) = verified(&trace, &["--update", "--protocol", "2025-11-25"], &server);
    assert_eq!(status, Some(0), "{output}");
    let (status, output) = verified(&trace, &[], &server);
    assert_eq!(status, Some(0), "{output}");
    let check = Command::new(rehearse()).args(["trace", "check"]).arg(trace.path("trace.jsonl")).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}
