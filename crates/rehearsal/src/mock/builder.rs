//! Mocks that a test declares in Rust.
//!
//! ```text
//! MockBuilder ──► MockDraft ──written──► text of a mock file ──► chain, as for a file
//! ```

use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Method};
use rehearsal_core::script::mock::write::{DraftAnswer, DraftBody, DraftItem, MockDraft};
use serde_json::{Map, Value, json};

use super::answer::{MockAnswer, MockReply};
use super::load::{MockFiles, chain_of};
use super::mock_server::{CallCount, Expectation, MockError, MockServer};

/// The name of the generated mock file in errors.
const FILE: &str = "mock";
/// The code of the error for a call that a test declares with [`MockItem::never`].
const INTERNAL_ERROR: i64 = -32603;

/// Declares a mock in Rust; [`start`](MockBuilder::start) serves it.
///
/// The builder writes a mock file and serves that, so a mock in Rust behaves as the same mock in YAML;
/// [`mock_file`](MockBuilder::mock_file) returns the text, to continue with it in a file.
///
/// ```
/// use rehearsal::mock::{error, text, tool_error};
/// use rehearsal::{Client, MockServer};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = MockServer::builder()
///     .tool("add")
///     .when(json!({"a": 2}))
///     .respond(text("42"))
///     .times(1..)
///     .respond(tool_error("only 2 can be added"))
///     .tool("forecast")
///     .respond(json!({"city": "Oslo", "rain": true}))
///     .tool("delete_everything")
///     .never()
///     .resource("notes://today")
///     .respond(text("Buy milk"))
///     .prompt("greet")
///     .respond(text("Say hello"))
///     .start()?;
///
/// let client = Client::url(server.url()).connect().await?;
/// assert_eq!(client.call_tool("add", json!({"a": 2, "b": 40})).await?.content(), "42");
/// assert!(client.call_tool("add", json!({"a": 3})).await?.is_tool_error());
/// assert_eq!(client.call_tool("forecast", json!({})).await?.structured_content().unwrap()["rain"], true);
/// assert_eq!(client.read_resource("notes://today").await?.content(), "Buy milk");
/// # let _ = error(-32000, "");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
#[must_use = "nothing is served before `start`"]
pub struct MockBuilder {
    name: Option<String>,
    version: Option<String>,
    instructions: Option<String>,
    items: Vec<Item>,
    expectations: Vec<Expectation>,
    /// The first builder call that is not allowed in its position.
    problem: Option<String>,
}

/// Declares a tool, resource or prompt of a [`MockBuilder`]: its conditions, answers and expectations.
///
/// Conditions are tried in their order. The answer of a [`respond`](MockItem::respond) without a
/// [`when`](MockItem::when) before it is the default answer.
#[derive(Debug)]
#[must_use = "nothing is served before `start`"]
pub struct MockItem {
    builder: MockBuilder,
    /// The position of the item in `builder.items`.
    index: usize,
    /// The condition of the next answer.
    when: Option<Value>,
}

#[derive(Debug)]
struct Item {
    kind: ItemKind,
    /// The name, or the URI of a resource.
    name: String,
    listed: Map<String, Value>,
    rules: Vec<Rule>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemKind {
    Tool,
    Resource,
    Prompt,
}

#[derive(Debug)]
struct Rule {
    name: String,
    when: Option<Value>,
    answer: MockAnswer,
}

impl MockServer {
    /// Declares a mock in Rust instead of a file: its tools, resources and prompts.
    ///
    /// ```
    /// use rehearsal::MockServer;
    /// use rehearsal::mock::text;
    ///
    /// let server = MockServer::builder().tool("add").respond(text("42")).start().unwrap();
    /// assert!(server.url().starts_with("http://127.0.0.1:"));
    /// ```
    pub fn builder() -> MockBuilder {
        MockBuilder::default()
    }
}

impl MockBuilder {
    /// Sets the name in the `serverInfo`; `mock` by default.
    pub fn name(self, name: impl Into<String>) -> MockBuilder {
        MockBuilder { name: Some(name.into()), ..self }
    }

    /// Sets the version in the `serverInfo`; `0.0.0` by default.
    pub fn version(self, version: impl Into<String>) -> MockBuilder {
        MockBuilder { version: Some(version.into()), ..self }
    }

    /// Sets the `instructions` of the server.
    pub fn instructions(self, instructions: impl Into<String>) -> MockBuilder {
        MockBuilder { instructions: Some(instructions.into()), ..self }
    }

