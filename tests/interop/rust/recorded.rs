//! Real servers and real clients with `rehearse record` between them.
//!
//! ```text
//! client ⇄ tee ⇄ rehearse record ⇄ tee ⇄ server      both sides of the recorder carry the same bytes
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rehearsal::Client;
use rehearsal::client::{ClientBuilder, ClientHandlers};
use rehearsal::core::exchange::Side;
use rehearsal::core::message::Method;
use rehearsal::core::protocol::Revision;
use rehearsal::core::trace::{EntryBody, Part, PlacedMessage, RecordedCall, SessionEnd, TraceReader};
use rehearsal::record::{Recorder, intercept};
use rmcp::transport::TokioChildProcess;
use serde_json::json;

use crate::clients::{self, Era};
use crate::installation::{TIMEOUT, folder, node, npm_server, python};
use crate::mocked;
pub(crate) use crate::mocked::rehearse;
use crate::rmcp_client;

/// Copies both directions to files: `sh -c TEE sh NAME COMMAND…`.
const TEE: &str = r#"name=$1; shift; tee "$name.in" | "$@" | tee "$name.out""#;

/// A recorded server, with a copy of the bytes on both sides of the recorder.
struct Recorded {
    folder: tempfile::TempDir,
}

/// The command line that starts a recorded server between two `tee`s, which write to the current folder.
fn watched(trace: &Path, server: impl IntoIterator<Item = impl Into<OsString>>) -> Vec<OsString> {
    let tee = |name: &str| ["sh", "-c", TEE, "sh", name].map(OsString::from);
    let mut words = Vec::from(tee("client"));
    words.push(rehearse().into());
    words.extend(["record", "-q", "--no-redact", "-o"].map(OsString::from));
    words.extend([trace.into(), "--".into()]);
    words.extend(tee("server"));
    words.extend(server.into_iter().map(Into::into));
    words
}

/// Asserts that both sides of the recorder and the trace have the same messages.
fn assert_same(folder: &Path, trace: &Trace) {
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    for (name, side) in [("in", Side::Client), ("out", Side::Server)] {
        let (one, other) = (read(&format!("client.{name}")), read(&format!("server.{name}")));
        assert!(!one.is_empty() && one == other, "{side:?}: {} and {} bytes", one.len(), other.len());
        assert_eq!(String::from_utf8_lossy(&trace.stream(side)), String::from_utf8_lossy(&one), "{side:?}");
    }
}

