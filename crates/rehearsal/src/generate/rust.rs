//! A recording as a small project on the official Rust SDK.

use std::collections::BTreeSet;

use minijinja::context;
use rehearsal_core::protocol::Era;
use serde_json::json;

use super::generated::{Generated, TemplateError};
use super::learned::Learned;
use super::narrow::narrows;
use super::python::{module_name, subscribes};
use super::recorded::{Lists, Recorded, notes, plain_words, rendered};

const BEFORE: &str = include_str!("templates/before.rs.jinja");
const CARGO: &str = include_str!("templates/Cargo.toml.jinja");
const EXACT: &str = include_str!("templates/exact.rs.jinja");
const MAIN: &str = include_str!("templates/main.rs.jinja");
const MATCHING: &str = include_str!("templates/matching.rs.jinja");
const RECORDED: &str = include_str!("templates/recorded.rs.jinja");

/// Writes the project that answers like the recording; `source` is what to call the recording.
pub fn generate_rust(learned: &Learned, source: &str) -> Result<Generated, TemplateError> {
    let recorded = Recorded::of(learned);
    let Lists { tools, resources, prompts } = Lists::of(learned);
    let templates = &learned.resource_templates.items;
    let mut capabilities = learned.capabilities.of(Era::Legacy).cloned().unwrap_or_default();
    let stateless = learned.capabilities.of(Era::Modern).filter(|_| !learned.capabilities.differing().is_empty());
    let asked_for_resources = ["resources/read", "resources/subscribe", "resources/unsubscribe"];
    let has_resources = !resources.is_empty() || !templates.is_empty();
    // Where nobody ever asked what it declares.
    for (capability, is) in [
        ("tools", !tools.is_empty() || recorded.has("tools", &["tools/call"])),
        ("resources", has_resources || recorded.has("resources", &asked_for_resources)),
        ("prompts", !prompts.is_empty() || recorded.has("prompts", &["prompts/get"])),
        ("completions", recorded.has("completions", &["completion/complete"])),
    ] {
        if recorded.capabilities.is_none() && is {
            capabilities.insert(capability.to_owned(), json!({}));
        }
    }
    let mut server = learned.server.clone();
    server.insert("name".to_owned(), learned.name().into());
    server.insert("version".to_owned(), learned.version().into());
    let data = json!({
        "server": server,
        "capabilities": capabilities,
        "statelessCapabilities": stateless,
        "supportedVersions": learned.supported_versions,
        "namesItself": learned.names_itself,
        "instructions": learned.instructions,
        "tools": tools,
        "resources": resources,
        "resourceTemplates": templates,
        "prompts": prompts,
        "refuses": recorded.refuses,
        "responses": recorded.responses,
    });
    let mut left_out = recorded.left_out.clone();
    let unsayable: BTreeSet<_> =
        learned.errors().map(|error| error.code).filter(|code| i32::try_from(*code).is_err()).collect();
    left_out.extend(unsayable.iter().map(|code| format!("the code {code} of an error, which rmcp does not say")));
    let context = context! {
        source => plain_words(source),
        package => format!("{}-mock", module_name(learned.name()).replace('_', "-")),
        subscribes => recorded.responses.contains_key("resources/subscribe") || subscribes(learned),
        logs => learned.takes_levels || recorded.has("logging", &[]),
        tells_changes => recorded.tells_changes(),
        rises => recorded.rises,
        narrows => narrows(learned),
        secrets => recorded.secrets,
        without_state => recorded.without_state,
        notes => notes("//!", &left_out),
    };
    let mut files = vec![("src/recorded.json".to_owned(), format!("{data:#}\n"))];
    for (name, template) in [
        ("Cargo.toml", CARGO),
        ("src/before.rs", BEFORE),
        ("src/exact.rs", EXACT),
        ("src/main.rs", MAIN),
        ("src/matching.rs", MATCHING),
        ("src/recorded.rs", RECORDED),
    ] {
        files.push((name.to_owned(), rendered(template, &context)?));
    }
    files.sort();
    Ok(Generated::new(files, &left_out))
}
