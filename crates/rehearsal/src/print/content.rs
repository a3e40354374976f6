//! What a tool answered.

use std::io::{self, Write};

use rehearsal::client::Response;
use rehearsal::core::protocol::Content;
use rehearsal::core::protocol::content::ResourceData;

/// Prints the content of an answer: text as it is, and one line about everything that is not text.
///
/// ```text
/// Rain in Oslo
/// [image image/png, 1.2 kB]
/// [link file:///map.svg, image/svg+xml]
/// ```
///
/// Structured content is printed where there is no text that says the same.
pub(crate) fn response(response: &Response, out: &mut dyn Write) -> io::Result<()> {
    let blocks = response.blocks();
    for block in &blocks {
        print_block(block, out)?;
    }
    match response.structured_content() {
        Some(value) if blocks.iter().all(|block| block.as_text().is_none()) => writeln!(out, "{value:#}"),
        Some(_) | None => Ok(()),
    }
}

fn print_block(block: &Content, out: &mut dyn Write) -> io::Result<()> {
    match block {
        Content::Text { text } => print_text(text, out),
        Content::Image { mime_type, .. } => writeln!(out, "[image {mime_type}, {}]", size(block)),
        Content::Audio { mime_type, .. } => writeln!(out, "[audio {mime_type}, {}]", size(block)),
        Content::Resource(resource) => {
            let kind = resource.mime_type.as_ref().map(|kind| format!(", {kind}")).unwrap_or_default();
            match &resource.data {
                ResourceData::Text(text) => {
                    writeln!(out, "[resource {}{kind}]", resource.uri)?;
                    print_text(text, out)
                }
                ResourceData::Blob(_) => writeln!(out, "[resource {}{kind}, {}]", resource.uri, size(block)),
            }
        }
        Content::ResourceLink { uri, mime_type, .. } => {
            let kind = mime_type.as_ref().map(|kind| format!(", {kind}")).unwrap_or_default();
            writeln!(out, "[link {uri}{kind}]")
        }
        Content::Other(value) => writeln!(out, "[not a content block] {value}"),
    }
}

/// Ends the last line where the server did not, so that what follows begins on its own.
fn print_text(text: &str, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    if text.is_empty() || text.ends_with('\n') { Ok(()) } else { writeln!(out) }
}

fn size(block: &Content) -> String {
    match block.decoded() {
        Some(Ok(bytes)) => bytes_in_words(bytes.len()),
        Some(Err(_)) => "its base64 is broken".to_owned(),
        None => "no data".to_owned(),
    }
}

/// `68 bytes`, `1.2 kB`, `3.4 MB`.
#[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
fn bytes_in_words(count: usize) -> String {
    match count {
        1 => "1 byte".to_owned(),
        0..1_000 => format!("{count} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000.. => format!("{:.1} MB", count as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn printed(block: &Value) -> String {
        let mut out = Vec::new();
        print_block(&Content::read(block), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_block_is_text_or_one_line_about_it() {
        let kilobytes = "AAAA".repeat(400);
        let table = [
            (json!({"type": "text", "text": "two\nlines"}), "two\nlines\n"),
            (json!({"type": "text", "text": "ended\n"}), "ended\n"),
            (json!({"type": "image", "data": kilobytes, "mimeType": "image/png"}), "[image image/png, 1.2 kB]\n"),
            (json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav"}), "[audio audio/wav, 1 byte]\n"),
            (json!({"type": "image", "data": "%", "mimeType": "x/y"}), "[image x/y, its base64 is broken]\n"),
            (json!({"type": "resource_link", "uri": "a:b", "name": "b", "mimeType": "x/y"}), "[link a:b, x/y]\n"),
            (json!({"type": "resource", "resource": {"uri": "a:b", "text": "hi"}}), "[resource a:b]\nhi\n"),
            (json!({"type": "resource", "resource": {"uri": "a:b", "blob": "AAAA"}}), "[resource a:b, 3 bytes]\n"),
            (json!({"type": "hologram"}), "[not a content block] {\"type\":\"hologram\"}\n"),
        ];
        for (block, expected) in table {
            assert_eq!(printed(&block), expected, "{block}");
        }
    }

    #[test]
    fn sizes_are_told_in_the_largest_unit_that_fits() {
        assert_eq!(bytes_in_words(0), "0 bytes");
        assert_eq!(bytes_in_words(999), "999 bytes");
        assert_eq!(bytes_in_words(2_500_000), "2.5 MB");
    }
}
