//! What the server offers, all pages of it.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

use rehearsal_core::json::Path;
use rehearsal_core::message::Method;
use rehearsal_core::protocol::header::BadHeaderParam;
use rehearsal_core::protocol::list_item::{ListItem, UnnamedItem};
use rehearsal_core::protocol::{Prompt, Resource, ResourceTemplate, Tool, header};
use serde_json::{Value, json};

use super::client::Client;
use super::error::ClientError;
use super::response::ServerResponse;

/// Maximum number of pages of a list.
const PAGES: usize = 10_000;

/// All pages of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing<T> {
    /// The usable elements.
    pub items: Vec<T>,
    /// The other elements, with the reasons.
    pub unusable: Vec<UnusableItem>,
}

/// An element of a list that cannot be used.
#[derive(Clone, PartialEq, thiserror::Error)]
#[error("{method}{}: {at}: {why}", page_shown(*.page))]
pub struct UnusableItem {
    /// The list.
    pub method: Method,
    /// The page that it is on, from 1.
    pub page: usize,
    /// The place in the result.
    pub at: Path,
    /// What is wrong with it.
    pub why: UnusableReason,
}

debug_as_display!(UnusableItem);

/// What is wrong with an element of a list.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum UnusableReason {
    /// It has no name.
    #[error(transparent)]
    Unnamed(#[from] UnnamedItem),
    /// Its `x-mcp-header` annotations are invalid.
    #[error("the tool {tool:?} must not be used: {cause}")]
    BadHeader {
        /// The tool.
        tool: String,
        /// What is wrong with its annotations.
        #[source]
        cause: BadHeaderParam,
    },
}

/// Writes the page, unless it is the first.
fn page_shown(page: usize) -> String {
    if page == 1 { String::new() } else { format!(", page {page}") }
}

impl<T: ListItem> Listing<T> {
    /// The elements, or an error if one has no name.
    fn into_usable(self) -> Result<Vec<T>, ClientError> {
        let unnamed = self.unusable.iter().find(|bad| matches!(bad.why, UnusableReason::Unnamed(_)));
        match unnamed {
            Some(UnusableItem { at, why, .. }) => {
                Err(ClientError::BadResult { method: T::METHOD, what: format!("{at}: {why}") })
            }
            None => Ok(self.items),
        }
    }
}

impl Client {
    /// Lists all tools, all pages of them. An element without a name is an error.
    ///
    /// Over HTTP in 2026-07-28 a tool whose `x-mcp-header` annotations are invalid must not be used, so it is left out.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, ClientError> {
        self.listing().await?.into_usable()
    }

    /// Lists all resources.
    pub async fn list_resources(&self) -> Result<Vec<Resource>, ClientError> {
        self.listing().await?.into_usable()
    }

    /// Lists all resource templates.
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, ClientError> {
        self.listing().await?.into_usable()
    }

    /// Lists all prompts.
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, ClientError> {
        self.listing().await?.into_usable()
    }

    /// Returns all usable elements of a list, and an error for each of the others.
    ///
    /// ```no_run
    /// # async fn example(client: rehearsal::Client) -> Result<(), rehearsal::client::ClientError> {
    /// use rehearsal::protocol::Tool;
    ///
    /// let listing = client.listing::<Tool>().await?;
    /// listing.unusable.iter().for_each(|bad| eprintln!("{bad}"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn listing<T: ListItem>(&self) -> Result<Listing<T>, ClientError> {
        let bad = |what: String| ClientError::BadResult { method: T::METHOD, what };
        let mut listing = Listing { items: Vec::new(), unusable: Vec::new() };
        let mut cursor: Option<Value> = None;
        let mut seen = HashSet::new();
        for page in 1..=PAGES {
            let params = cursor.take().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
            let mut result = self.request(T::METHOD, params).await?.into_result()?;
            let Some(Value::Array(items)) = result.get_mut(T::KEY).map(Value::take) else {
                return Err(bad(format!("no list `{}`", T::KEY)));
            };
            for (index, item) in items.into_iter().enumerate() {
                match self.usable(item) {
                    Ok(item) => listing.items.push(item),
                    Err(why) => {
                        let at = Path::root().join(T::KEY).join(index);
                        listing.unusable.push(UnusableItem { method: T::METHOD, page, at, why });
                    }
                }
            }
            match result.get("nextCursor") {
                None | Some(Value::Null) => {
                    self.remember(&listing.items);
                    return Ok(listing);
                }
                Some(next) if !seen.insert(next.to_string()) => {
                    return Err(bad(format!("the cursor {next} came twice, so the list would never end")));
                }
                Some(next) => cursor = Some(next.clone()),
            }
        }
        Err(bad(format!("more than {PAGES} pages")))
    }

    fn usable<T: ListItem>(&self, item: Value) -> Result<T, UnusableReason> {
        let item = T::read(item)?;
        match item.schema().filter(|_| self.revision().has_request_headers()) {
            Some((tool, schema)) => match header::annotations(schema) {
                Ok(_) => Ok(item),
                Err(cause) => Err(UnusableReason::BadHeader { tool: tool.to_owned(), cause }),
            },
            None => Ok(item),
        }
    }

    /// Stores the schemas of tools. Their `x-mcp-header` annotations name the arguments that are repeated in headers.
    fn remember<T: ListItem>(&self, items: &[T]) {
        if T::METHOD == Method::TOOLS_LIST && self.revision().has_request_headers() {
            let mut schemas = self.inner.schemas.lock().unwrap_or_else(PoisonError::into_inner);
            schemas.clear();
            let all = items.iter().filter_map(ListItem::schema);
            schemas.extend(all.map(|(name, schema)| (name.to_owned(), Arc::new(schema.clone()))));
        }
    }
}

impl ServerResponse {
    /// The result, or the server's error as a [`ClientError`].
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
