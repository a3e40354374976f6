//! A recording as a small project on the official Rust SDK.

use minijinja::context;
use serde_json::json;

use super::generated::{Generated, TemplateError};
use super::learned::Learned;
use super::python::{module_name, with_unlisted};
use super::recorded::{Recorded, plain_words, rendered};

const BEFORE: &str = include_str!("templates/before.rs.jinja");
const CARGO: &str = include_str!("templates/Cargo.toml.jinja");
const MAIN: &str = include_str!("templates/main.rs.jinja");
const MATCHING: &str = include_str!("templates/matching.rs.jinja");
const RECORDED: &str = include_str!("templates/recorded.rs.jinja");

/// Writes the project that answers like the recording; `source` is what to call the recording.
pub fn generate_rust(learned: &Learned, source: &str) -> Result<Generated, TemplateError> {
    let Recorded { responses, left_out, .. } = Recorded::of(learned);
    let tools = with_unlisted(
        &learned.tools.items,
        learned,
        "tools/call",
        |name| json!({"name": name, "inputSchema": {"type": "object"}}),
    );
    let prompts = with_unlisted(&learned.prompts.items, learned, "prompts/get", |name| json!({"name": name}));
    let (resources, templates) = (&learned.resources.items, &learned.resource_templates.items);
    let context = context! {
        source => plain_words(source),
        package => format!("{}-mock", module_name(learned.name()).replace('_', "-")),
        tools => !tools.is_empty(),
        prompts => !prompts.is_empty(),
        has_resources => !resources.is_empty() || !templates.is_empty() || responses.contains_key("resources/read"),
        completes => responses.contains_key("completion/complete"),
        logs => learned.capabilities.contains_key("logging"),
    };
    let title = learned.server.get("title").filter(|title| title.is_string());
    let recorded = json!({
        "server": {"name": learned.name(), "version": learned.version(), "title": title},
        "instructions": learned.instructions,
        "tools": tools,
        "resources": resources,
        "resourceTemplates": templates,
        "prompts": prompts,
        "responses": responses,
    });
    let mut files = vec![("src/recorded.json".to_owned(), format!("{recorded:#}\n"))];
    for (name, template) in [
        ("Cargo.toml", CARGO),
        ("src/before.rs", BEFORE),
        ("src/main.rs", MAIN),
        ("src/matching.rs", MATCHING),
        ("src/recorded.rs", RECORDED),
    ] {
        files.push((name.to_owned(), rendered(template, &context)?));
    }
    files.sort();
    Ok(Generated { files, left_out })
}
