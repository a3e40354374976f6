//! Content blocks of a mock file.

use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

use super::ContentsEntry;
use crate::script::{Located, Span, WithKeyOrder};

/// A piece of an answer; which keys it takes depends on its `type`. A text alone is a block of text.
///
/// # Why not an enum
///
/// An enum by `type` would lose the place of everything inside it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
#[schemars(transform = or_text)]
pub struct ContentBlock {
    /// What kind of block.
    #[serde(rename = "type")]
    pub kind: Located<ContentKind>,
    /// `text`: a template.
    pub text: Option<Located<String>>,
    /// `image`, `audio`: base64.
    pub data: Option<Located<String>>,
    /// `image`, `audio`: the bytes of this file, beside the mock file.
    pub file: Option<Located<String>>,
    /// `image`, `audio`, `resource_link`: what kind of bytes.
    #[serde(alias = "mimeType")]
    pub mime_type: Option<String>,
    /// `resource`: what is embedded.
    pub resource: Option<EmbeddedResource>,
    /// `resource_link`: where it is.
    pub uri: Option<String>,
    /// `resource_link`: for programs.
    pub name: Option<String>,
    /// `resource_link`: for people.
    pub title: Option<String>,
    /// `resource_link`: for the model.
    pub description: Option<String>,
    /// `resource_link`: how many bytes.
    pub size: Option<u64>,
    /// Who it is for and how much it matters.
    pub annotations: Option<WithKeyOrder<Annotations>>,
    /// `_meta`, as it goes on the wire.
    #[serde(alias = "_meta")]
    pub meta: Option<Map<String, Value>>,
}

fn or_text(schema: &mut Schema) {
    let keys = std::mem::take(schema);
    *schema = json_schema!({"anyOf": [{"type": "string", "description": "A block of text; a template"}, keys]});
}

impl ContentBlock {
    fn of_text(text: String, at: Span) -> ContentBlock {
        ContentBlock {
            kind: Located { value: ContentKind::Text, at },
            text: Some(Located { value: text, at }),
            data: None,
            file: None,
            mime_type: None,
            resource: None,
            uri: None,
            name: None,
            title: None,
            description: None,
            size: None,
            annotations: None,
            meta: None,
        }
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ContentBlock, D::Error> {
        let Located { value, at } = Located::<TextOrBlock>::deserialize(deserializer)?;
        Ok(match value {
            TextOrBlock::Text(text) => ContentBlock::of_text(text, at),
            TextOrBlock::Block(block) => *block,
        })
    }
}

enum TextOrBlock {
    Text(String),
    Block(Box<ContentBlock>),
}

impl<'de> Deserialize<'de> for TextOrBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TextOrBlock, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = TextOrBlock;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("text, or a block such as { type: text, text: … }")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<TextOrBlock, E> {
                Ok(TextOrBlock::Text(text.to_owned()))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<TextOrBlock, A::Error> {
                let keys = serde::de::value::MapAccessDeserializer::new(map);
                // This is the derived function for the keys, not that of the trait.
                ContentBlock::deserialize(keys).map(|block| TextOrBlock::Block(Box::new(block)))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// The kinds of content blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentKind {
    /// Words.
    Text,
    /// A picture.
    Image,
    /// A sound.
    Audio,
    /// A resource and its contents.
    Resource,
    /// A resource to read.
    ResourceLink,
}

/// A resource inside an answer.
pub type EmbeddedResource = ContentsEntry;

/// Who something is for and how much it matters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Annotations {
    /// `user`, `assistant` or both.
    pub audience: Option<Vec<Role>>,
    /// From 0 to 1.
    pub priority: Option<Located<Number>>,
    /// When it last changed, in RFC 3339.
    #[serde(alias = "lastModified")]
    pub last_modified: Option<String>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// One thing that is said in a prompt.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptMessage {
    /// Who says it.
    pub role: Role,
    /// What.
    pub content: ContentBlock,
}

/// A picture of a server, tool, resource or prompt.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Icon {
    /// Where it is: a URL, or a `data:` URL.
    pub src: String,
    /// What kind of picture.
    pub mime_type: Option<String>,
    /// `48x48`, `any`.
    pub sizes: Option<Vec<String>>,
    /// `light` or `dark`.
    pub theme: Option<String>,
}
