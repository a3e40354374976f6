//! Who a mock says it is and what it can do, in the words of each version or as somebody wrote it for one.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::begin::text;
use super::terms::{Handshake, Memory, settle, supported};
use super::{Asked, Mock, Source, shape};
use crate::message::ErrorReply;
use crate::protocol::{Revision, code};

/// What the handshake says in a version, where the file says it as it goes on the wire.
#[derive(Clone, Debug, Default)]
pub(super) struct Introduced {
    server: Option<Map<String, Value>>,
    capabilities: Option<Map<String, Value>>,
}

/// By version; the first file that has it counts.
pub(super) fn introduced(sources: &[Source<'_>]) -> HashMap<Revision, Introduced> {
    let mut all: HashMap<Revision, Introduced> = HashMap::new();
    for (version, written) in sources.iter().flat_map(|source| &source.mock.introduced) {
        let Ok(revision) = version.parse() else { continue };
        let said = all.entry(revision).or_default();
        let [server, capabilities] = [&written.server, &written.capabilities].map(|it| it.as_ref().map(|it| &it.value));
        said.server = said.server.take().or_else(|| server.cloned());
        said.capabilities = said.capabilities.take().or_else(|| capabilities.cloned());
    }
    all
}

impl Mock {
    /// What it says that it can do, to clients of a version.
    pub fn capabilities(&self, revision: Revision) -> Value {
        let exactly = self.introduced.get(&revision).and_then(|said| said.capabilities.clone());
        exactly.map_or_else(|| shape::capabilities(&self.capabilities, revision), Value::Object)
    }

    /// Who it says it is, to clients of a version.
    pub fn server(&self, revision: Revision) -> Value {
        let exactly = self.introduced.get(&revision).and_then(|said| said.server.clone());
        exactly.map_or_else(|| shape::implementation(self.info.clone(), revision), Value::Object)
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
