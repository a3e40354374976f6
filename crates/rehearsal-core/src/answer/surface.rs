//! The surface of a server: its offers and capabilities, merged from all sources of a chain.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::protocol::{Introduction, ListKind, Lists};
use crate::protocol::Revision;
use crate::suggest::closest;

/// The offers and capabilities of a source, or of all sources of a chain.
#[derive(Clone, Debug, Default)]
pub struct Surface {
    /// The server's name, capabilities and instructions.
    pub introduction: Option<Arc<Introduction>>,
    /// The elements of the four lists; `None` if the source answers list requests itself, or not at all.
    pub lists: Option<Arc<Lists>>,
    /// The served versions; all of them if no source restricts them.
    pub revisions: Option<Vec<Revision>>,
    /// Whether tasks can be created here.
    pub has_tasks: bool,
    /// The requirements on an HTTP listener.
    pub http: HttpNeeds,
}

/// The requirements that the answers of a chain have on an HTTP listener.
#[derive(Clone, Debug, Default)]
pub struct HttpNeeds {
    /// Whether answers depend on the headers of requests.
    pub reads_headers: bool,
    /// Whether a request may be refused with an HTTP status.
    pub refuses_with_status: bool,
    /// The input schemas of tools whose arguments are repeated in headers, by the names of the tools.
    pub header_schemas: HashMap<String, Arc<Value>>,
    /// Whether every answer is a stream, as in the recording.
    pub only_streams: bool,
    /// How long clients should wait before they reconnect to a closed stream.
    pub retry: Option<Duration>,
}

impl Surface {
    /// Merges two surfaces; if both have an item, this one's is used.
    #[must_use]
    pub fn merged(mut self, other: Surface) -> Surface {
        self.introduction = match (self.introduction, other.introduction) {
            (Some(first), Some(second)) => Some(Arc::new(Introduction::clone(&first).merged(&second))),
            (first, second) => first.or(second),
        };
        self.lists = match (self.lists, other.lists) {
            (Some(first), Some(second)) => Some(Arc::new(first.merged(&second))),
            (first, second) => first.or(second),
        };
        self.revisions = self.revisions.or(other.revisions);
        self.has_tasks |= other.has_tasks;
        self.http.reads_headers |= other.http.reads_headers;
        self.http.refuses_with_status |= other.http.refuses_with_status;
        self.http.only_streams |= other.http.only_streams;
        self.http.retry = self.http.retry.or(other.http.retry);
        for (tool, schema) in other.http.header_schemas {
            self.http.header_schemas.entry(tool).or_insert(schema);
        }
        self
    }

    /// Remarks about elements that the other surface lacks, but has under a similar name.
    pub fn misspelt(&self, other: &Surface) -> Vec<String> {
        let (Some(own), Some(other)) = (&self.lists, &other.lists) else { return Vec::new() };
        let misspelt = |kind: ListKind| {
            let unknown = own.ids(kind).filter(move |id| other.find(kind, id).is_none());
            unknown.filter_map(move |id| {
                let close = closest(id, other.ids(kind))?;
                Some(format!("the live server lists no {id:?} in {}; did you mean {close:?}?", kind.method()))
            })
        };
        ListKind::ALL.into_iter().flat_map(misspelt).collect()
    }

    /// The served versions.
    pub fn revisions(&self) -> &[Revision] {
        self.revisions.as_deref().unwrap_or(&Revision::ALL)
    }

    /// The server's name, capabilities and instructions.
    pub fn introduction(&self) -> Arc<Introduction> {
        self.introduction.clone().unwrap_or_default()
    }

    /// The server's name and version.
    pub fn server_info(&self) -> Arc<Value> {
        self.introduction.as_ref().map_or_else(|| Introduction::default().info(), |introduction| introduction.info())
    }

    /// Whether a resource can be subscribed to: a listed one, one of a template, or any if the lists are unknown.
    pub fn has_resource(&self, uri: &str) -> bool {
        self.lists.as_ref().is_none_or(|lists| lists.has_resource(uri))
    }

    /// The output schema of a tool.
    pub fn output_schema(&self, tool: &str) -> Option<&Value> {
        self.lists.as_ref()?.find(ListKind::Tools, tool)?.output_schema()
    }
}
