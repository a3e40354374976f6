//! The command line of MCP Inspector, on every transport and in both eras; the server is a mock of `examples/tiny-server`.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;

use serde_json::{Value, json};
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::installation::{TIMEOUT, folder, node};
use crate::mocked::{file, over_http, rehearse};

/// The program; installs on first use.
fn inspector() -> &'static PathBuf {
    static INSPECTOR: OnceLock<PathBuf> = OnceLock::new();
    INSPECTOR.get_or_init(|| {
        let install = folder().join("inspector/install");
        let output = std::process::Command::new(install).stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "tests/interop/inspector/install failed");
        let text = String::from_utf8(output.stdout).unwrap();
        PathBuf::from(text.lines().last().unwrap())
    })
}

/// What Inspector prints, or its status and its stderr.
async fn inspect(server: &[&str], era: &str, request: &[&str]) -> Result<Value, (i32, String)> {
    // It writes settings into its home.
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(node());
    command.arg(inspector()).arg("--cli").args(server).args(["--protocol-era", era]).args(request);
    command.env("HOME", home.path()).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(TIMEOUT, command.output()).await.expect("Inspector hangs").unwrap();
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err((output.status.code().unwrap_or(-1), stderr));
    }
    Ok(serde_json::from_slice(&output.stdout).unwrap())
}

/// The arguments of a request, a JSON pointer into the answer, and the expected value.
fn tour() -> [(&'static [&'static str], &'static str, Value); 7] {
    [
        (&["--method", "tools/list"], "/tools/0/name", json!("echo")),
        (
            &["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hello"],
            "/content/0/text",
            json!("hello"),
        ),
        (
            &["--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=2", "b=40"],
            "/structuredContent",
            json!({"sum": 42}),
        ),
        (&["--method", "resources/list"], "/resources/0/uri", json!("tiny://greeting")),
        (
            &["--method", "resources/read", "--uri", "tiny://greeting"],
            "/contents/0/text",
            json!("Hello from tiny-server"),
        ),
        (&["--method", "prompts/list"], "/prompts/0/name", json!("greet")),
        (
            &["--method", "prompts/get", "--prompt-name", "greet", "--prompt-args", "who=Ada"],
            "/messages/0/content/text",
            json!("Hello Ada"),
        ),
    ]
}

#[tokio::test]
async fn inspector_sees_and_uses_everything_that_a_mock_offers() {
    let server = over_http().await;
    let (sse, file) = (server.url.replace("/mcp", "/sse"), file());
    let stdio = [rehearse().to_str().unwrap(), "mock", file.to_str().unwrap()];
    let http = [server.url.as_str(), "--transport", "http"];
    let sse = [sse.as_str(), "--transport", "sse"];
    // HTTP+SSE has no other era.
    for (server, era) in
        [(&stdio, "legacy"), (&stdio, "modern"), (&http, "legacy"), (&http, "modern"), (&sse, "legacy")]
    {
        let mut runs = JoinSet::new();
        for (request, pointer, expected) in tour() {
            let server: Vec<String> = server.iter().map(|&word| word.to_owned()).collect();
            runs.spawn(async move {
                let server: Vec<&str> = server.iter().map(String::as_str).collect();
                let seen = inspect(&server, era, request).await;
                let seen = seen.unwrap_or_else(|error| panic!("{server:?}, era {era}, {request:?}: {error:?}"));
                assert_eq!(seen.pointer(pointer), Some(&expected), "{server:?}, era {era}, {request:?}: {seen}");
            });
        }
        runs.join_all().await;
    }
}

#[tokio::test]
async fn inspector_prints_the_error_of_an_unknown_resource() {
    let file = file();
    let stdio = [rehearse().to_str().unwrap(), "mock", file.to_str().unwrap()];
    for era in ["legacy", "modern"] {
        let request = ["--method", "resources/read", "--uri", "tiny://greetin"];
        let (status, stderr) = inspect(&stdio, era, &request).await.unwrap_err();
        assert_ne!(status, 0);
        assert!(stderr.contains("there is no resource tiny://greetin; did you mean tiny://greeting?"), "{stderr}");
    }
}
