//! What is listed: as far as a version knows it, a page at a time.

use std::sync::OnceLock;

use serde_json::Value;

use super::offer::{Listed, Prompt, Resource, ResourceTemplate, Tool};
use super::shape;
use super::{Asked, Mock};
use crate::json::RawJson;
use crate::message::ErrorReply;
use crate::protocol::{Era, Revision, code, meta};

/// What a cursor begins with. It means nothing to a client, and everything else is refused.
const CURSOR: &str = "from-";

/// The lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Tools,
    Resources,
    ResourceTemplates,
    Prompts,
}

impl List {
    const ALL: [List; 4] = [List::Tools, List::Resources, List::ResourceTemplates, List::Prompts];

    /// The key of its elements in a result.
    pub(super) fn key(self) -> &'static str {
        match self {
            List::Tools => "tools",
            List::Resources => "resources",
            List::ResourceTemplates => "resourceTemplates",
            List::Prompts => "prompts",
        }
    }
}

/// The elements of every list, written once for each version that asks.
#[derive(Debug, Default)]
pub(super) struct Listing {
    lists: [Elements; 4],
}

#[derive(Debug, Default)]
struct Elements {
    elements: Vec<Listed>,
    written: [OnceLock<Vec<String>>; Revision::ALL.len()],
}

impl Listing {
    pub(super) fn new(
        tools: &[Tool],
        resources: &[Resource],
        templates: &[ResourceTemplate],
        prompts: &[Prompt],
    ) -> Listing {
        fn of<'a>(all: impl Iterator<Item = &'a Listed>) -> Elements {
            let elements = all.filter(|listed| listed.is_seen()).cloned().collect();
            Elements { elements, written: Default::default() }
        }
        Listing {
            lists: [
                of(tools.iter().map(|it| &it.listed)),
                of(resources.iter().map(|it| &it.listed)),
                of(templates.iter().map(|it| &it.listed)),
                of(prompts.iter().map(|it| &it.listed)),
            ],
        }
    }

    /// The elements of a list by its key.
    pub(super) fn elements(&self, key: &str, revision: Revision) -> Option<&[String]> {
        let list = List::ALL.into_iter().find(|list| list.key() == key)?;
        Some(self.written(list, revision))
    }

    fn written(&self, list: List, revision: Revision) -> &[String] {
        let elements = &self.lists[list as usize];
        elements.written[revision as usize].get_or_init(|| {
            let known = |element: &Listed| match element {
                Listed::Exactly(element) => Some(element.to_string()),
                Listed::Newest(element) => Some(shape::listed(list, element.clone(), revision).to_string()),
                Listed::Never => None,
            };
            elements.elements.iter().filter_map(known).collect()
        })
    }
}

/// The page of a list that a request asks for.
pub(super) fn list(mock: &Mock, asked: &Asked, list: List) -> Result<RawJson, ErrorReply> {
    let revision = asked.terms.revision;
    let all = mock.listing.written(list, revision);
    let shown: Vec<&String> = match list {
        List::Tools => {
            let seen = mock.tools.iter().filter(|tool| tool.listed.is_seen());
            let offered = seen.zip(all).filter(|(tool, _)| is_offered(tool, asked));
            offered.map(|(_, written)| written).collect()
        }
        List::Resources | List::ResourceTemplates | List::Prompts => all.iter().collect(),
    };
    let size = mock.page_size.unwrap_or(usize::MAX);
    let start = match asked.params.get("cursor") {
        None | Some(Value::Null) => 0,
        Some(cursor) => start_of(cursor, size, shown.len())
            .ok_or_else(|| ErrorReply::new(code::INVALID_PARAMS, format!("the cursor {cursor} was never given")))?,
    };
    let end = start.saturating_add(size).min(shown.len());
    let mut text = String::with_capacity(shown[start..end].iter().map(|it| it.len() + 1).sum::<usize>() + 256);
    text.push_str("{\"");
    text.push_str(list.key());
    text.push_str("\":[");
    for (at, element) in shown[start..end].iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(element);
    }
    text.push(']');
    if end < shown.len() {
        text.push_str(&format!(",\"nextCursor\":\"{CURSOR}{end}\""));
    }
    if revision.era() == Era::Modern {
        let info = shape::implementation(mock.info.clone(), revision);
        text.push_str(&format!(
            r#","resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{{"{}":{info}}}"#,
            meta::SERVER_INFO
        ));
    }
    text.push('}');
    Ok(RawJson::parse(text.as_bytes()).expect("written from JSON values"))
}

/// Whether a client is shown a tool, and may call it.
pub(super) fn is_offered(tool: &Tool, asked: &Asked) -> bool {
    tool.needs.as_ref().is_none_or(|needs| needs.matches(&asked.terms.capabilities))
}

fn start_of(cursor: &Value, size: usize, length: usize) -> Option<usize> {
    let start = cursor.as_str()?.strip_prefix(CURSOR)?.parse().ok()?;
    (start > 0 && start < length && start % size == 0).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_cursors_that_were_given_are_taken() {
        assert_eq!(start_of(&json!("from-4"), 2, 5), Some(4));
        for made_up in [json!("from-0"), json!("from-3"), json!("from-6"), json!("from-x"), json!("4"), json!(4)] {
            assert_eq!(start_of(&made_up, 2, 5), None, "{made_up}");
        }
    }
}