    /// Adds a tool, or continues the tool of this name.
    pub fn tool(self, name: impl Into<String>) -> MockItem {
        self.item(ItemKind::Tool, name.into())
    }

    /// Adds a resource, or continues the resource of this URI.
    pub fn resource(self, uri: impl Into<String>) -> MockItem {
        self.item(ItemKind::Resource, uri.into())
    }

    /// Adds a prompt, or continues the prompt of this name.
    pub fn prompt(self, name: impl Into<String>) -> MockItem {
        self.item(ItemKind::Prompt, name.into())
    }

    fn item(mut self, kind: ItemKind, name: String) -> MockItem {
        let known = self.items.iter().position(|item| item.kind == kind && item.name == name);
        let index = known.unwrap_or_else(|| {
            self.items.push(Item::new(kind, name));
            self.items.len() - 1
        });
        MockItem { builder: self, index, when: None }
    }

    fn note_problem(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    /// Returns the text of the mock file that declares the same mock, without the expectations.
    pub fn mock_file(&self) -> Result<String, MockError> {
        if let Some(problem) = &self.problem {
            return Err(MockError::Builder(problem.clone()));
        }
        let items = |kind: ItemKind| {
            let items = self.items.iter().filter(|item| item.kind == kind);
            items.map(Item::draft).collect::<Result<Vec<_>, MockError>>()
        };
        let named = self.name.is_some() || self.version.is_some();
        let server = named.then(|| {
            let (name, version) = (self.name.as_deref(), self.version.as_deref());
            json!({"name": name.unwrap_or("mock"), "version": version.unwrap_or("0.0.0")})
        });
        let draft = MockDraft {
            server,
            instructions: self.instructions.clone(),
            tools: items(ItemKind::Tool)?,
            resources: items(ItemKind::Resource)?,
            prompts: items(ItemKind::Prompt)?,
            ..MockDraft::default()
        };
        Ok(draft.to_text())
    }

    /// Serves the mock on a free port of this machine. When this returns, clients can connect.
    ///
    /// Returns an error if a tool, resource or prompt has no answer, or if a condition is no valid
    /// [matcher](crate::matcher).
    pub fn start(self) -> Result<MockServer, MockError> {
        let chain = chain_of(FILE, &self.mock_file()?)?;
        let server = MockServer::begin(chain, MockFiles::default())?;
        server.expect(self.expectations);
        Ok(server)
    }
}

impl MockItem {
    /// Sets the description that clients see.
    pub fn description(self, description: impl Into<String>) -> MockItem {
        self.listed("description", description.into().into())
    }

    /// Sets the title that clients see.
    pub fn title(self, title: impl Into<String>) -> MockItem {
        self.listed("title", title.into().into())
    }

    /// Sets the JSON Schema of a tool's arguments; any object by default. Arguments that it rejects are refused.
    pub fn input_schema(self, schema: Value) -> MockItem {
        self.only(ItemKind::Tool, "input_schema").listed("inputSchema", schema)
    }

    /// Sets the JSON Schema of a tool's structured content.
    pub fn output_schema(self, schema: Value) -> MockItem {
        self.only(ItemKind::Tool, "output_schema").listed("outputSchema", schema)
    }

    /// Sets the MIME type of a resource.
    pub fn mime_type(self, mime_type: impl Into<String>) -> MockItem {
        self.only(ItemKind::Resource, "mime_type").listed("mimeType", mime_type.into().into())
    }

    /// Adds an optional argument to a prompt.
    pub fn argument(self, name: impl Into<String>) -> MockItem {
        let mut this = self.only(ItemKind::Prompt, "argument");
        let arguments = this.item().listed.entry("arguments").or_insert_with(|| json!([]));
        if let Value::Array(arguments) = arguments {
            arguments.push(json!({"name": name.into()}));
        }
        this
    }

    /// Sets the condition of the next answer: a [matcher](crate::matcher) for the arguments, in its JSON form.
    ///
    /// `json!({"a": 2})` matches arguments in which `a` is 2, whatever else they contain;
    /// `json!({"city": {"contains": "Os"}})` uses an operator.
    pub fn when(mut self, arguments: Value) -> MockItem {
        if self.when.is_some() {
            let problem = format!("{}: `when` follows `when`; `respond` belongs between them", self.label());
            self.builder.note_problem(problem);
        }
        self.when = Some(arguments);
        self
    }

