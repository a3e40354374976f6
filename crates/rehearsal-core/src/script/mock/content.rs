//! Content blocks of a mock file.

use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

use super::ContentsEntry;
use crate::script::{Located, Span, WithKeyOrder};

/// A content block. Its `type` determines which other keys it has. A string is short for a text block.
// It is not an enum by `type`, because serde would then lose the places of the values inside it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
#[schemars(transform = or_text)]
pub struct ContentBlock {
    /// The type of the block.
    #[serde(rename = "type")]
    pub kind: Located<ContentKind>,
    /// `text`: the text; a template.
    pub text: Option<Located<String>>,
    /// `image`, `audio`: the bytes as base64; a template.
    pub data: Option<Located<String>>,
    /// `image`, `audio`: the file with the bytes; its path is relative to the mock file.
    pub file: Option<Located<String>>,
    /// `image`, `audio`, `resource_link`: the media type, such as `image/png`.
    #[serde(alias = "mimeType")]
    pub mime_type: Option<String>,
    /// `resource`: the embedded resource.
    pub resource: Option<EmbeddedResource>,
    /// `resource_link`: the URI of the resource; a template.
    pub uri: Option<String>,
    /// `resource_link`: the name of the resource; a template.
    pub name: Option<String>,
    /// `resource_link`: the display name for users.
    pub title: Option<String>,
    /// `resource_link`: the description for the model.
    pub description: Option<String>,
    /// `resource_link`: the size in bytes.
    pub size: Option<u64>,
    /// The audience, the priority and the time of the last change.
    pub annotations: Option<WithKeyOrder<Annotations>>,
    /// The `_meta` of the block.
    #[serde(alias = "_meta")]
    pub meta: Option<Map<String, Value>>,
}

fn or_text(schema: &mut Schema) {
    let keys = std::mem::take(schema);
    *schema =
        json_schema!({"anyOf": [{"type": "string", "description": "The text of a text block; a template"}, keys]});
}

impl ContentBlock {
    fn from_text(text: String, at: Span) -> ContentBlock {
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
            TextOrBlock::Text(text) => ContentBlock::from_text(text, at),
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

/// The type of a content block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentKind {
    /// A text.
    Text,
    /// An image.
    Image,
    /// Audio.
    Audio,
    /// A resource with its contents.
    Resource,
    /// A link to a resource.
    ResourceLink,
}

/// A resource that is embedded in a content block.
pub type EmbeddedResource = ContentsEntry;

/// The audience, the priority and the time of the last change.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Annotations {
    /// The audience: `user`, `assistant` or both.
    pub audience: Option<Vec<Role>>,
    /// The importance, from 0 (optional) to 1 (required).
    pub priority: Option<Located<Number>>,
    /// The time of the last change, in RFC 3339.
    #[serde(alias = "lastModified")]
    pub last_modified: Option<String>,
}

/// A role in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// A message of a prompt.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptMessage {
    /// The role of the sender.
    pub role: Role,
    /// The content block.
    pub content: ContentBlock,
}

/// An icon of a server, tool, resource or prompt.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Icon {
    /// The URL of the image, which may be a `data:` URL.
    pub src: String,
    /// The media type of the image, such as `image/png`.
    pub mime_type: Option<String>,
    /// The sizes of the image, such as `48x48` or `any`.
    pub sizes: Option<Vec<String>>,
    /// The theme that the icon is made for: `light` or `dark`.
    pub theme: Option<String>,
}
