//! A draft whose mock lists exactly what it was made from.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{Mock, Source, shape};
use crate::protocol::{Revision, meta};
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
/// version what was heard there; gives back what of that it does not say, in words.
///
/// What a mock can do of tasks it says by itself.
pub(super) fn introduce(
    draft: &mut Draft,
    mut mock: Mock,
    capabilities: &Map<String, Value>,
    heard: &BTreeMap<Revision, DraftIntroduced>,
) -> BTreeSet<String> {
    let follows = std::mem::take(&mut mock.capabilities);
    let wanted = with_own_tasks(capabilities, &follows, |_| true);
    let said = wanted.iter().filter(|(key, value)| follows.get(*key) != Some(value));
    let said = said.map(|(key, value)| (key.clone(), value.clone()));
    let more = follows.keys().filter(|key| !wanted.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    draft.capabilities = said.chain(more).collect();
    mock.capabilities = spelt(&wanted).0.as_object().cloned().unwrap_or_default();
    let mut left_out = BTreeSet::new();
    for (revision, heard) in heard {
        let knows = |one: Value| {
            one.as_object().is_some_and(|one| shape::capabilities(one, *revision) == Value::Object(one.clone()))
        };
        let server = heard.server.as_ref().filter(|server| mock.server(*revision) != **server);
        let declared = heard.capabilities.as_ref().map(|heard| {
            let declared = with_own_tasks(heard, &follows, knows);
            let is_lost = |path: &[&str]| at(heard, path).is_some_and(|was| at(&declared, path) != Some(was));
            left_out.extend(is_lost(&["tasks"]).then(|| "the capability `tasks`".to_owned()));
            left_out.extend(
                is_lost(&["extensions", meta::TASKS_EXTENSION])
                    .then(|| format!("the extension `{}`", meta::TASKS_EXTENSION)),
            );
            declared
        });
        let declared = declared.filter(|declared| mock.capabilities(*revision) != Value::Object(declared.clone()));
        if server.is_some() || declared.is_some() {
            let said = DraftIntroduced { server: server.cloned(), capabilities: declared };
            draft.introduced.insert(*revision, said);
        }
    }
    left_out
}

fn at<'a>(fields: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(fields.get(*first)?, |value, key| value.get(*key))
}

/// What was declared, but of tasks what a mock can do, where whoever hears it `knows` them.
fn with_own_tasks(
    declared: &Map<String, Value>,
    own: &Map<String, Value>,
    knows: impl Fn(Value) -> bool,
) -> Map<String, Value> {
    let mut all = declared.clone();
    let extension = ["extensions", meta::TASKS_EXTENSION];
    if !declared.contains_key("tasks") && at(declared, &extension).is_none() {
        return all;
    }
    if knows(json!({"tasks": {}})) {
        match own.get("tasks") {
            Some(tasks) => drop(all.insert("tasks".to_owned(), tasks.clone())),
            None => drop(all.shift_remove("tasks")),
        }
    }
    if knows(json!({"extensions": {meta::TASKS_EXTENSION: {}}})) {
        let mut extensions = all.get("extensions").and_then(Value::as_object).cloned().unwrap_or_default();
        match at(own, &extension) {
            Some(tasks) => drop(extensions.insert(meta::TASKS_EXTENSION.to_owned(), tasks.clone())),
            None => drop(extensions.shift_remove(meta::TASKS_EXTENSION)),
        }
        match extensions.is_empty() {
            true => drop(all.shift_remove("extensions")),
            false => drop(all.insert("extensions".to_owned(), extensions.into())),
        }
    }
    all
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
