//! Clients of other projects: how to run them, and what they see of a server that offers everything.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use crate::installation::{TIMEOUT, folder};

/// How a client chooses the era.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Era {
    /// The client probes the server.
    Auto,
    /// With a handshake.
    Legacy,
    /// Without one.
    Modern,
}

impl Era {
    pub(crate) const ALL: [Era; 3] = [Era::Auto, Era::Legacy, Era::Modern];

    /// The negotiated version.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Era::Auto | Era::Modern => "2026-07-28",
            Era::Legacy => "2025-11-25",
        }
    }
}

/// The `--era` arguments of the scripts in `clients/`, each with the negotiated version.
pub(crate) const ERAS: [(&str, &str); 3] = [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("modern", "2026-07-28")];

/// The output of a client that supports everything.
pub(crate) fn everything(version: &str) -> Value {
    json!({
        "protocol_version": version,
        "tools": ["echo", "add", "slow", "log", "fail", "ask", "sample", "roots", "picture", "touch"],
        "echo": "hello",
        "add": "42",
        "unknown": {"kind": "protocol_error", "code": -32602, "message": "unknown tool \"no_such_tool\""},
        "progress": 3,
        "ask": "Hello, Ada!",
        "sample": "model answered: sampled",
        "roots": "file:///project",
        "resource": "Hello from tiny-server",
        "prompt": "Hello Ada",
        "completion": ["Ada", "Alan"],
        "error": null,
    })
}

/// Runs a client script, and returns its JSON output.
pub(crate) async fn run_script(program: &Path, script: &str, era: &str, transport: &[&str]) -> Value {
    let mut command = Command::new(program);
    command.arg(folder().join("clients").join(script)).args(["--era", era]).args(transport);
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = timeout(TIMEOUT, output).await.expect("the client hangs").unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr, "", "{script} {transport:?}, era {era} complains");
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}
