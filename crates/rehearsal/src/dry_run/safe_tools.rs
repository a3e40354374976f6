//! Tools that the operator has declared safe: in a hybrid dry run their calls reach their servers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use tokio::runtime::Handle;

use super::call::CallEnd;
use super::live::end_of_response;
use super::run::CallSite;
use crate::client::{Client, ClientBuilder, ClientError};

/// Connected servers, and the tools of them whose calls run for real.
///
/// The connections are closed when this is dropped. Each different call is made once in a dry run, however often the plan runs: runs with other values get the answer of the
/// base run.
#[derive(Debug)]
pub struct SafeTools {
    tools: BTreeSet<String>,
    clients: BTreeMap<String, Client>,
    runtime: Handle,
    answers: Mutex<Answers>,
}

#[derive(Debug, Default)]
struct Answers {
    by_call: HashMap<(String, String, String), LiveAnswer>,
    by_place: HashMap<CallSite, LiveAnswer>,
}

/// What a live server answered.
#[derive(Clone, Debug)]
pub(super) struct LiveAnswer {
    pub(super) end: CallEnd,
    pub(super) latency_ms: f64,
}

impl SafeTools {
    /// Connects to the servers of the tools, which are named as `server:tool`. Never take the annotations of a server as the
    /// reason to name a tool here: they are hints of the server itself.
    pub async fn connect(
        tools: impl IntoIterator<Item = String>,
        servers: impl IntoIterator<Item = (String, ClientBuilder)>,
    ) -> Result<SafeTools, ClientError> {
        let mut clients = BTreeMap::new();
        for (name, builder) in servers {
            clients.insert(name, builder.connect().await?);
        }
        let answers = Mutex::default();
        Ok(SafeTools { tools: tools.into_iter().collect(), clients, runtime: Handle::current(), answers })
    }

    pub(super) fn contains(&self, server: &str, tool: &str) -> bool {
        self.tools.contains(&format!("{server}:{tool}")) && self.clients.contains_key(server)
    }

    /// The answer to a call. The base run makes the call; other runs get its answer, if it has the same arguments or is made
    /// from the same place.
    pub(super) fn answer(&self, place: &CallSite, call: (&str, &str, &Value), is_base: bool) -> Option<LiveAnswer> {
        let (server, tool, arguments) = call;
        let key = (server.to_owned(), tool.to_owned(), arguments.to_string());
        {
            let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            let known = answers.by_call.get(&key).or_else(|| answers.by_place.get(place).filter(|_| !is_base));
            if known.is_some() || !is_base {
                return known.cloned();
            }
        }
        let client = self.clients.get(server)?;
        let answer = self.runtime.block_on(call_tool(client, tool, arguments));
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.by_place.insert(place.clone(), answer.clone());
        answers.by_call.insert(key, answer.clone());
        Some(answer)
    }
}

async fn call_tool(client: &Client, tool: &str, arguments: &Value) -> LiveAnswer {
    let started = std::time::Instant::now();
    let response = client.call_tool(tool, arguments.clone()).await;
    let latency_ms = started.elapsed().as_secs_f64() * 1000.0;
    LiveAnswer { end: end_of_response(&response), latency_ms }
}