impl Recorded {
    fn new() -> Recorded {
        Recorded { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn client(&self, server: impl IntoIterator<Item = impl Into<OsString>>) -> ClientBuilder {
        let words = watched(&self.path("trace.jsonl"), server);
        Client::command(&words[0]).args(&words[1..]).current_dir(self.folder.path()).timeout(TIMEOUT)
    }

    /// The trace, after all programs have ended.
    fn trace(&self) -> Trace {
        let trace = Trace::read(&self.path("trace.jsonl"));
        assert_same(self.folder.path(), &trace);
        trace
    }

    /// A script that starts a server, in a folder of its own each time.
    fn start_script(&self, server: impl IntoIterator<Item = impl Into<OsString>>) -> PathBuf {
        let quoted = |word: &OsString| format!("'{}' ", word.to_str().unwrap());
        let words: String = watched(Path::new("trace.jsonl"), server).iter().map(quoted).collect();
        let script = self.path("start");
        let folder = self.folder.path().display();
        // The programs hold the lock until they exit.
        let lines = format!("cd \"$(mktemp -d '{folder}/start.XXXXXX')\" && exec 3> alive && flock 3 && exec {words}");
        std::fs::write(&script, lines).unwrap();
        script
    }

    /// The folders in which a server was started, once all of them have ended.
    async fn starts(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
        for folder in &folders {
            let alive = File::open(folder.join("alive")).unwrap();
            let over = tokio::task::spawn_blocking(move || alive.lock());
            tokio::time::timeout(TIMEOUT, over).await.expect("the server ends with its client").unwrap().unwrap();
        }
        folders
    }
}

/// One session, as its trace has it.
#[derive(Default)]
struct Trace {
    calls: Vec<RecordedCall>,
    messages: Vec<(u64, Side, Vec<u8>)>,
    end: Option<SessionEnd>,
    server: Option<String>,
}

impl Trace {
    /// The only session of a file.
    fn read(path: &Path) -> Trace {
        let mut trace = Trace::default();
        for part in TraceReader::new(BufReader::new(File::open(path).unwrap())) {
            match part.unwrap() {
                Part::Start(start) => {
                    assert_eq!(trace.server, None, "one session only");
                    let name = start.server_info.get("name").and_then(|name| name.as_str());
                    trace.server = Some(name.unwrap_or_default().to_owned());
                }
                Part::Call(call) => {
                    let mut keep = |from, PlacedMessage { seq, message, .. }: &PlacedMessage| {
                        trace.messages.push((*seq, from, message.raw().to_vec()));
                    };
                    keep(call.asker, &call.request);
                    call.response.iter().for_each(|response| keep(call.asker.other(), response));
                    trace.calls.push(*call);
                }
                Part::Entry(entry) => {
                    if let EntryBody::Message { from, message, .. } = entry.what {
                        trace.messages.push((entry.seq, from, message.raw().to_vec()));
                    }
                }
                Part::Finish { end, .. } => {
                    trace.end = end;
                    trace.messages.sort_by_key(|(seq, ..)| *seq);
                }
            }
        }
        trace
    }

    /// The messages of one side, one per line.
    fn stream(&self, side: Side) -> Vec<u8> {
        let messages = self.messages.iter().filter(|(_, from, _)| *from == side);
        messages.flat_map(|(_, _, raw)| [&raw[..], b"\n"].concat()).collect()
    }

    fn calls_of(&self, asker: Side, method: &Method) -> usize {
        let requested = |call: &&RecordedCall| call.asker == asker && call.request.message.method() == Some(method);
        self.calls.iter().filter(requested).count()
    }

    fn notifications(&self, method: &Method) -> usize {
        let name = format!("\"{method}\"");
        self.messages.iter().filter(|(_, _, raw)| String::from_utf8_lossy(raw).contains(&name)).count()
    }
}

#[tokio::test]
async fn everything_that_server_everything_does_is_recorded() {
    let recorded = Recorded::new();
    let server = [node().into_os_string(), npm_server("server-everything").into_os_string(), "stdio".into()];
    let answers = ClientHandlers::new()
        .roots([("file:///tmp/interop", "interop")])
        .sampling_text("sampled")
        .elicitation_accept(json!({"name": "Ada", "check": true}));
    let client = recorded.client(server).handlers(answers).connect().await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_11_25);
    while !client.list_tools().await.unwrap().iter().any(|tool| tool.name == "trigger-sampling-request") {}
    client.call_tool("get-tiny-image", json!({})).await.unwrap();
    let slow = client.call("trigger-long-running-operation").arguments(json!({"duration": 0.2, "steps": 2}));
    slow.on_progress(|_| {}).await.unwrap();
    client.call_tool("trigger-sampling-request", json!({"prompt": "hi", "maxTokens": 10})).await.unwrap();
    client.call_tool("trigger-elicitation-request", json!({})).await.unwrap();
    client.call_tool("get-roots-list", json!({})).await.unwrap();
    assert!(client.call_tool("no-such-tool", json!({})).await.unwrap().is_tool_error());
    assert_eq!(client.read_resource("demo://no/such/resource").await.unwrap().error_code(), Some(-32602));
    // Slow ones first, so that the answers come in another order.
    let calls = (0..50).map(|number| {
        let client = client.clone();
        tokio::spawn(async move {
            if number % 10 == 0 {
                let slow = json!({"duration": 0.1, "steps": 1});
                client.call_tool("trigger-long-running-operation", slow).await.unwrap();
            } else {
                let sum = client.call_tool("get-sum", json!({"a": number, "b": 1})).await.unwrap();
                assert_eq!(sum.content(), format!("The sum of {number} and 1 is {}.", number + 1));
            }
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    client.close().await;
    let trace = recorded.trace();
    assert_eq!(trace.server.as_deref(), Some("mcp-servers/everything"));
    assert_eq!(trace.calls_of(Side::Client, &Method::TOOLS_CALL), 56);
    for method in [Method::SAMPLING, Method::ELICITATION, Method::ROOTS_LIST] {
        assert!(trace.calls_of(Side::Server, &method) >= 1, "{method}");
    }
    assert!(trace.notifications(&Method::PROGRESS) >= 2);
    assert!(trace.calls.iter().all(|call| call.response.is_some()));
    let order = |call: &RecordedCall| (call.request.seq, call.response.as_ref().map(|response| response.seq));
    let mut orders: Vec<_> = trace.calls.iter().map(order).collect();
    orders.sort_unstable();
    assert!(!orders.is_sorted_by_key(|(_, response)| *response), "answers came out of order");
    assert!(matches!(trace.end, Some(SessionEnd::ClientClosed { .. })), "{:?}", trace.end);
}

#[tokio::test]
async fn the_time_server_is_recorded_in_both_eras() {
    for modern in [true, false] {
        let recorded = Recorded::new();
        let builder = recorded.client([python("mcp-server-time")]);
        let builder = if modern { builder } else { builder.legacy(Revision::LATEST_LEGACY) };
        let client = builder.connect().await.unwrap();
        assert_eq!(client.revision().has_handshake(), !modern);
        let arguments = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
        let converted = client.call_tool("convert_time", arguments).await.unwrap();
        assert!(converted.content().contains("21:00"), "{}", converted.content());
        client.close().await;
        let trace = recorded.trace();
        let first = if modern { Method::DISCOVER } else { Method::INITIALIZE };
        assert_eq!(trace.calls_of(Side::Client, &first), 1);
        assert_eq!(trace.calls_of(Side::Client, &Method::TOOLS_CALL), 1);
    }
}

#[tokio::test]
async fn a_recorder_changes_nothing_for_the_python_and_typescript_sdks() {
    let (python, node) = (python("python"), node());
    // The TypeScript SDK probes the era of a server in one process, ends it, and starts another process for the session.
    for (program, script, era, version, starts) in [
        (&python, "python_client.py", "legacy", "2025-11-25", 1),
        (&python, "python_client.py", "modern", "2026-07-28", 1),
        (&python, "python_client.py", "auto", "2026-07-28", 1),
        (&node, "typescript_client.mjs", "v1", "2025-11-25", 1),
        (&node, "typescript_client.mjs", "legacy", "2025-11-25", 1),
        (&node, "typescript_client.mjs", "modern", "2026-07-28", 2),
        (&node, "typescript_client.mjs", "auto", "2026-07-28", 2),
    ] {
        let recorded = Recorded::new();
        let start = recorded.start_script(mocked::words());
        let seen = clients::run_script(program, script, era, &["--stdio", "sh", start.to_str().unwrap()]).await;
        assert_eq!(seen, clients::everything(version), "{script}, era {era}");
        let folders = recorded.starts().await;
        assert_eq!(folders.len(), starts, "{script}, era {era}");
        let mut methods = Vec::new();
        for folder in folders {
            let trace = Trace::read(&folder.join("trace.jsonl"));
            assert_same(&folder, &trace);
            assert_eq!(trace.server.as_deref(), Some("tiny-mock"), "{script}, era {era}");
            assert!(matches!(trace.end, Some(SessionEnd::ClientClosed { .. })), "{script}, era {era}: {:?}", trace.end);
            methods.push((trace.calls.len(), trace.notifications(&Method::PROGRESS)));
        }
        methods.sort_unstable();
        // The probed process gets one request.
        assert_eq!(methods[..starts - 1], [(1, 0)][..starts - 1], "{script}, era {era}");
        assert!(methods[starts - 1].0 > 10 && methods[starts - 1].1 >= 3, "{script}, era {era}: {methods:?}");
    }
}

#[tokio::test]
async fn noise_of_a_server_is_forwarded_and_recorded() {
    let recorded = Recorded::new();
    let script = folder().join("servers/noise_on_stdout.py");
    let client = recorded.client([python("python"), script]).connect().await.unwrap();
    client.list_tools().await.unwrap();
    client.close().await;
    let trace = recorded.trace();
    let noise = trace.messages.iter().filter(|(_, from, raw)| *from == Side::Server && !raw.starts_with(b"{")).count();
    assert!(noise > 0);
}

#[tokio::test]
async fn an_application_on_the_rust_sdk_is_recorded_by_wrapping_its_transport() {
    let recorded = Recorded::new();
    let requested = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let hook = requested.clone();
    let recorder = Recorder::builder()
        .trace(recorded.path("trace.jsonl"))
        .on_request(move |method, _| hook.lock().unwrap().push(method.to_string()))
        .on_response(|_, _| panic!("a hook that panics does not break the session"))
        .on_notice(|_| {})
        .build();
    let mut command = mocked::mock();
    command.stderr(Stdio::null());
    let transport = intercept(TokioChildProcess::new(command).unwrap(), &recorder);
    let client = rmcp_client::over(transport, Era::Legacy).await;
    assert_eq!(rmcp_client::tour(client).await, clients::everything("2025-11-25"));
    let trace = Trace::read(&recorded.path("trace.jsonl"));
    for method in [
        Method::INITIALIZE,
        Method::TOOLS_LIST,
        Method::TOOLS_CALL,
        Method::RESOURCES_LIST,
        Method::RESOURCES_READ,
        Method::PROMPTS_LIST,
        Method::PROMPTS_GET,
    ] {
        assert!(trace.calls_of(Side::Client, &method) >= 1, "{method}");
        assert!(requested.lock().unwrap().contains(&method.to_string()), "{method}");
    }
    assert!(trace.calls_of(Side::Server, &Method::SAMPLING) >= 1);
    assert!(trace.calls.iter().all(|call| call.response.is_some()));
    assert_eq!(recorder.summary().sessions, 1);
}
