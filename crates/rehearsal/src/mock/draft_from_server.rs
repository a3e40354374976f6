//! A mock of a live server, as a file to begin with.
//!
//! The mock lists what the server lists. Resources and prompts are requested, because that changes nothing. Tools
//! are never called: their answers are invented.

use rehearsal_core::answer::keep_listed_forms;
use rehearsal_core::protocol::list_item::PromptArgument;
use rehearsal_core::protocol::{Era, Prompt, Resource, ResourceTemplate, Revision, Tool};
use rehearsal_core::schema::example;
use rehearsal_core::script::ScriptError;
use rehearsal_core::script::mock::write::{
    DraftAnswer, DraftBody, DraftItem, MockDraft, escape_template, escape_value, with_expressions,
};
use serde_json::{Map, Value, json};

use crate::Client;

/// Maximum number of resources and prompts that are requested.
const MAX_READS: usize = 200;
/// Maximum length of the contents of a resource or a prompt, in bytes.
const CONTENTS_LIMIT: usize = 64 << 10;
/// Maximum length of all contents together, in bytes.
const ALL_CONTENTS_LIMIT: usize = 1 << 20;

/// What a server lists.
#[derive(Clone, Debug, Default)]
pub struct ServerLists {
    /// The tools.
    pub tools: Vec<Tool>,
    /// The resources.
    pub resources: Vec<Resource>,
    /// The resource templates.
    pub resource_templates: Vec<ResourceTemplate>,
    /// The prompts.
    pub prompts: Vec<Prompt>,
}

/// A mock file, and remarks for its author.
#[derive(Clone, Debug)]
pub struct DraftedMock {
    /// The text of the mock file.
    pub text: String,
    /// The differences from the server, a line each.
    pub remarks: Vec<String>,
}

/// Writes a mock that lists exactly what the server lists to a client of this version, under a comment.
pub async fn draft(client: &Client, surface: ServerLists, comment: &str) -> Result<DraftedMock, Vec<ScriptError>> {
    let mut reader = ServerReader { client, left: MAX_READS, room: ALL_CONTENTS_LIMIT, remarks: Vec::new() };
    let ServerLists { tools, resources, resource_templates, prompts } = surface;
    let tools = reader.once("tool", tools, |tool| &tool.name);
    let resources = reader.once("resource", resources, |resource| &resource.uri);
    let resource_templates = reader.once("resource template", resource_templates, |one| &one.uri_template);
    let prompts = reader.once("prompt", prompts, |prompt| &prompt.name);
    let mut draft = MockDraft {
        comment: comment.to_owned(),
        server: Some(client.server_info().clone()).filter(Value::is_object),
        instructions: client.instructions().map(str::to_owned),
        versions: versions(client.revision()),
        tools: tools.into_iter().map(tool).collect(),
        resource_templates: resource_templates.into_iter().map(resource_template).collect(),
        ..MockDraft::default()
    };
    for resource in resources {
        draft.resources.push(reader.resource(resource).await);
    }
    for prompt in prompts {
        draft.prompts.push(reader.prompt(prompt).await);
    }
    let capabilities = client.server_capabilities().as_object().cloned().unwrap_or_default();
    let verbatim = keep_listed_forms(draft, &capabilities, client.revision())?;
    if verbatim.validate.is_some() {
        let remark = "the server returned a result that the protocol does not allow, so the file has `validate: warn`";
        reader.remarks.push(remark.to_owned());
    }
    Ok(DraftedMock { text: verbatim.to_text(), remarks: reader.remarks })
}

/// The versions of the mock. A legacy server is assumed to support the negotiated version and all older ones; a modern one,
/// every version.
fn versions(revision: Revision) -> Vec<Revision> {
    match revision.era() {
        Era::Legacy => Revision::ALL.into_iter().filter(|known| *known <= revision).collect(),
        Era::Modern => Vec::new(),
    }
}

