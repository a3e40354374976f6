//! Writes a small project on the official Rust SDK.

use minijinja::context;
use serde_json::json;

use super::program_data::{ProgramData, TemplateError, comment_text, notes, rendered};
use super::python::module_name;
use super::server_model::{Generated, ServerModel};

const PRECEDING: &str = include_str!("templates/preceding.rs.jinja");
const CARGO: &str = include_str!("templates/Cargo.toml.jinja");
const EXACT: &str = include_str!("templates/exact.rs.jinja");
const MAIN: &str = include_str!("templates/main.rs.jinja");
const MATCHING: &str = include_str!("templates/matching.rs.jinja");
const RECORDED: &str = include_str!("templates/recorded.rs.jinja");

/// Writes the project that answers like the recording; `source` is the name of the recording.
pub fn generate_rust(model: &ServerModel, source: &str) -> Result<Generated, TemplateError> {
    let data = ProgramData::new(model);
    let templates = &model.resource_templates.items;
    let mut capabilities = data.capabilities.clone().unwrap_or_default();
    let resource_methods = ["resources/read", "resources/subscribe", "resources/unsubscribe"];
    let has_resources = !data.resources.is_empty() || !templates.is_empty();
    // If no handshake was recorded, the capabilities follow from what the server offers.
    for (capability, is_offered) in [
        ("tools", !data.tools.is_empty() || data.has("tools", &["tools/call"])),
        ("resources", has_resources || data.has("resources", &resource_methods)),
        ("prompts", !data.prompts.is_empty() || data.has("prompts", &["prompts/get"])),
        ("completions", data.has("completions", &["completion/complete"])),
    ] {
        if data.capabilities.is_none() && is_offered {
            capabilities.insert(capability.to_owned(), json!({}));
        }
    }
    let mut server = model.server.clone();
    server.insert("name".to_owned(), model.name().into());
    server.insert("version".to_owned(), model.version().into());
    let recorded = json!({
        "server": server,
        "capabilities": capabilities,
        "supportedVersions": model.supported_versions,
        "instructions": model.instructions,
        "tools": data.tools,
        "resources": data.resources,
        "resourceTemplates": templates,
        "prompts": data.prompts,
        "refuses": data.refuses,
        "responses": data.responses,
    });
    let context = context! {
        source => comment_text(source),
        package => format!("{}-mock", module_name(model.name()).replace('_', "-")),
        subscribes => data.subscribes(),
        logs => data.has("logging", &[]),
        notifies_changes => data.notifies_changes(),
        secrets => data.secrets,
        notes => notes("//!", &data.left_out),
    };
    let mut files = vec![("src/recorded.json".to_owned(), format!("{recorded:#}\n"))];
    for (name, template) in [
        ("Cargo.toml", CARGO),
        ("src/preceding.rs", PRECEDING),
        ("src/exact.rs", EXACT),
        ("src/main.rs", MAIN),
        ("src/matching.rs", MATCHING),
        ("src/recorded.rs", RECORDED),
    ] {
        files.push((name.to_owned(), rendered(template, &context)?));
    }
    files.sort();
    Ok(Generated { files, left_out: data.left_out })
}
