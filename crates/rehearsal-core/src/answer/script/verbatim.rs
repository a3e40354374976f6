//! Drafts of mock files whose mocks list and declare exactly what was recorded.

use serde_json::{Map, Value};

use super::mock::{Mock, MockSource};
use crate::answer::protocol::ListKind;
use crate::protocol::Revision;
use crate::script::ScriptError;
use crate::script::mock::write::{DraftItem, MockDraft};
use crate::script::mock::{MissingAnswers, Validate, parse};

/// Changes a draft so that its mock lists every element byte for byte, and declares these capabilities, to clients of
/// this version.
///
/// Mock-file syntax cannot express every element that a server may list. Such an element is written in its wire form.
pub fn keep_listed_forms(
    mut draft: MockDraft,
    capabilities: &Map<String, Value>,
    revision: Revision,
) -> Result<MockDraft, Vec<ScriptError>> {
    draft.capabilities = capabilities.clone();
    let mut compiled_mock = compiled(&draft);
    if compiled_mock.is_err() {
        // An item that the file's syntax cannot describe is written in its wire form.
        lists(&mut draft).into_iter().flat_map(|(_, offers)| offers).for_each(|offer| offer.verbatim = true);
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
            let recorded = offer.listed.to_string();
            offer.verbatim |= recorded != listed;
        }
    }
    let mock = compiled(&draft)?;
    let declared = mock.capabilities(revision);
    let more = declared.as_object().into_iter().flat_map(Map::keys).filter(|key| !capabilities.contains_key(*key));
    draft.capabilities.extend(more.map(|key| (key.clone(), Value::Null)));
    // Capabilities that follow from the rest of the file are left out.
    let without = MockDraft { capabilities: Map::new(), ..draft.clone() };
    let [expected, inferred] = [Value::Object(capabilities.clone()), compiled(&without)?.capabilities(revision)];
    let [expected, inferred] = [expected, inferred].map(|it| it.to_string());
    Ok(if expected == inferred { without } else { draft })
}

/// Changes a draft so that its mock declares these capabilities: those that differ from the inferred ones are written.
pub fn declaring(draft: MockDraft, declared: &Map<String, Value>) -> MockDraft {
    let inferred = compiled(&draft).map(|mock| mock.capabilities).unwrap_or_default();
    let named = declared.iter().filter(|(key, value)| inferred.get(*key) != Some(value));
    let named = named.map(|(key, value)| (key.clone(), value.clone()));
    let absent = inferred.keys().filter(|key| !declared.contains_key(*key)).map(|key| (key.clone(), Value::Null));
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
    let file = parse("the draft", &draft.to_text(), MissingAnswers::Refused).map_err(|error| vec![error])?;
    let no_files = |_: &str, _: &str| Err("a draft has no files".to_owned());
    Mock::compile(&[MockSource { file: "the draft", mock: &file }], &no_files)
}
