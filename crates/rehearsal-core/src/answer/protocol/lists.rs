//! The four lists: their elements in each version, one page at a time.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde_json::{Value, json};

use crate::answer::IncomingRequest;
use crate::answer::adapt::{strip_implementation, strip_item};
use crate::answer::script::UriTemplate;
use crate::answer::surface::Surface;
use crate::json::RawJson;
use crate::matcher::Matcher;
use crate::message::ErrorReply;
use crate::protocol::{Era, PerRevision, Revision, code, meta};

/// The beginning of every cursor. The rest is opaque to a client, and a cursor that was never sent is refused.
const CURSOR_PREFIX: &str = "from-";

/// A list that clients can request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// `tools/list`
    Tools,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    ResourceTemplates,
    /// `prompts/list`
    Prompts,
}

impl ListKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [ListKind; 4] =
        [ListKind::Tools, ListKind::Resources, ListKind::ResourceTemplates, ListKind::Prompts];

    /// The list that a method requests.
    pub fn from_method(method: &str) -> Option<ListKind> {
        ListKind::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// The method that requests it.
    pub fn method(self) -> &'static str {
        match self {
            ListKind::Tools => "tools/list",
            ListKind::Resources => "resources/list",
            ListKind::ResourceTemplates => "resources/templates/list",
            ListKind::Prompts => "prompts/list",
        }
    }

    /// The key of the elements in a result.
    pub fn key(self) -> &'static str {
        match self {
            ListKind::Tools => "tools",
            ListKind::Resources => "resources",
            ListKind::ResourceTemplates => "resourceTemplates",
            ListKind::Prompts => "prompts",
        }
    }
}

/// How an element is listed.
#[derive(Clone, Debug)]
pub enum ListedForm {
    /// In the form of the newest version; it is converted for older versions.
    Newest(Value),
    /// Unchanged, for every version.
    Verbatim(Value),
    /// The element is not listed.
    Hidden(Value),
}

/// An element of a list.
#[derive(Clone, Debug)]
pub struct SurfaceItem {
    /// Its name, URI or URI template.
    pub id: String,
    /// How it is listed.
    pub form: ListedForm,
    /// The capabilities that a client must declare to see and use it.
    pub needs: Option<Matcher>,
}

impl SurfaceItem {
    /// The element as a server lists it.
    pub fn value(&self) -> &Value {
        match &self.form {
            ListedForm::Newest(value) | ListedForm::Verbatim(value) | ListedForm::Hidden(value) => value,
        }
    }

    /// The output schema, if it is a tool with one.
    pub fn output_schema(&self) -> Option<&Value> {
        self.value().get("outputSchema")
    }

    /// This element in the form of another one, with the members that it lacks taken from there. An input schema that accepts
    /// every object counts as lacking.
    fn merged(&self, other: &SurfaceItem) -> SurfaceItem {
        let (ListedForm::Newest(value) | ListedForm::Verbatim(value)) = &self.form else { return self.clone() };
        let mut value = value.clone();
        if let (Some(members), Some(more)) = (value.as_object_mut(), other.value().as_object()) {
            let accepts_all = |schema: &Value| *schema == json!({"type": "object"});
            if members.get("inputSchema").is_some_and(accepts_all) {
                members.shift_remove("inputSchema");
            }
            for (key, value) in more {
                members.entry(key).or_insert_with(|| value.clone());
            }
        }
        let form = match &other.form {
            ListedForm::Verbatim(_) => ListedForm::Verbatim(value),
            ListedForm::Newest(_) | ListedForm::Hidden(_) => ListedForm::Newest(value),
        };
        SurfaceItem { form, ..self.clone() }
    }

    fn is_listed(&self) -> bool {
        !matches!(self.form, ListedForm::Hidden(_))
    }

    /// Whether a client may list and use it.
    pub(in crate::answer) fn is_for(&self, request: &IncomingRequest) -> bool {
        self.needs.as_ref().is_none_or(|needs| needs.matches(&request.context.capabilities))
    }
}

/// The elements of the four lists, serialized once for each version that requests them.
#[derive(Default)]
pub struct Lists {
    items: [Vec<SurfaceItem>; 4],
    written: [PerRevision<Vec<Option<String>>>; 4],
    positions: [HashMap<String, usize>; 4],
    templates: Vec<UriTemplate>,
    page_size: Option<usize>,
}

impl fmt::Debug for Lists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.items.iter().map(Vec::len)).finish()
    }
}

impl Lists {
    /// Lists with these elements, in the order of [`ListKind::ALL`].
    pub fn new(items: [Vec<SurfaceItem>; 4], page_size: Option<usize>) -> Lists {
        let positions = items
            .each_ref()
            .map(|items| items.iter().enumerate().rev().map(|(position, item)| (item.id.clone(), position)).collect());
        let templates = items[ListKind::ResourceTemplates as usize].iter();
        let templates = templates.filter_map(|item| UriTemplate::read(&item.id).ok()).collect();
        Lists { written: Default::default(), items, positions, templates, page_size }
    }