    /// Adds an answer: for the condition of the [`when`](MockItem::when) before it, or for every other request.
    pub fn respond(mut self, answer: impl Into<MockAnswer>) -> MockItem {
        let when = self.when.take();
        let base = when.as_ref().map_or_else(|| "always".to_owned(), |when| format!("when {when}"));
        let rules = &mut self.item().rules;
        let equal = rules.iter().filter(|rule| rule.when == when).count();
        let name = if equal == 0 { base } else { format!("{base} ({})", equal + 1) };
        rules.push(Rule { name, when, answer: answer.into() });
        self
    }

    /// Expects this number of requests that get the last answer: `1`, `2..`, `..=3`.
    ///
    /// If the expectation is not met when the server is dropped, the drop panics with the number of requests. It does
    /// not panic if the test is already panicking.
    pub fn times(mut self, times: impl CallCount) -> MockItem {
        match (&self.when, self.item_ref().rules.last()) {
            (None, Some(rule)) => {
                let expectation = self.expectation(Some((rule.name.clone(), rule.when.clone())), times);
                self.builder.expectations.push(expectation);
            }
            _ => {
                let problem = format!("{}: `times` counts an answer; it follows `respond`", self.label());
                self.builder.note_problem(problem);
            }
        }
        self
    }

    /// Expects no request: none that matches the [`when`](MockItem::when) before it, or none that gets the last
    /// answer, or none at all if there is neither.
    ///
    /// Without an answer of its own, such a request gets an error.
    pub fn never(mut self) -> MockItem {
        if self.when.is_some() || self.item_ref().rules.is_empty() {
            let message = format!("the test expects no request for {}", self.label());
            self = self.respond(super::answer::error(INTERNAL_ERROR, message));
        }
        self.times(0)
    }

    /// Adds a tool, or continues the tool of this name.
    pub fn tool(self, name: impl Into<String>) -> MockItem {
        self.done().tool(name)
    }

    /// Adds a resource, or continues the resource of this URI.
    pub fn resource(self, uri: impl Into<String>) -> MockItem {
        self.done().resource(uri)
    }

    /// Adds a prompt, or continues the prompt of this name.
    pub fn prompt(self, name: impl Into<String>) -> MockItem {
        self.done().prompt(name)
    }

    /// Serves the mock on a free port of this machine; see [`MockBuilder::start`].
    pub fn start(self) -> Result<MockServer, MockError> {
        self.done().start()
    }

    /// Ends this tool, resource or prompt, and returns the builder of the whole mock.
    pub fn done(mut self) -> MockBuilder {
        if self.when.is_some() {
            let problem = format!("{}: a `when` has no `respond` after it", self.label());
            self.builder.note_problem(problem);
        }
        self.builder
    }

    fn item(&mut self) -> &mut Item {
        &mut self.builder.items[self.index]
    }

    fn item_ref(&self) -> &Item {
        &self.builder.items[self.index]
    }

    fn label(&self) -> String {
        self.item_ref().label()
    }

    fn listed(mut self, member: &str, value: Value) -> MockItem {
        self.item().listed.insert(member.to_owned(), value);
        self
    }

    /// Notes a problem if the item is of another kind.
    fn only(mut self, kind: ItemKind, call: &str) -> MockItem {
        if self.item_ref().kind != kind {
            let problem = format!("{}: `{call}` applies to a {} only", self.label(), kind.name());
            self.builder.note_problem(problem);
        }
        self
    }

    fn expectation(&self, rule: Option<(String, Option<Value>)>, times: impl CallCount) -> Expectation {
        let item = self.item_ref();
        let (rule, when) = rule.unzip();
        let label = match when.flatten() {
            Some(when) => format!("{} with {when}", item.label()),
            None => item.label(),
        };
        let (least, most) = times.bounds();
        Expectation { label, method: item.kind.method(), name: item.name.clone(), rule, least, most }
    }
}

impl ItemKind {
    fn name(self) -> &'static str {
        match self {
            ItemKind::Tool => "tool",
            ItemKind::Resource => "resource",
            ItemKind::Prompt => "prompt",
        }
    }

    fn method(self) -> Method {
        match self {
            ItemKind::Tool => Method::TOOLS_CALL,
            ItemKind::Resource => Method::RESOURCES_READ,
            ItemKind::Prompt => Method::PROMPTS_GET,
        }
    }
}

impl Item {
    fn new(kind: ItemKind, name: String) -> Item {
        let mut listed = Map::new();
        match kind {
            ItemKind::Tool => {
                listed.insert("name".to_owned(), name.clone().into());
                listed.insert("inputSchema".to_owned(), json!({"type": "object"}));
            }
            ItemKind::Resource => {
                let last = name.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&name).to_owned();
                listed.insert("uri".to_owned(), name.clone().into());
                listed.insert("name".to_owned(), last.into());
            }
            ItemKind::Prompt => drop(listed.insert("name".to_owned(), name.clone().into())),
        }
        Item { kind, name, listed, rules: Vec::new() }
    }

