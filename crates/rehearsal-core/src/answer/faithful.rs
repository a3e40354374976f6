//! A draft whose mock lists exactly what it was made from.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Mock, Source};
use crate::protocol::Revision;
use crate::script::ScriptError;
use crate::script::mock::write::{Draft, DraftIntroduced, Offer, spelt};
use crate::script::mock::{Otherwise, parse};

/// The same draft, but a mock of it lists for clients of this version exactly what is in it, byte for byte, and says that
/// it can do what `capabilities` say.
///
/// The words of a file, and what a version knows, cannot say everything that a server may list; where they do not, the
/// file has the element as it was on the wire.
pub fn faithful(
    mut draft: Draft,
    capabilities: &Map<String, Value>,
    revision: Revision,
) -> Result<Draft, Vec<ScriptError>> {
    draft.capabilities = capabilities.clone();
    // What cannot be read again in the words of the file is written as it was.
    let mock = match compiled(&draft) {
        Ok(mock) => mock,
        Err(_) => {
            lists(&mut draft).into_iter().flat_map(|(_, offers)| offers).for_each(|offer| offer.exactly = true);
            compiled(&draft)?
        }
    };
    for (key, offers) in lists(&mut draft) {
        for (offer, listed) in offers.iter_mut().filter(|offer| !offer.hidden).zip(mock.listed(key, revision)) {
            let wanted = offer.listed.to_string();
            offer.exactly |= wanted != listed;
        }
    }
    let mock = compiled(&draft)?;
    let said = mock.capabilities(revision);
    let more = said.as_object().into_iter().flat_map(Map::keys).filter(|key| !capabilities.contains_key(*key));
    draft.capabilities.extend(more.map(|key| (key.clone(), Value::Null)));
    // What goes without saying is not said.
    let without = Draft { capabilities: Map::new(), ..draft.clone() };
    let [wanted, follows] = [Value::Object(capabilities.clone()), compiled(&without)?.capabilities(revision)];
    let [wanted, follows] = [wanted, follows].map(|it| it.to_string());
    Ok(if wanted == follows { without } else { draft })
}

/// Has a draft say that its mock, which was compiled without a word about capabilities, can do what these say, and in each
/// version what was heard there.
pub(super) fn introduce(
    draft: &mut Draft,
    mut mock: Mock,
    capabilities: &Map<String, Value>,
    heard: &BTreeMap<Revision, DraftIntroduced>,
) {
    let follows = std::mem::take(&mut mock.capabilities);
    let said = capabilities.iter().filter(|(key, value)| follows.get(*key) != Some(value));
    let said = said.map(|(key, value)| (key.clone(), value.clone()));
    let more = follows.keys().filter(|key| !capabilities.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    draft.capabilities = said.chain(more).collect();
    mock.capabilities = spelt(capabilities).0.as_object().cloned().unwrap_or_default();
    for (revision, heard) in heard {
        let server = heard.server.as_ref().filter(|server| mock.server(*revision) != **server);
        let said = |declared: &&Map<String, Value>| mock.capabilities(*revision).as_object() == Some(*declared);
        let declared = heard.capabilities.as_ref().filter(|declared| !said(declared));
        if server.is_some() || declared.is_some() {
            let said = DraftIntroduced { server: server.cloned(), capabilities: declared.cloned() };
            draft.introduced.insert(*revision, said);
        }
    }
}

pub(super) fn lists(draft: &mut Draft) -> [(&'static str, &mut Vec<Offer>); 4] {
    [
        ("tools", &mut draft.tools),
        ("resources", &mut draft.resources),
        ("resourceTemplates", &mut draft.resource_templates),
        ("prompts", &mut draft.prompts),
    ]
}

pub(super) fn compiled(draft: &Draft) -> Result<Mock, Vec<ScriptError>> {
    let file = parse("the draft", &draft.written(), Otherwise::Refuse).map_err(|error| vec![error])?;
    let no_files = |_: &str, _: &str| Err("a draft has no files".to_owned());
    Mock::compile(&[Source { file: "the draft", mock: &file }], Otherwise::Refuse, &no_files)
}