    /// Merges two lists, with each element once; those of this list come first. Members that an element lacks here are
    /// copied from the other list.
    #[must_use]
    pub fn merged(&self, other: &Lists) -> Lists {
        let items = ListKind::ALL.map(|kind| {
            let own = &self.items[kind as usize];
            let known: HashSet<&str> = own.iter().map(|item| item.id.as_str()).collect();
            let more = other.items[kind as usize].iter().filter(|item| !known.contains(item.id.as_str()));
            let own = own.iter().map(|item| match other.find(kind, &item.id) {
                Some(other) => item.merged(other),
                None => item.clone(),
            });
            own.chain(more.cloned()).collect()
        });
        Lists::new(items, self.page_size.or(other.page_size))
    }

    /// The element of this name, URI or URI template.
    pub fn find(&self, kind: ListKind, id: &str) -> Option<&SurfaceItem> {
        self.positions[kind as usize].get(id).map(|position| &self.items[kind as usize][*position])
    }

    /// The names of the tools that a client can use.
    pub fn tools_for<'a>(&'a self, request: &'a IncomingRequest) -> impl Iterator<Item = &'a str> {
        let tools = self.items[ListKind::Tools as usize].iter();
        tools.filter(|tool| tool.is_for(request)).map(|tool| tool.id.as_str())
    }

    /// The names of the prompts.
    pub fn prompts(&self) -> impl Iterator<Item = &str> {
        self.ids(ListKind::Prompts)
    }

    /// The names, URIs or URI templates of all elements.
    pub fn ids(&self, kind: ListKind) -> impl Iterator<Item = &str> {
        self.items[kind as usize].iter().map(|item| item.id.as_str())
    }

    /// Whether a resource or a template has this URI.
    pub fn has_resource(&self, uri: &str) -> bool {
        self.find(ListKind::Resources, uri).is_some() || self.templates.iter().any(|it| it.matches(uri).is_some())
    }

    /// The listed elements in a version.
    pub fn listed(&self, kind: ListKind, revision: Revision) -> Vec<&str> {
        self.serialized_items(kind, revision).iter().filter_map(Option::as_deref).collect()
    }

    fn serialized_items(&self, kind: ListKind, revision: Revision) -> &[Option<String>] {
        self.written[kind as usize].get_or_init(revision, || {
            let write = |item: &SurfaceItem| match &item.form {
                ListedForm::Verbatim(value) => Some(value.to_string()),
                ListedForm::Newest(value) => Some(strip_item(kind, value.clone(), revision).to_string()),
                ListedForm::Hidden(_) => None,
            };
            self.items[kind as usize].iter().map(write).collect()
        })
    }

    /// The page that a request names by its cursor, in the client's version.
    pub(super) fn page(
        &self,
        kind: ListKind,
        request: &IncomingRequest,
        surface: &Surface,
    ) -> Result<RawJson, ErrorReply> {
        let revision = request.context.revision;
        let items = self.items[kind as usize].iter().zip(self.serialized_items(kind, revision));
        let offered = items.filter(|(item, _)| item.is_listed() && item.is_for(request));
        let shown: Vec<&String> = offered.filter_map(|(_, written)| written.as_ref()).collect();
        let size = self.page_size.unwrap_or(usize::MAX);
        let start = match request.params.get("cursor") {
            None | Some(Value::Null) => 0,
            Some(cursor) => start_of(cursor, size, shown.len()).ok_or_else(|| {
                ErrorReply::new(code::INVALID_PARAMS, format!("this server never sent the cursor {cursor}"))
            })?,
        };
        let end = start.saturating_add(size).min(shown.len());
        let mut text = String::with_capacity(shown[start..end].iter().map(|it| it.len() + 1).sum::<usize>() + 256);
        text.push_str("{\"");
        text.push_str(kind.key());
        text.push_str("\":[");
        for (index, element) in shown[start..end].iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push_str(element);
        }
        text.push(']');
        if end < shown.len() {
            text.push_str(&format!(",\"nextCursor\":\"{CURSOR_PREFIX}{end}\""));
        }
        if revision.era() == Era::Modern {
            let info = strip_implementation(Value::clone(&surface.server_info()), revision);
            text.push_str(&format!(
                r#","resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{{"{}":{info}}}"#,
                meta::SERVER_INFO
            ));
        }
        text.push('}');
        Ok(RawJson::parse(text.as_bytes()).expect("written from JSON values"))
    }
}

fn start_of(cursor: &Value, size: usize, length: usize) -> Option<usize> {
    let start = cursor.as_str()?.strip_prefix(CURSOR_PREFIX)?.parse().ok()?;
    (start > 0 && start < length && start % size == 0).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_that_was_never_sent_is_refused() {
        assert_eq!(start_of(&json!("from-4"), 2, 5), Some(4));
        for made_up in [json!("from-0"), json!("from-3"), json!("from-6"), json!("from-x"), json!("4"), json!(4)] {
            assert_eq!(start_of(&made_up, 2, 5), None, "{made_up}");
        }
    }
}