    /// `the tool add`
    fn label(&self) -> String {
        format!("the {} {}", self.kind.name(), self.name)
    }

    fn draft(&self) -> Result<DraftItem, MockError> {
        let answer = |rule: &Rule| {
            Ok(DraftAnswer {
                name: Some(rule.name.clone()),
                when: rule.when.clone(),
                delay: rule.answer.delay,
                ..DraftAnswer::new(self.body(&rule.answer.reply)?)
            })
        };
        let answers = self.rules.iter().map(answer).collect::<Result<_, MockError>>()?;
        Ok(DraftItem::new(Value::Object(self.listed.clone()), answers))
    }

    /// The reply in the wire form of this kind of item.
    fn body(&self, reply: &MockReply) -> Result<DraftBody, MockError> {
        let no_use = |what: &str| {
            let what = format!("{}: {what}; use `text`, `result` or `error`", self.label());
            Err(MockError::Builder(what))
        };
        Ok(match (reply, self.kind) {
            (MockReply::Text(text), _) => DraftBody::Result(self.text_result(text)),
            (MockReply::Template(text), _) => DraftBody::Template(self.text_result(text)),
            (MockReply::Result(result), _) => DraftBody::Result(result.clone()),
            (MockReply::Error { code, message, data }, _) => {
                let mut error = ErrorReply::new(*code, message);
                error.data = data.as_ref().map(RawJson::from_value);
                DraftBody::Error(error)
            }
            (MockReply::ToolError(text), ItemKind::Tool) => {
                let mut result = self.text_result(text);
                result["isError"] = true.into();
                DraftBody::Result(result)
            }
            (MockReply::Structured(value), ItemKind::Tool) => {
                let mut result = self.text_result(&value.to_string());
                result["structuredContent"] = value.clone();
                DraftBody::Result(result)
            }
            (MockReply::Structured(value), ItemKind::Resource) => {
                DraftBody::Result(self.text_result(&value.to_string()))
            }
            (MockReply::Structured(_), ItemKind::Prompt) => return no_use("a prompt has no structured content"),
            (MockReply::ToolError(_), ItemKind::Resource | ItemKind::Prompt) => {
                return no_use("only a tool can fail so");
            }
        })
    }

    fn text_result(&self, text: &str) -> Value {
        match self.kind {
            ItemKind::Tool => json!({"content": [{"type": "text", "text": text}]}),
            ItemKind::Prompt => json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}),
            ItemKind::Resource => {
                let mut contents = json!({"uri": self.name});
                if let Some(mime_type) = self.listed.get("mimeType") {
                    contents["mimeType"] = mime_type.clone();
                }
                contents["text"] = text.into();
                json!({"contents": [contents]})
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::{error, result, template, text, tool_error};
    use super::*;

    #[test]
    fn the_builder_writes_a_mock_file() {
        let builder = MockServer::builder()
            .name("calculator")
            .tool("add")
            .description("Adds")
            .when(json!({"a": 2}))
            .respond(text("{{ 42 }}"))
            .respond(template("{{ arguments.a }}"))
            .tool("div")
            .respond(tool_error("division by zero"))
            .prompt("greet")
            .respond(error(-32000, "no greeting"))
            .done();
        let file = builder.mock_file().unwrap();
        for part in ["name: calculator", "name: add", "a: 2", "{% raw %}{{ 42 }}{% endraw %}", "is_error: true"] {
            assert!(file.contains(part), "{part} in\n{file}");
        }
        assert!(chain_of(FILE, &file).is_ok(), "{file}");
    }

    #[test]
    fn a_builder_call_at_the_wrong_place_is_an_error() {
        let message = |item: MockItem| item.done().mock_file().unwrap_err().to_string();
        let tool = || MockServer::builder().tool("t");
        assert_eq!(message(tool().times(1)), "the tool t: `times` counts an answer; it follows `respond`");
        assert_eq!(message(tool().when(json!({}))), "the tool t: a `when` has no `respond` after it");
        assert_eq!(message(tool().mime_type("a/b")), "the tool t: `mime_type` applies to a resource only");
        let prompt = MockServer::builder().prompt("p").respond(tool_error("no"));
        assert_eq!(message(prompt), "the prompt p: only a tool can fail so; use `text`, `result` or `error`");
        let whole = tool().respond(result(json!({"content": []})));
        assert!(whole.done().mock_file().is_ok());
    }
}
