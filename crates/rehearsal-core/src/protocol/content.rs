//! Content blocks of tool results and prompts.

use base64::Engine as _;
use serde_json::Value;

/// One content block. A block that cannot be parsed is kept in [`Content::Other`].
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// The base64 text, unchanged.
        data: String,
        /// The media type, such as `image/png`.
        mime_type: String,
    },
    /// Audio, since 2025-03-26.
    Audio {
        /// The base64 text, unchanged.
        data: String,
        /// The media type, such as `audio/wav`.
        mime_type: String,
    },
    /// An embedded resource with its contents.
    Resource(ResourceContents),
    /// A link to a resource, since 2025-06-18.
    ResourceLink {
        /// The URI.
        uri: String,
        /// The name.
        name: String,
        /// The media type.
        mime_type: Option<String>,
    },
    /// A block of an unknown type, or one without a member that its type requires.
    Other(Value),
}

/// The contents of a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceContents {
    /// The URI.
    pub uri: String,
    /// The media type.
    pub mime_type: Option<String>,
    /// The contents.
    pub data: ResourceData,
}

/// Text or bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum ResourceData {
    /// Text.
    Text(String),
    /// The base64 text, unchanged.
    Blob(String),
}

impl Content {
    /// Parses a block; never fails.
    pub fn read(block: &Value) -> Content {
        Content::understood(block).unwrap_or_else(|| Content::Other(block.clone()))
    }

    fn understood(block: &Value) -> Option<Content> {
        Some(match block.get("type")?.as_str()? {
            "text" => Content::Text { text: string(block, "text")? },
            "image" => Content::Image { data: string(block, "data")?, mime_type: string(block, "mimeType")? },
            "audio" => Content::Audio { data: string(block, "data")?, mime_type: string(block, "mimeType")? },
            "resource" => Content::Resource(ResourceContents::read(block.get("resource")?)?),
            "resource_link" => Content::ResourceLink {
                uri: string(block, "uri")?,
                name: string(block, "name")?,
                mime_type: string(block, "mimeType"),
            },
            _ => return None,
        })
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        if let Content::Text { text } = self { Some(text) } else { None }
    }

    /// The bytes of an image, audio or an embedded blob; `Some(Err)` if the base64 is invalid.
    pub fn decoded(&self) -> Option<Result<Vec<u8>, base64::DecodeError>> {
        match self {
            Content::Image { data, .. } | Content::Audio { data, .. } => Some(decode(data)),
            Content::Resource(ResourceContents { data: ResourceData::Blob(blob), .. }) => Some(decode(blob)),
            Content::Text { .. } | Content::Resource(_) | Content::ResourceLink { .. } | Content::Other(_) => None,
        }
    }
}

impl ResourceContents {
    /// Parses one element of `contents`; `None` if it has no `uri`, or neither `text` nor `blob`.
    pub fn read(contents: &Value) -> Option<ResourceContents> {
        let data = match (string(contents, "text"), string(contents, "blob")) {
            (Some(text), _) => ResourceData::Text(text),
            (None, Some(blob)) => ResourceData::Blob(blob),
            (None, None) => return None,
        };
        Some(ResourceContents { uri: string(contents, "uri")?, mime_type: string(contents, "mimeType"), data })
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match &self.data {
            ResourceData::Text(text) => Some(text),
            ResourceData::Blob(_) => None,
        }
    }
}

fn decode(data: &str) -> Result<Vec<u8>, base64::DecodeError> {
    base64::engine::general_purpose::STANDARD.decode(data)
}

pub(super) fn string(object: &Value, key: &str) -> Option<String> {
    object.get(key)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_block_type_is_read() {
        let table = [
            json!({"type": "text", "text": "hi"}),
            json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}),
            json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}),
            json!({"type": "resource", "resource": {"uri": "a:b", "text": "hi"}}),
            json!({"type": "resource", "resource": {"uri": "a:b", "blob": "AAAA"}}),
            json!({"type": "resource_link", "uri": "a:b", "name": "b"}),
        ];
        for block in table {
            assert!(!matches!(Content::read(&block), Content::Other(_)), "{block}");
        }
    }

    #[test]
    fn an_incomplete_block_is_kept_unchanged() {
        for block in [json!({"type": "text"}), json!({"type": "hologram"}), json!(5), json!({"type": "resource"})] {
            assert_eq!(Content::read(&block), Content::Other(block));
        }
    }

    #[test]
    fn invalid_base64_differs_from_missing_data() {
        let image = Content::Image { data: "%%".into(), mime_type: "image/png".into() };
        assert!(image.decoded().unwrap().is_err());
        assert!(Content::Text { text: String::new() }.decoded().is_none());
    }
}
