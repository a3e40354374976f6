//! A table of what clients of other projects see of each fault of a mock, on every transport.
//!
//! The table is `faults.txt`; `UPDATE_FAULTS=1` rewrites it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rehearsal::mock::MockServer;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::clients::Era;
use crate::installation::{folder, node, python};
use crate::mocked::rehearse;
use crate::rmcp_client;

/// Every fault that a mock knows.
const FAULTS: [&str; 25] = [
    "{ delay: 20ms }",
    "hang",
    "disconnect_before",
    "disconnect_during",
    "disconnect_after",
    "half_line",
    "malformed_json",
    "invalid_utf8",
    "invalid_base64",
    "wrong_id",
    "duplicate_answer",
    "answer_after_cancel",
    "{ noise_on_stdout: [Listening] }",
    "{ flood_of_stderr: 300000 }",
    "{ oversize: 1000000 }",
    "{ slow_drip: { bytes: 64, every: 1ms } }",
    "{ exit: 3 }",
    "{ http: { status: 401, www_authenticate: Bearer } }",
    "{ http: { status: 404 } }",
    "{ http: { status: 429, retry_after: 2 } }",
    "{ http: { status: 500 } }",
    "{ http: { status: 502, headers: { server: nginx } } }",
    "sse_cut",
    "{ content_type: text/html }",
    "wrong_structured_content",
];

/// Seconds that a client waits for an answer that may never arrive; long enough for a busy machine.
const ANSWER_TIMEOUT: u64 = 8;

fn mock(fault: &str) -> String {
    format!(
        "tools:\n  - name: t\n    output_schema: {{ type: object, properties: {{ n: {{ type: integer }} }} }}\n    \
         faults: [{{ fault: {fault}, call: 1 }}]\n    \
         answers:\n      - content: [{{ type: text, text: hello }}, {{ type: image, data: AAAA, mime_type: image/png }}]\n        \
         structured_content: {{ n: 1 }}\n"
    )
}

/// A way to reach a mock: `stdio`, `http` or `sse`, and the era.
const WAYS: [(&str, &str); 4] = [("stdio", "legacy"), ("http", "legacy"), ("http", "modern"), ("sse", "legacy")];

/// Everything that one client sees, by the name of the case.
fn seen_by(program: &Path, script: &str) -> Vec<(String, String)> {
    let files = tempfile::tempdir().unwrap();
    let (mut cases, mut servers) = (Vec::new(), Vec::new());
    for (at, fault) in FAULTS.into_iter().enumerate() {
        for (transport, era) in WAYS {
            let name = format!("{fault} {transport} {era}");
            let mut case = json!({"name": name, "era": era, "patience": ANSWER_TIMEOUT});
            if transport == "stdio" {
                let file = files.path().join(format!("{at}.mock.yaml"));
                std::fs::write(&file, mock(fault)).unwrap();
                case["stdio"] = json!([rehearse(), "mock", file]);
            } else {
                let server = MockServer::from_text(&mock(fault)).unwrap();
                case[transport] = if transport == "sse" { server.sse_url() } else { server.url() }.into();
                servers.push(server);
            }
            cases.push(case);
        }
    }
    let mut client = Command::new(program);
    client.arg(folder().join("clients").join(script)).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut client = client.stderr(Stdio::null()).spawn().unwrap();
    client.stdin.take().unwrap().write_all(json!(cases).to_string().as_bytes()).unwrap();
    let output = client.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let seen = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        let words: Vec<_> = value["seen"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
        (value["name"].as_str().unwrap().to_owned(), words.join(", then "))
    };
    let seen: Vec<_> = lines.lines().map(seen).collect();
    assert_eq!(seen.len(), cases.len(), "{script} stopped early: {:?}", output.status);
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_is_seen_by_the_official_clients_on_every_transport() {
    let [python, typescript] = tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            let python = scope.spawn(|| seen_by(&python("python"), "python_faults.py"));
            let typescript = scope.spawn(|| seen_by(&node(), "typescript_faults.mjs"));
            [python.join().unwrap(), typescript.join().unwrap()]
        })
    });
    let mut table = String::from(
        "# What the official clients see of a fault, and of the next call. UPDATE_FAULTS=1 writes this.\n",
    );
    for fault in FAULTS {
        writeln!(table, "{fault}").unwrap();
        for (transport, era) in WAYS {
            let name = format!("{fault} {transport} {era}");
            let words = |seen: &[(String, String)]| seen.iter().find(|(case, _)| *case == name).unwrap().1.clone();
            let (python, mut typescript) = (words(&python), words(&typescript));
            // It is a matter of timing whether it notices that the server no longer reads the second call.
            if (fault, transport) == ("disconnect_after", "sse") {
                typescript = typescript.replace("then silence", "then error");
            }
            writeln!(table, "  {transport:<5} {era}  Python: {python}; TypeScript: {typescript}").unwrap();
        }
    }
    let kept = folder().join("faults.txt");
    if std::env::var_os("UPDATE_FAULTS").is_some() {
        std::fs::write(&kept, &table).unwrap();
    }
    assert_eq!(table, std::fs::read_to_string(kept).unwrap());
}

/// What the Rust SDK sees of one fault: `error`, or the text of the answer.
struct SeenFault {
    fault: &'static str,
    /// `None`: no answer within the time limit.
    legacy: Option<&'static str>,
    modern: Option<&'static str>,
}

fn simple_mock(fault: &str) -> String {
    format!(
        "faults: [{{ fault: {fault}, method: tools/call, call: 1 }}]\n\
         tools: [{{ name: t, answers: [{{ text: hello }}] }}]"
    )
}

const SEEN: [SeenFault; 9] = [
    SeenFault { fault: "{ delay: 20ms }", legacy: Some("hello"), modern: Some("hello") },
    SeenFault { fault: "duplicate_answer", legacy: Some("hello"), modern: Some("hello") },
    SeenFault { fault: "sse_cut", legacy: Some("hello"), modern: Some("error") },
    SeenFault { fault: "disconnect_before", legacy: Some("error"), modern: Some("error") },
    SeenFault { fault: "disconnect_during", legacy: Some("error"), modern: Some("error") },
    SeenFault { fault: "disconnect_after", legacy: Some("hello"), modern: Some("hello") },
    SeenFault { fault: "malformed_json", legacy: Some("error"), modern: Some("error") },
    SeenFault { fault: "{ http: { status: 500 } }", legacy: Some("error"), modern: Some("error") },
    SeenFault { fault: "hang", legacy: None, modern: None },
];

#[tokio::test]
async fn the_rust_sdk_over_http() {
    for SeenFault { fault, legacy, modern } in SEEN {
        for (era, expected) in [(Era::Legacy, legacy), (Era::Modern, modern)] {
            let server = MockServer::from_text(&simple_mock(fault)).unwrap();
            let client = rmcp_client::over_http(&server.url(), era, None).await;
            let limit = if expected.is_some() { Duration::from_secs(20) } else { Duration::from_millis(500) };
            let answer = timeout(limit, client.call("t", json!({}))).await;
            let seen = match &answer {
                Ok(Ok(text)) => Some(text.as_str()),
                Ok(Err(_)) => Some("error"),
                Err(_) => None,
            };
            assert_eq!(seen, expected, "{fault}, era {era:?}: {answer:?}");
        }
    }
}
