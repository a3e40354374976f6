//! Who we are and what we can do: `initialize` and `server/discover`.

use rehearsal_core::answer::{Handshake, supported};
use rehearsal_core::protocol::Revision;
use serde_json::{Value, json};

use crate::call::Call;
use crate::instead::Instead;

const INSTRUCTIONS: &str = "Try the tool `echo` first; `ask`, `sample` and `roots` ask you something in return.";

/// `initialize`: settles the version, and remembers what the client can do.
pub(crate) fn initialize(call: &Call) -> Result<Value, Instead> {
    let wanted = call.text_param("protocolVersion")?.parse().ok();
    // 2026-07-28 has no handshake, so nobody who sends one can have it.
    let spoken = wanted.filter(|revision: &Revision| revision.has_handshake()).unwrap_or(Revision::LATEST_LEGACY);
    let object = |key: &str| call.params.get(key).cloned().unwrap_or_else(|| json!({})).into();
    let (client, capabilities) = (object("clientInfo"), object("capabilities"));
    call.session.memory().handshake = Some(Handshake { revision: spoken, client, capabilities });
    Ok(json!({
        "protocolVersion": spoken.as_str(),
        "capabilities": capabilities_in(spoken),
        "serverInfo": server_info(spoken),
        "instructions": INSTRUCTIONS,
    }))
}

/// `server/discover`: the same without settling anything.
pub(crate) fn discover(call: &Call) -> Value {
    json!({
        "supportedVersions": supported(&Revision::ALL),
        "capabilities": capabilities_in(call.terms.revision),
        "instructions": INSTRUCTIONS,
    })
}

/// Who we are.
pub(crate) fn server_info(revision: Revision) -> Value {
    let mut info = json!({"name": "tiny-server", "version": env!("CARGO_PKG_VERSION")});
    if revision >= Revision::V2025_06_18 {
        info["title"] = "Tiny server".into();
    }
    info
}

fn capabilities_in(revision: Revision) -> Value {
    let mut capabilities = json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": true},
        "prompts": {},
        "logging": {},
    });
    if revision.has_completions_capability() {
        capabilities["completions"] = json!({});
    }
    capabilities
}
