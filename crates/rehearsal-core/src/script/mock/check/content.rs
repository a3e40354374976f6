//! What is wrong with content.

use base64::Engine as _;

use super::checker::Checker;
use crate::script::mock::{ContentBlock, ContentKind, Contents};
use crate::script::{Located, Span};

impl Checker {
    pub(super) fn content(&mut self, block: &ContentBlock) {
        let at = block.kind.at;
        let has = |wanted: &str| match wanted {
            "text" => block.text.is_some(),
            "data" => block.data.is_some() || block.file.is_some(),
            "mime_type" => block.mime_type.is_some(),
            "resource" => block.resource.is_some(),
            "uri" => block.uri.is_some(),
            _ => block.name.is_some(),
        };
        let (kind, needs): (&str, &[&str]) = match block.kind.value {
            ContentKind::Text => ("text", &["text"]),
            ContentKind::Image => ("image", &["data", "mime_type"]),
            ContentKind::Audio => ("audio", &["data", "mime_type"]),
            ContentKind::Resource => ("resource", &["resource"]),
            ContentKind::ResourceLink => ("resource_link", &["uri", "name"]),
        };
        for needed in needs.iter().filter(|needed| !has(needed)) {
            self.say(at, format!("a block of type `{kind}` needs `{needed}`"));
        }
        let only_others = ["text", "data", "resource", "uri"];
        for other in only_others.iter().filter(|other| !needs.contains(other) && has(other)) {
            self.say(at, format!("a block of type `{kind}` has no `{other}`"));
        }
        self.base64(block.data.as_ref());
        if let Some(resource) = &block.resource {
            self.contents(resource, at);
            if resource.uri.is_none() {
                self.say(at, "an embedded resource needs `uri`");
            }
        }
        if let Some(priority) = block.annotations.as_ref().and_then(|it| it.priority.as_ref())
            && !priority.value.as_f64().is_some_and(|it| (0.0..=1.0).contains(&it))
        {
            self.say(priority.at, "`priority` is from 0 to 1");
        }
    }

    pub(super) fn contents(&mut self, contents: &Contents, at: Span) {
        match (&contents.text, &contents.blob) {
            (Some(_), None) | (None, Some(_)) => {}
            (None, None) | (Some(_), Some(_)) => {
                self.say(at, "contents have `text` or `blob`");
            }
        }
        self.base64(contents.blob.as_ref());
    }

    pub(super) fn base64(&mut self, data: Option<&Located<String>>) {
        let Some(data) = data.filter(|data| !data.contains("{{")) else { return };
        if let Err(error) = base64::engine::general_purpose::STANDARD.decode(data.as_bytes()) {
            let hint = "broken base64 on purpose is `fault: invalid_base64`; bytes of a file are `file: picture.png`";
            self.advise(data.at, format!("not base64: {error}"), hint);
        }
    }
}
