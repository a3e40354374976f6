//! Converts the content of a mock file to its wire form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use super::template::{TemplateValue, Templates};
use crate::script::mock::{
    Annotations, ContentBlock, ContentKind, ContentsEntry, Icon, PromptMessage, Role, ToolAnnotations,
};
use crate::script::{Located, ScriptProblem, Span, WithKeyOrder};

/// Reads a file whose path is relative to the mock file.
pub(in crate::answer) type ReadFile<'a> = &'a dyn Fn(&str) -> Result<Vec<u8>, String>;

/// The data that compiling uses: the templates, a reader for files, and the list of problems.
pub(in crate::answer) struct CompileContext<'a> {
    pub(in crate::answer) templates: &'a mut Templates,
    pub(in crate::answer) read_file: ReadFile<'a>,
    pub(in crate::answer) problems: &'a mut Vec<ScriptProblem>,
    pub(super) numbers: &'a mut IdCounter,
}

/// The number of compiled targets, rules and fault rules: each gets the next number.
#[derive(Debug, Default)]
pub(super) struct IdCounter {
    pub(super) targets: usize,
    pub(super) rules: usize,
    pub(super) faults: usize,
}

impl CompileContext<'_> {
    /// Returns the value, or reports the problem and returns null.
    pub(in crate::answer) fn or_report(&mut self, at: Span, value: Result<TemplateValue, String>) -> TemplateValue {
        value.unwrap_or_else(|problem| {
            self.problems.push(ScriptProblem::new(at, problem));
            TemplateValue::Fixed(Value::Null)
        })
    }

    /// A text that may be a template.
    pub(in crate::answer) fn text_template(&mut self, at: Span, text: &str) -> TemplateValue {
        let value = TemplateValue::string(text, self.templates);
        self.or_report(at, value)
    }

    /// A value that may contain templates.
    pub(in crate::answer) fn value(&mut self, at: Span, value: &Value) -> TemplateValue {
        let value = TemplateValue::compile(value, self.templates);
        self.or_report(at, value)
    }

    /// An object that may contain templates.
    pub(in crate::answer) fn object(&mut self, at: Span, fields: &Map<String, Value>) -> TemplateValue {
        let value = TemplateValue::object(fields, self.templates);
        self.or_report(at, value)
    }

    /// The bytes of a file, in base64.
    pub(in crate::answer) fn file(&mut self, file: &Located<String>) -> String {
        match (self.read_file)(&file.value) {
            Ok(bytes) => BASE64.encode(bytes),
            Err(why) => {
                self.problems.push(ScriptProblem::new(file.at, format!("cannot read {}: {why}", file.value)));
                String::new()
            }
        }
    }

    /// A content block.
    pub(in crate::answer) fn block(&mut self, block: &ContentBlock) -> TemplateValue {
        let at = block.kind.at;
        let kind = match *block.kind {
            ContentKind::Text => "text",
            ContentKind::Image => "image",
            ContentKind::Audio => "audio",
            ContentKind::Resource => "resource",
            ContentKind::ResourceLink => "resource_link",
        };
        let mut fields = ObjectBuilder::new();
        fields.fixed("type", kind);
        match *block.kind {
            ContentKind::Text => {
                let text = block
                    .text
                    .as_ref()
                    .map_or(TemplateValue::Fixed("".into()), |text| self.text_template(text.at, text));
                fields.template("text", text);
            }
            ContentKind::Image | ContentKind::Audio => {
                let data = match (&block.data, &block.file) {
                    (Some(data), _) => self.text_template(data.at, data),
                    (None, Some(file)) => TemplateValue::Fixed(self.file(file).into()),
                    (None, None) => TemplateValue::Fixed("".into()),
                };
                fields.template("data", data);
                let usual = if *block.kind == ContentKind::Image { "image/png" } else { "audio/wav" };
                fields.fixed("mimeType", block.mime_type.as_deref().unwrap_or(usual));
            }
            ContentKind::Resource => {
                let resource = block.resource.as_ref().map(|resource| self.contents(resource, at, None));
                fields.template("resource", resource.unwrap_or(TemplateValue::Fixed(json!({}))));
            }
            ContentKind::ResourceLink => {
                let uri = self.text_template(at, block.uri.as_deref().unwrap_or_default());
                fields.template("uri", uri);
                let name = block.name.as_deref().or(block.uri.as_deref()).unwrap_or_default();
                let name = self.text_template(at, name);
                fields.template("name", name);
                fields.optional("title", block.title.as_deref());
                fields.optional("description", block.description.as_deref());
                fields.optional("mimeType", block.mime_type.as_deref());
                fields.optional("size", block.size);
            }
        }
        fields.optional("annotations", block.annotations.as_ref().map(annotations));
        if let Some(meta) = &block.meta {
            let meta = self.object(at, meta);
            fields.template("_meta", meta);
        }
        fields.finish()
    }

    /// Several content blocks.
    pub(in crate::answer) fn blocks(&mut self, blocks: &[ContentBlock]) -> TemplateValue {
        TemplateValue::list(blocks.iter().map(|block| self.block(block)).collect())
    }

    /// The contents of a resource. `uri` is the URI of the resource, if it is fixed.
    pub(in crate::answer) fn contents(
        &mut self,
        contents: &ContentsEntry,
        at: Span,
        uri: Option<&str>,
    ) -> TemplateValue {
        let mut fields = ObjectBuilder::new();
        let written = contents.uri.as_deref().or(uri);
        let uri = self.text_template(at, written.unwrap_or("{{ uri }}"));
        fields.template("uri", uri);
        fields.optional("mimeType", contents.mime_type.as_deref());
        match (&contents.text, &contents.blob) {
            (Some(text), _) => {
                let text = self.text_template(text.at, text);
                fields.template("text", text);
            }
            (None, Some(blob)) => {
                let blob = self.text_template(blob.at, blob);
                fields.template("blob", blob);
            }
            (None, None) => fields.fixed("text", ""),
        }
        if let Some(meta) = &contents.meta {
            let meta = self.object(at, meta);
            fields.template("_meta", meta);
        }
        fields.finish()
    }

    /// The messages of a prompt.
    pub(in crate::answer) fn messages(&mut self, messages: &[PromptMessage]) -> TemplateValue {
        let message = |message: &PromptMessage| {
            let role = role(message.role);
            let content = self.block(&message.content);
            TemplateValue::fields(vec![
                ("role".to_owned(), TemplateValue::Fixed(role.into())),
                ("content".to_owned(), content),
            ])
        };
        TemplateValue::list(messages.iter().map(message).collect())
    }
}

