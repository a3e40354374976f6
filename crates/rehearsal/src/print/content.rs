//! Results of tools, resources and prompts in their printed form.

use std::io::{self, Write};

use rehearsal::client::ServerResponse;
use rehearsal::core::protocol::Content;
use rehearsal::core::protocol::content::{ResourceContents, ResourceData};
use serde_json::Value;

use super::terminal::Terminal;
use super::terminal::{lines, sanitize_line};

/// Prints the content of a tool result: text unchanged, and one line about each other block.
///
/// ```text
/// Rain in Oslo
/// [image image/png, 1.2 kB]
/// [link file:///map.svg, image/svg+xml]
/// ```
///
/// Structured content is printed if no block repeats it, and a result without any content as JSON.
pub(crate) fn tool_answer(answer: &ServerResponse, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    let blocks = answer.blocks();
    for block in &blocks {
        print_block(block, terminal, out)?;
    }
    match answer.structured_content() {
        Some(value) if !blocks.iter().any(|block| shows_structured(block, value)) => {
            print_text(&format!("{value:#}"), terminal, out)
        }
        None if !answer.result().is_null() && !answer.result()["content"].is_array() && !answer.is_input_required() => {
            print_text(&format!("{:#}", answer.result()), terminal, out)
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether a block repeats the structured content: text is expected to, other blocks do if their data is in it.
fn shows_structured(block: &Content, structured: &Value) -> bool {
    match block {
        Content::Text { .. } => true,
        Content::Image { data, .. } | Content::Audio { data, .. } => contains_text(structured, data),
        Content::Resource(ResourceContents { data: ResourceData::Text(data) | ResourceData::Blob(data), .. }) => {
            contains_text(structured, data)
        }
        Content::ResourceLink { uri, .. } => contains_text(structured, uri),
        Content::Other(_) => false,
    }
}

fn contains_text(value: &Value, searched: &str) -> bool {
    match value {
        Value::String(text) => text == searched,
        Value::Array(items) => items.iter().any(|item| contains_text(item, searched)),
        Value::Object(fields) => fields.values().any(|field| contains_text(field, searched)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Prints the contents of a resource; a single text is printed alone.
pub(crate) fn resource(contents: &[Content], terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    match contents {
        [Content::Resource(ResourceContents { data: ResourceData::Text(text), .. })] => print_text(text, terminal, out),
        contents => contents.iter().try_for_each(|one| print_block(one, terminal, out)),
    }
}

/// Prints the messages of a prompt, each under its role:
///
/// ```text
/// user:
/// What is the weather in Oslo?
///
/// assistant:
/// Rain.
/// ```
pub(crate) fn messages(answer: &ServerResponse, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    let messages = answer.result().get("messages").and_then(Value::as_array);
    for (index, message) in messages.into_iter().flatten().enumerate() {
        let role = message.get("role").and_then(Value::as_str).unwrap_or("no role");
        let heading = terminal.palette.heading;
        let gap = if index == 0 { "" } else { "\n" };
        writeln!(out, "{gap}{heading}{}:{heading:#}", sanitize_line(role))?;
        print_block(&Content::read(message.get("content").unwrap_or(&Value::Null)), terminal, out)?;
    }
    Ok(())
}

fn print_block(block: &Content, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    let about = match block {
        Content::Text { text } => return print_text(text, terminal, out),
        Content::Image { mime_type, .. } => format!("[image {mime_type}, {}]", size(block)),
        Content::Audio { mime_type, .. } => format!("[audio {mime_type}, {}]", size(block)),
        Content::Resource(resource) => {
            let kind = kind(resource.mime_type.as_ref());
            match &resource.data {
                ResourceData::Text(text) => {
                    writeln!(out, "[resource {}{}]", sanitize_line(&resource.uri), sanitize_line(&kind))?;
                    return print_text(text, terminal, out);
                }
                ResourceData::Blob(_) => format!("[resource {}{kind}, {}]", resource.uri, size(block)),
            }
        }
        Content::ResourceLink { uri, mime_type, .. } => format!("[link {uri}{}]", kind(mime_type.as_ref())),
        Content::Other(value) => format!("[not a content block] {value}"),
    };
    writeln!(out, "{}", sanitize_line(&about))
}

fn kind(mime_type: Option<&String>) -> String {
    mime_type.map(|kind| format!(", {kind}")).unwrap_or_default()
}

/// Prints a text, and adds the line end if it is missing. Control sequences are removed on a terminal only.
fn print_text(text: &str, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    match terminal.width {
        Some(_) => out.write_all(lines(text).as_bytes())?,
        None => out.write_all(text.as_bytes())?,
    }
    if text.is_empty() || text.ends_with('\n') { Ok(()) } else { writeln!(out) }
}

fn size(block: &Content) -> String {
    match block.decoded() {
        Some(Ok(bytes)) => byte_size(bytes.len()),
        Some(Err(_)) => "invalid base64".to_owned(),
        None => "no data".to_owned(),
    }
}

/// `68 bytes`, `1.2 kB`, `3.4 MB`.
#[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
pub(crate) fn byte_size(count: usize) -> String {
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
    use crate::print::Palette;
    use serde_json::json;

    fn printed(block: &Value) -> String {
        let mut out = Vec::new();
        let terminal = Terminal { palette: Palette::PLAIN, width: None };
        print_block(&Content::read(block), &terminal, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_block_is_printed_as_text_or_as_one_line() {
        let kilobytes = "AAAA".repeat(400);
        let table = [
            (json!({"type": "text", "text": "two\nlines"}), "two\nlines\n"),
            (json!({"type": "text", "text": "ended\n"}), "ended\n"),
            (json!({"type": "image", "data": kilobytes, "mimeType": "image/png"}), "[image image/png, 1.2 kB]\n"),
            (json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav"}), "[audio audio/wav, 1 byte]\n"),
            (json!({"type": "image", "data": "%", "mimeType": "x/y"}), "[image x/y, invalid base64]\n"),
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
    fn control_sequences_are_removed_on_a_terminal() {
        let text = "a\u{1b}[2Jb\tc\n";
        let printed = |width| {
            let mut out = Vec::new();
            print_text(text, &Terminal { palette: Palette::PLAIN, width }, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!((printed(None).as_str(), printed(Some(80)).as_str()), (text, "a\u{fffd}[2Jb\tc\n"));
    }

    #[test]
    fn sizes_are_printed_in_the_largest_unit_that_fits() {
        assert_eq!(byte_size(0), "0 bytes");
        assert_eq!(byte_size(999), "999 bytes");
        assert_eq!(byte_size(2_500_000), "2.5 MB");
    }
}