fn tool(tool: Tool) -> DraftItem {
    let made_up = tool.output_schema.as_ref().map(example);
    let text = |text: String| json!({"content": [{"type": "text", "text": text}]});
    let (body, comment) = match made_up {
        Some(Some(value)) => {
            let structured = escape_value(&value);
            let mut result = text(structured.to_string());
            result["structuredContent"] = structured;
            (result, "Made up to fit the output schema")
        }
        Some(None) => {
            let mut failure = text(format!("{} has no answer yet", escape_template(&tool.name)));
            failure["isError"] = true.into();
            (failure, "No value could be invented that fits the output schema")
        }
        None => (text(format!("{} was called with {{{{ arguments | tojson }}}}", escape_template(&tool.name))), ""),
    };
    let answer = DraftAnswer { comment: comment.to_owned(), ..DraftAnswer::new(DraftBody::Template(body)) };
    DraftItem::new(tool.raw, vec![answer])
}

fn resource_template(template: ResourceTemplate) -> DraftItem {
    let mut contents = json!({"uri": "{{ uri }}", "text": "the contents of {{ uri }}"});
    if let Some(mime_type) = template.raw.get("mimeType") {
        contents["mimeType"] = mime_type.clone();
    }
    DraftItem::new(template.raw, vec![DraftAnswer::new(DraftBody::Template(json!({"contents": [contents]})))])
}

/// Requests a server's resources and prompts, within limits. That changes nothing on the server.
struct ServerReader<'a> {
    client: &'a Client,
    left: usize,
    room: usize,
    remarks: Vec<String>,
}

