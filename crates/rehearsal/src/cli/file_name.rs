//! The names of files that hold the content of an answer.

use rehearsal::core::protocol::Content;
use rehearsal::core::protocol::content::ResourceContents;

/// Maximum length of the part before the extension, in characters.
const MAX_STEM: usize = 80;

/// Extensions that differ from the subtype of the MIME type.
const EXTENSIONS: [(&str, &str); 22] = [
    ("application/gzip", "gz"),
    ("application/javascript", "js"),
    ("application/octet-stream", "bin"),
    ("application/x-tar", "tar"),
    ("audio/mp4", "m4a"),
    ("audio/mpeg", "mp3"),
    ("audio/vnd.wave", "wav"),
    ("audio/wave", "wav"),
    ("audio/webm", "weba"),
    ("audio/x-wav", "wav"),
    ("image/jpeg", "jpg"),
    ("image/svg+xml", "svg"),
    ("image/tiff", "tif"),
    ("image/vnd.microsoft.icon", "ico"),
    ("image/x-icon", "ico"),
    ("text/calendar", "ics"),
    ("text/javascript", "js"),
    ("text/markdown", "md"),
    ("text/plain", "txt"),
    ("video/mpeg", "mpg"),
    ("video/quicktime", "mov"),
    ("video/x-matroska", "mkv"),
];

/// The name of a file without a directory. It has no slash and does not begin with a dot, whatever the server sends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileName {
    stem: String,
    extension: String,
}

impl FileName {
    /// Names a content block after its resource, otherwise after `subject`: the tool, prompt or resource that was
    /// requested.
    pub(super) fn for_block(block: &Content, subject: &str) -> FileName {
        match block {
            Content::Image { mime_type, .. } | Content::Audio { mime_type, .. } => {
                FileName { stem: plain(subject), extension: extension(Some(mime_type), None) }
            }
            Content::Resource(ResourceContents { uri, mime_type, .. }) => {
                let path = uri.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
                let last = path.rsplit(['/', ':']).next().unwrap_or_default();
                let (stem, own) = match last.rsplit_once('.') {
                    Some((stem, own)) if !stem.is_empty() && is_extension(own) => (stem, Some(own)),
                    Some(_) | None => (last, None),
                };
                FileName { stem: plain(stem), extension: extension(mime_type.as_deref(), own) }
            }
            Content::Text { .. } | Content::ResourceLink { .. } | Content::Other(_) => {
                FileName { stem: plain(subject), extension: "bin".to_owned() }
            }
        }
    }

    /// The name, and names for the case that it exists: `map.png`, `map-2.png`, `map-3.png`.
    pub(super) fn candidates(&self) -> impl Iterator<Item = String> {
        let FileName { stem, extension } = self;
        let numbered = (2_u32..).map(move |number| format!("{stem}-{number}.{extension}"));
        std::iter::once(format!("{stem}.{extension}")).chain(numbered)
    }
}

/// Replaces every character except letters, digits and `-_.` by `-`.
fn plain(name: &str) -> String {
    let kept = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let name: String = name.chars().take(MAX_STEM).map(kept).collect();
    let name = name.trim_matches(['-', '.']);
    if name.is_empty() { "content".to_owned() } else { name.to_owned() }
}

fn extension(mime_type: Option<&str>, own: Option<&str>) -> String {
    let mime_type = mime_type.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase();
    let known = EXTENSIONS.iter().find(|(kind, _)| *kind == mime_type).map(|(_, extension)| *extension);
    let second = mime_type.split_once('/').map(|(_, second)| second).filter(|second| is_extension(second));
    // The name of the resource is more exact than `application/octet-stream`.
    let specific = known.filter(|extension| *extension != "bin" || own.is_none());
    specific.or(own).or(second).unwrap_or("bin").to_owned()
}

fn is_extension(text: &str) -> bool {
    (1..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn first(block: serde_json::Value, subject: &str) -> String {
        FileName::for_block(&Content::read(&block), subject).candidates().next().unwrap()
    }

    #[test]
    fn images_and_audio_are_named_after_the_requested_subject() {
        let image = |kind: &str, subject: &str| first(json!({"type": "image", "data": "", "mimeType": kind}), subject);
        let table = [
            ("image/png", "get-map", "get-map.png"),
            ("image/JPEG; q=1", "map", "map.jpg"),
            ("image/svg+xml", "map", "map.svg"),
            ("image/x-odd+type", "map", "map.bin"),
            ("", "map", "map.bin"),
            ("../../etc", "../../etc/passwd", "etc-passwd.bin"),
            ("image/png", "..", "content.png"),
            ("image/png", ".bashrc", "bashrc.png"),
            ("image/png", "a\0b\nc", "a-b-c.png"),
            ("image/png", "天気", "天気.png"),
        ];
        for (kind, subject, expected) in table {
            assert_eq!(image(kind, subject), expected, "{kind} {subject}");
        }
    }

    #[test]
    fn resources_are_named_after_their_uri() {
        let blob = |uri: &str, kind: Option<&str>| {
            first(json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "blob": ""}}), "tool")
        };
        let table = [
            ("file:///a/report.pdf", Some("application/pdf"), "report.pdf"),
            ("file:///a/report.pdf", None, "report.pdf"),
            ("file:///a/data.parquet", Some("application/octet-stream"), "data.parquet"),
            ("file:///a/data", Some("application/octet-stream"), "data.bin"),
            ("tiny://pixel", Some("image/png"), "pixel.png"),
            ("x:/..%2f..%2fetc/", None, "2f..-2fetc.bin"),
            ("file:///../..", None, "content.bin"),
            ("https://a/b.png?x=/../c#d", None, "b.png"),
        ];
        for (uri, kind, expected) in table {
            assert_eq!(blob(uri, kind), expected, "{uri} {kind:?}");
        }
    }

    #[test]
    fn an_existing_name_gets_a_number() {
        let name = FileName { stem: "map".into(), extension: "png".into() };
        let names: Vec<_> = name.candidates().take(3).collect();
        assert_eq!(names, ["map.png", "map-2.png", "map-3.png"]);
    }
}
