//! The client for tests without `async`.

use std::future::IntoFuture;

use rehearsal_core::protocol::{Prompt, Resource, Tool};
use rehearsal_wire::StopOutcome;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::client::{Client, ClientBuilder, ClientError, RequestBuilder, ServerResponse};

/// A client for a plain `#[test]`: every call waits for its answer.
///
/// # Panics
///
/// In a tokio runtime, because a blocking call would stop its other tasks; use [`Client`] there.
#[derive(Debug)]
pub struct BlockingClient {
    // Dropped first, because closing the connection needs the runtime.
    client: Client,
    runtime: Runtime,
}

impl BlockingClient {
    /// Starts the server or connects to it.
    pub fn connect(builder: ClientBuilder) -> Result<BlockingClient, ClientError> {
        // A worker thread, so that requests of the server are answered between our calls too.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| ClientError::BadTarget { what: format!("no runtime: {error}") })?;
        let client = runtime.block_on(builder.connect())?;
        Ok(BlockingClient { client, runtime })
    }

    /// The async client, for calls that are passed to [`wait`](BlockingClient::wait).
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Waits for a future: `server.wait(server.client().call("build").with_progress())`.
    pub fn wait<T>(&self, work: impl IntoFuture<Output = T>) -> T {
        self.runtime.block_on(async { work.await })
    }

    /// Lists all tools.
    pub fn list_tools(&self) -> Result<Vec<Tool>, ClientError> {
        self.wait(self.client.list_tools())
    }

    /// Lists all resources.
    pub fn list_resources(&self) -> Result<Vec<Resource>, ClientError> {
        self.wait(self.client.list_resources())
    }

    /// Lists all prompts.
    pub fn list_prompts(&self) -> Result<Vec<Prompt>, ClientError> {
        self.wait(self.client.list_prompts())
    }

    /// Calls a tool.
    pub fn call_tool(&self, tool: &str, arguments: Value) -> Result<ServerResponse, ClientError> {
        self.wait(self.client.call_tool(tool, arguments))
    }

    /// A tool call with more options; pass it to [`wait`](BlockingClient::wait).
    pub fn call(&self, tool: &str) -> RequestBuilder {
        self.client.call(tool)
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: &str) -> Result<ServerResponse, ClientError> {
        self.wait(self.client.read_resource(uri))
    }

    /// Gets a prompt.
    pub fn get_prompt(&self, name: &str, arguments: Value) -> Result<ServerResponse, ClientError> {
        self.wait(self.client.get_prompt(name, arguments))
    }

    /// Closes the connection. A server process that does not exit by itself is killed.
    pub fn close(&self) -> StopOutcome {
        self.wait(self.client.close())
    }
}