impl ServerReader<'_> {
    /// Keeps the first item of each name: a mock can have only one.
    fn once<T>(&mut self, what: &str, all: Vec<T>, name: impl Fn(&T) -> &String) -> Vec<T> {
        let mut seen = std::collections::HashSet::new();
        let mut is_first = |one: &T| {
            let first = seen.insert(name(one).clone());
            if !first {
                self.remarks.push(format!("the {what} {} is listed twice; the file has the first", name(one)));
            }
            first
        };
        all.into_iter().filter(|one| is_first(one)).collect()
    }

    async fn resource(&mut self, resource: Resource) -> DraftItem {
        let read = match self.take_request() {
            Ok(()) => self.client.read_resource(&resource.uri).await.map_err(|error| error.to_string()),
            Err(why) => Err(why),
        };
        let result = read.and_then(|response| response.into_result().map_err(|error| error.to_string()));
        let result = result.and_then(|result| self.fits(result));
        let result = result.and_then(|result| match result.get("contents") {
            Some(Value::Array(contents)) if !contents.is_empty() => Ok(result),
            _ => Err("the server gave no contents".to_owned()),
        });
        match result {
            Ok(result) => DraftItem::new(resource.raw, vec![DraftAnswer::new(DraftBody::Result(result))]),
            Err(why) => {
                let uri = &resource.uri;
                self.remarks.push(format!("the contents of {uri} are invented: {}", one_line(&why)));
                let mut contents = json!({"uri": uri, "text": format!("the contents of {uri}")});
                if let Some(mime_type) = resource.raw.get("mimeType") {
                    contents["mimeType"] = mime_type.clone();
                }
                let answer = DraftAnswer::new(DraftBody::Result(json!({"contents": [contents]})));
                DraftItem {
                    comment: format!("Made up: {}", one_line(&why)),
                    ..DraftItem::new(resource.raw, vec![answer])
                }
            }
        }
    }

    /// Requests a prompt with a mark for each argument, and puts the argument in place of its mark in the result.
    async fn prompt(&mut self, prompt: Prompt) -> DraftItem {
        let mark = |name: &str| format!("rehearsal-{name}-argument");
        let names = prompt.arguments.iter().map(|argument| &argument.name);
        let arguments: Map<_, _> = names.map(|name| (name.clone(), mark(name).into())).collect();
        let got = match self.take_request() {
            Ok(()) => self.client.get_prompt(&prompt.name, arguments).await.map_err(|error| error.to_string()),
            Err(why) => Err(why),
        };
        let result = got.and_then(|response| response.into_result().map_err(|error| error.to_string()));
        let result = result.and_then(|result| self.fits(result));
        let result = result.and_then(|result| match result.get("messages") {
            Some(Value::Array(_)) => Ok(result),
            _ => Err("the server gave no messages".to_owned()),
        });
        let marks: Vec<_> = prompt.arguments.iter().map(|it| (mark(&it.name), expression(it))).collect();
        match result {
            Ok(mut result) => {
                // The file takes the description from the list.
                if let (None, Some(description)) = (result.get("description"), prompt.raw.get("description")) {
                    result["description"] = description.clone();
                }
                let body = DraftBody::Template(mark_arguments(&result, &marks));
                DraftItem::new(prompt.raw, vec![DraftAnswer::new(body)])
            }
            Err(why) => {
                self.remarks.push(format!("the messages of {} are invented: {}", prompt.name, one_line(&why)));
                let text = format!("{}: {{{{ arguments | tojson }}}}", escape_template(&prompt.name));
                let mut result = json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]});
                if let Some(description) = prompt.raw.get("description") {
                    result["description"] = description.clone();
                }
                let answer = DraftAnswer::new(DraftBody::Template(result));
                DraftItem {
                    comment: format!("Made up: {}", one_line(&why)),
                    ..DraftItem::new(prompt.raw, vec![answer])
                }
            }
        }
    }

    fn take_request(&mut self) -> Result<(), String> {
        self.left =
            self.left.checked_sub(1).ok_or_else(|| format!("more than {MAX_READS} would have to be requested"))?;
        Ok(())
    }

    /// A result without the members that a mock adds itself: `resultType`, `ttlMs` and `cacheScope`.
    fn fits(&mut self, mut result: Value) -> Result<Value, String> {
        if let Some(object) = result.as_object_mut() {
            object.retain(|key, _| !["resultType", "ttlMs", "cacheScope"].contains(&key.as_str()));
        }
        let size = result.to_string().len();
        if size > CONTENTS_LIMIT {
            return Err(format!("{size} bytes are more than {CONTENTS_LIMIT}"));
        }
        self.room = self
            .room
            .checked_sub(size)
            .ok_or_else(|| format!("everything together is more than {ALL_CONTENTS_LIMIT} bytes"))?;
        Ok(result)
    }
}

/// The expression of an argument in a template.
fn expression(argument: &PromptArgument) -> String {
    let name = argument.name.as_str();
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let read = if plain { format!("arguments.{name}") } else { format!("arguments[{}]", json!(name)) };
    // A missing optional argument renders as an empty text.
    if argument.required { read } else { format!("{read} | default('')") }
}

/// Makes all texts of a value templates.
fn mark_arguments(value: &Value, marks: &[(String, String)]) -> Value {
    match value {
        Value::String(text) => with_expressions(text, marks).into(),
        Value::Array(elements) => elements.iter().map(|element| mark_arguments(element, marks)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, value)| (key.clone(), mark_arguments(value, marks))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contents_of_a_resource_template_have_the_requested_uri() {
        let listed = json!({"uriTemplate": "demo://{id}", "name": "demo", "mimeType": "text/plain", "x-vendor": 1});
        let template = ResourceTemplate { uri_template: "demo://{id}".to_owned(), name: None, raw: listed };
        let draft = MockDraft { resource_templates: vec![resource_template(template)], ..MockDraft::default() };
        let capabilities = json!({"resources": {}}).as_object().cloned().unwrap_or_default();
        let text = keep_listed_forms(draft, &capabilities, Revision::V2025_11_25).unwrap().to_text();
        let contents = r#"contents: [{ uri: "{{ uri }}", text: "the contents of {{ uri }}", mime_type: text/plain }]"#;
        assert!(text.contains("listed:") && text.contains(contents), "{text}");
    }
}
