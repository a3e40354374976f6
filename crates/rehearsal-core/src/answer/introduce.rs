//! Who a mock says it is and what it can do, in the words of each version.

use serde_json::{Value, json};

use super::begin::text;
use super::request_context::{Handshake, Memory, settle, supported};
use super::{Asked, Mock, shape};
use crate::message::ErrorReply;
use crate::protocol::{Revision, code};

impl Mock {
    /// What it says that it can do, to clients of a version.
    pub fn capabilities(&self, revision: Revision) -> Value {
        shape::capabilities(&self.capabilities, revision)
    }

    /// Who it says it is, to clients of a version.
    pub fn server(&self, revision: Revision) -> Value {
        shape::implementation(self.info.clone(), revision)
    }

    /// `initialize`: settles the version, and remembers what the client can do.
    pub(super) fn initialize(&self, asked: &Asked, memory: &mut Memory) -> Result<Value, ErrorReply> {
        let spoken = shake_hands(asked, memory, &self.revisions)?;
        let mut result = json!({
            "protocolVersion": spoken.as_str(),
            "capabilities": self.capabilities(spoken),
            "serverInfo": self.server(spoken),
        });
        if let Some(instructions) = &self.instructions {
            result["instructions"] = instructions.as_str().into();
        }
        Ok(result)
    }

    /// `server/discover`: the same without settling anything.
    pub(super) fn discover(&self, asked: &Asked) -> Value {
        let mut result = json!({
            "supportedVersions": supported(&self.revisions),
            "capabilities": self.capabilities(asked.terms.revision),
        });
        if let Some(instructions) = &self.instructions {
            result["instructions"] = instructions.as_str().into();
        }
        result
    }
}

/// Settles the version of a conversation, and remembers what the client can do.
pub(super) fn shake_hands(asked: &Asked, memory: &mut Memory, revisions: &[Revision]) -> Result<Revision, ErrorReply> {
    let wanted = text(asked, "protocolVersion")?;
    let spoken = settle(wanted.parse().ok(), revisions).ok_or_else(|| {
        let data = json!({"supported": supported(revisions), "requested": wanted});
        let message = "this server has no handshake; name a version in _meta";
        ErrorReply::new(code::UNSUPPORTED_VERSION, message).with_data(&data)
    })?;
    let object = |key: &str| asked.params.get(key).filter(|it| it.is_object()).cloned().unwrap_or_else(|| json!({}));
    let (client, capabilities) = (object("clientInfo"), object("capabilities"));
    memory.handshake = Some(Handshake { revision: spoken, client: client.into(), capabilities: capabilities.into() });
    Ok(spoken)
}
