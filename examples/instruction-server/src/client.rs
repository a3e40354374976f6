//! The four tools as methods of any [`Client`].

use std::future::IntoFuture;
use std::pin::Pin;

use rehearsal::Client;
use rehearsal::client::{ClientError, RequestBuilder, ServerResponse};
use serde_json::{Map, Value, json};

/// The tools of the instruction server.
///
/// Each method begins a call; what it returns takes the optional arguments, and `.await` sends it.
pub trait InstructionClient {
    /// The instructions for a message, best first.
    fn route_instructions(&self, message: impl Into<String>) -> RouteInstructions;

    /// Whole instructions by topic, category or both.
    fn get_instructions(&self) -> GetInstructions;

    /// The passages of all instructions that have most to do with a query.
    fn search_instructions(&self, query: impl Into<String>) -> SearchInstructions;

    /// Ranks with another engine from now on, such as `durian-0.6`.
    fn switch_engine(&self, engine_version: impl Into<String>) -> SwitchEngine;
}

impl InstructionClient for Client {
    fn route_instructions(&self, message: impl Into<String>) -> RouteInstructions {
        let call = self.call("route_instructions");
        RouteInstructions { call, message: message.into(), context: None, limit: 5 }
    }

    fn get_instructions(&self) -> GetInstructions {
        GetInstructions { call: self.call("get_instructions"), filter: Map::new(), exact_match: false }
    }

    fn search_instructions(&self, query: impl Into<String>) -> SearchInstructions {
        SearchInstructions { call: self.call("search_instructions"), query: query.into(), limit: 10 }
    }

    fn switch_engine(&self, engine_version: impl Into<String>) -> SwitchEngine {
        SwitchEngine { call: self.call("switch_engine"), engine_version: engine_version.into() }
    }
}

/// A call of `route_instructions`.
#[must_use = "nothing is sent before `.await`"]
pub struct RouteInstructions {
    call: RequestBuilder,
    message: String,
    context: Option<Value>,
    limit: u32,
}

impl RouteInstructions {
    /// What is known about the conversation: an object.
    pub fn context(self, context: Value) -> RouteInstructions {
        RouteInstructions { context: Some(context), ..self }
    }

    /// The most instructions to return; 5 unless given.
    pub fn limit(self, limit: u32) -> RouteInstructions {
        RouteInstructions { limit, ..self }
    }

    /// The request builder, for more options such as a time-out.
    pub fn call(self) -> RequestBuilder {
        let RouteInstructions { call, message, context, limit } = self;
        call.arguments(json!({"message": message, "context": context, "limit": limit}))
    }
}

/// A call of `get_instructions`.
#[must_use = "nothing is sent before `.await`"]
pub struct GetInstructions {
    call: RequestBuilder,
    filter: Map<String, Value>,
    exact_match: bool,
}

impl GetInstructions {
    /// Only those with this name, title or tag.
    pub fn topic(mut self, topic: impl Into<String>) -> GetInstructions {
        self.filter.insert("topic".to_owned(), Value::String(topic.into()));
        self
    }

    /// Only those of this category.
    pub fn category(mut self, category: impl Into<String>) -> GetInstructions {
        self.filter.insert("category".to_owned(), Value::String(category.into()));
        self
    }

    /// Only those whose topic and category are exactly as given, and do not just contain it.
    pub fn exact_match(self) -> GetInstructions {
        GetInstructions { exact_match: true, ..self }
    }

    /// The request builder, for more options such as a time-out.
    pub fn call(self) -> RequestBuilder {
        let GetInstructions { call, filter: mut arguments, exact_match } = self;
        arguments.insert("exact_match".to_owned(), exact_match.into());
        call.arguments(Value::Object(arguments))
    }
}

/// A call of `search_instructions`.
#[must_use = "nothing is sent before `.await`"]
pub struct SearchInstructions {
    call: RequestBuilder,
    query: String,
    limit: u32,
}

impl SearchInstructions {
    /// The most instructions to return; 10 unless given.
    pub fn limit(self, limit: u32) -> SearchInstructions {
        SearchInstructions { limit, ..self }
    }

    /// The request builder, for more options such as a time-out.
    pub fn call(self) -> RequestBuilder {
        let SearchInstructions { call, query, limit } = self;
        call.arguments(json!({"query": query, "limit": limit}))
    }
}

/// A call of `switch_engine`.
#[must_use = "nothing is sent before `.await`"]
pub struct SwitchEngine {
    call: RequestBuilder,
    engine_version: String,
}

impl SwitchEngine {
    /// The request builder, for more options such as a time-out.
    pub fn call(self) -> RequestBuilder {
        self.call.arguments(json!({"engine_version": self.engine_version}))
    }
}

macro_rules! awaited_like_a_call {
    ($($call:ty),*) => {$(
        impl IntoFuture for $call {
            type Output = Result<ServerResponse, ClientError>;
            type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

            fn into_future(self) -> Self::IntoFuture {
                self.call().into_future()
            }
        }
    )*};
}

awaited_like_a_call!(RouteInstructions, GetInstructions, SearchInstructions, SwitchEngine);
