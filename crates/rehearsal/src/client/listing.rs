//! What the server offers, all pages of it.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

use rehearsal_core::message::Method;
use rehearsal_core::protocol::tool::Listed;
use rehearsal_core::protocol::{Prompt, Resource, ResourceTemplate, Tool, header};
use serde_json::{Value, json};

use super::error::ClientError;
use super::response::Response;
use super::session::Client;

/// How many pages a list may have.
const PAGES: usize = 10_000;

impl Client {
    /// All tools.
    ///
    /// Over HTTP in 2026-07-28 a tool whose `x-mcp-header` annotations are invalid must not be used, so it is left out.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, ClientError> {
        let mut tools: Vec<Tool> = self.list(Method::TOOLS_LIST).await?;
        if self.revision().has_request_headers() {
            tools.retain(|tool| header::annotations(&tool.input_schema).is_ok());
            let mut schemas = self.inner.schemas.lock().unwrap_or_else(PoisonError::into_inner);
            schemas.clear();
            schemas.extend(tools.iter().map(|tool| (tool.name.clone(), Arc::new(tool.input_schema.clone()))));
        }
        Ok(tools)
    }

    /// All resources.
    pub async fn list_resources(&self) -> Result<Vec<Resource>, ClientError> {
        self.list(Method::RESOURCES_LIST).await
    }

    /// All resource templates.
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, ClientError> {
        self.list(Method::RESOURCE_TEMPLATES_LIST).await
    }

    /// All prompts.
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, ClientError> {
        self.list(Method::PROMPTS_LIST).await
    }

    async fn list<T: Listed>(&self, method: Method) -> Result<Vec<T>, ClientError> {
        let bad = |what: String| ClientError::BadResult { method: method.clone(), what };
        let mut found = Vec::new();
        let mut cursor: Option<Value> = None;
        let mut seen = HashSet::new();
        for _ in 0..PAGES {
            let params = cursor.take().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
            let mut page = self.request(method.clone(), params).await?.into_result()?;
            let Some(Value::Array(items)) = page.get_mut(T::KEY).map(Value::take) else {
                return Err(bad(format!("no list `{}`", T::KEY)));
            };
            for item in items {
                found.push(T::read(item).map_err(|error| bad(error.to_string()))?);
            }
            match page.get("nextCursor") {
                None | Some(Value::Null) => return Ok(found),
                Some(next) if !seen.insert(next.to_string()) => {
                    return Err(bad(format!("the cursor {next} came twice, so the list would never end")));
                }
                Some(next) => cursor = Some(next.clone()),
            }
        }
        Err(bad(format!("more than {PAGES} pages")))
    }
}

impl Response {
    /// The result, or the server's error as ours.
    pub fn into_result(self) -> Result<Value, ClientError> {
        match self.error() {
            Some(error) => {
                let method = self.method().cloned().unwrap_or_else(|| "request".into());
                Err(ClientError::ErrorReply { method, error: error.clone(), status: self.http_status() })
            }
            None => Ok(self.result().clone()),
        }
    }
}
