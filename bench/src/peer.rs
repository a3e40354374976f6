//! Other people's clients against the same server.

use std::error::Error;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use tokio::process::Command;
use tokio::runtime::Runtime;

use crate::echo;
use crate::measure::Contest;
use crate::stdio::{BARE, Bare, arguments};
use crate::table::Table;

/// What rmcp writes for the call.
const REQUEST: &[u8] =
    br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}}"#;

pub(crate) fn measure(table: &mut Table, runtime: &Runtime, calls: u32) -> Result<(), Box<dyn Error>> {
    let _entered = runtime.enter();
    let mut command = Command::new(std::env::current_exe()?);
    let command = command.arg(echo::ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let pipes = (child.stdout.take().ok_or("no stdout")?, child.stdin.take().ok_or("no stdin")?);
    let client = runtime.block_on(().serve(pipes))?;
    let mut bare = Bare::start(REQUEST.to_vec())?;
    let contest = Contest::new("rmcp 3.8 over stdio, 2025-11-25", BARE);
    table.measure(contest, || sequential(runtime, &client, calls), || bare.sequential())
}

fn sequential(
    runtime: &Runtime,
    client: &RunningService<RoleClient, ()>,
    calls: u32,
) -> Result<Duration, Box<dyn Error>> {
    // Its calls take a map.
    let arguments = serde_json::to_value(arguments())?.as_object().cloned().unwrap_or_default();
    runtime.block_on(async {
        let started = Instant::now();
        for _ in 0..calls {
            client.call_tool(CallToolRequestParams::new("echo").with_arguments(arguments.clone())).await?;
        }
        Ok(started.elapsed() / calls)
    })
}
