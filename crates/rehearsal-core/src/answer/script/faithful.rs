//! A draft whose mock lists exactly what it was made from.

use serde_json::{Map, Value};

use super::mock::{Mock, MockSource};
use crate::answer::protocol::ListKind;
use crate::protocol::Revision;
use crate::script::ScriptError;
use crate::script::mock::write::{DraftItem, MockDraft};
use crate::script::mock::{MissingAnswers, Validate, parse};

/// The same draft, but a mock of it lists for clients of this version exactly what is in it, byte for byte, and says that
/// it can do what `capabilities` say.
///
/// The words of a file, and what a version knows, cannot say everything that a server may list; where they do not, the
/// file has the element as it was on the wire.
pub fn keep_listed_forms(
    mut draft: MockDraft,
    capabilities: &Map<String, Value>,
    revision: Revision,
) -> Result<MockDraft, Vec<ScriptError>> {
    draft.capabilities = capabilities.clone();
    let mut compiled_mock = compiled(&draft);
    if compiled_mock.is_err() {
        // An item that the file's syntax cannot describe is written in its wire form.
        lists(&mut draft).into_iter().flat_map(|(_, offers)| offers).for_each(|offer| offer.exactly = true);
        compiled_mock = compiled(&draft);
    }
    if compiled_mock.is_err() {
        // A result that the protocol does not allow is only reported.
        draft.validate = Some(Validate::Warn);
        compiled_mock = compiled(&draft);
    }
    let mock = compiled_mock?;
    for (key, offers) in lists(&mut draft) {
        for (offer, listed) in offers.iter_mut().filter(|offer| !offer.hidden).zip(mock.lists().listed(key, revision)) {
            let wanted = offer.listed.to_string();
            offer.exactly |= wanted != listed;
        }
    }
    let mock = compiled(&draft)?;
    let said = mock.capabilities(revision);
    let more = said.as_object().into_iter().flat_map(Map::keys).filter(|key| !capabilities.contains_key(*key));
    draft.capabilities.extend(more.map(|key| (key.clone(), Value::Null)));
    // What goes without saying is not said.
    let without = MockDraft { capabilities: Map::new(), ..draft.clone() };
    let [wanted, follows] = [Value::Object(capabilities.clone()), compiled(&without)?.capabilities(revision)];
    let [wanted, follows] = [wanted, follows].map(|it| it.to_string());
    Ok(if wanted == follows { without } else { draft })
}

/// The same draft, but a mock of it declares these capabilities: the draft names those that do not follow from what it offers.
pub fn declaring(draft: MockDraft, declared: &Map<String, Value>) -> MockDraft {
    let follows = compiled(&draft).map(|mock| mock.capabilities).unwrap_or_default();
    let named = declared.iter().filter(|(key, value)| follows.get(*key) != Some(value));
    let named = named.map(|(key, value)| (key.clone(), value.clone()));
    let absent = follows.keys().filter(|key| !declared.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    MockDraft { capabilities: named.chain(absent).collect(), ..draft }
}

fn lists(draft: &mut MockDraft) -> [(ListKind, &mut Vec<DraftItem>); 4] {
    [
        (ListKind::Tools, &mut draft.tools),
        (ListKind::Resources, &mut draft.resources),
        (ListKind::ResourceTemplates, &mut draft.resource_templates),
        (ListKind::Prompts, &mut draft.prompts),
    ]
}

fn compiled(draft: &MockDraft) -> Result<Mock, Vec<ScriptError>> {
    let file = parse("the draft", &draft.written(), MissingAnswers::Refused).map_err(|error| vec![error])?;
    let no_files = |_: &str, _: &str| Err("a draft has no files".to_owned());
    Mock::compile(&[MockSource { file: "the draft", mock: &file }], &no_files)
}