/// The fields of an object, in order.
pub(in crate::answer) struct ObjectBuilder(Vec<(String, TemplateValue)>);

impl ObjectBuilder {
    pub(in crate::answer) fn new() -> ObjectBuilder {
        ObjectBuilder(Vec::new())
    }

    pub(in crate::answer) fn template(&mut self, key: &str, value: TemplateValue) {
        self.0.push((key.to_owned(), value));
    }

    pub(in crate::answer) fn fixed(&mut self, key: &str, value: impl Into<Value>) {
        self.template(key, TemplateValue::Fixed(value.into()));
    }

    pub(in crate::answer) fn optional(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.fixed(key, value);
        }
    }

    pub(in crate::answer) fn finish(self) -> TemplateValue {
        TemplateValue::fields(self.0)
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

/// The wire name of a key of a mock file: `inputSchema` for `input_schema`.
pub(in crate::answer) fn wire_key(key: &str) -> String {
    match key {
        "meta" => "_meta".to_owned(),
        "task_support" => "execution".to_owned(),
        _ => {
            let mut parts = key.split('_');
            let first = parts.next().unwrap_or_default().to_owned();
            parts.fold(first, |name, part| match part.split_at_checked(1) {
                Some((initial, rest)) => name + &initial.to_ascii_uppercase() + rest,
                None => name,
            })
        }
    }
}

/// An object in the order of the file.
pub(in crate::answer) fn ordered<T>(written: &WithKeyOrder<T>, mut object: Map<String, Value>) -> Value {
    written.order(&mut object, wire_key);
    object.into()
}

/// Annotations in their wire form.
pub(in crate::answer) fn annotations(written: &WithKeyOrder<Annotations>) -> Value {
    let mut object = Map::new();
    if let Some(audience) = &written.audience {
        object.insert("audience".to_owned(), audience.iter().map(|it| role(*it)).collect());
    }
    if let Some(priority) = &written.priority {
        object.insert("priority".to_owned(), priority.value.clone().into());
    }
    if let Some(last_modified) = &written.last_modified {
        object.insert("lastModified".to_owned(), last_modified.as_str().into());
    }
    ordered(written, object)
}

/// Tool annotations in their wire form.
pub(in crate::answer) fn tool_annotations(written: &WithKeyOrder<ToolAnnotations>) -> Value {
    let mut object = Map::new();
    if let Some(title) = &written.title {
        object.insert("title".to_owned(), title.as_str().into());
    }
    for (key, hint) in [
        ("readOnlyHint", written.read_only_hint),
        ("destructiveHint", written.destructive_hint),
        ("idempotentHint", written.idempotent_hint),
        ("openWorldHint", written.open_world_hint),
    ] {
        if let Some(hint) = hint {
            object.insert(key.to_owned(), hint.into());
        }
    }
    ordered(written, object)
}

/// Icons in their wire form; `None` if there are none.
pub(in crate::answer) fn icons(written: &[WithKeyOrder<Icon>]) -> Option<Value> {
    let icon = |icon: &WithKeyOrder<Icon>| {
        let mut object = Map::from_iter([("src".to_owned(), icon.src.as_str().into())]);
        let more = [
            ("mimeType", icon.mime_type.as_deref().map(Value::from)),
            ("sizes", icon.sizes.as_ref().map(|sizes| json!(sizes))),
            ("theme", icon.theme.as_deref().map(Value::from)),
        ];
        object.extend(more.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        ordered(icon, object)
    };
    (!written.is_empty()).then(|| written.iter().map(icon).collect())
}
