//! Subschemas of one document: references resolved, validators compiled on demand.

use std::cell::RefCell;
use std::collections::HashMap;

use jsonschema::{Draft, ReferencingError, Registry, Uri, Validator, uri};
use referencing::Resolver;
use serde_json::{Map, Value, json};

/// Base URI of a document without `$id`; the default of the validator.
const DEFAULT_BASE: &str = "json-schema:///";
/// Base URI of the small schemas that validate one subschema.
const CHECK_BASE: &str = "json-schema:///check";
/// Maximum number of validators that are compiled for one document. Each costs some 30 microseconds or more.
const MAX_VALIDATORS: usize = 500;

/// A schema document in which references can be resolved.
pub(super) struct Document<'s> {
    root: &'s Value,
    registry: Registry<'s>,
    base: Uri<String>,
    draft: Draft,
    /// JSON Pointers of all values of the document, by address; empty until the first check.
    pointers: RefCell<HashMap<*const Value, String>>,
    validators: RefCell<HashMap<*const Value, Option<Validator>>>,
    patterns: RefCell<HashMap<String, Option<Validator>>>,
}

impl<'s> Document<'s> {
    /// Builds the index of a document; fails if it refers to other documents.
    pub(super) fn new(root: &'s Value) -> Result<Document<'s>, ReferencingError> {
        let draft = match Draft::default().detect(root) {
            Draft::Unknown => Draft::default(),
            known => known,
        };
        let id = root.get(draft.id_keyword()).and_then(Value::as_str).filter(|id| !id.starts_with('#'));
        let base = uri::from_str(id.unwrap_or(DEFAULT_BASE))?;
        let builder = Registry::new().retriever(Offline).draft(draft);
        let registry = builder.add(base.as_str(), draft.create_resource_ref(root))?.prepare()?;
        let (pointers, validators, patterns) = Default::default();
        Ok(Document { root, registry, base, draft, pointers, validators, patterns })
    }

    /// The whole document as a subschema.
    pub(super) fn root(&'s self) -> Subschema<'s> {
        Subschema { value: self.root, resolver: self.registry.resolver(self.base.clone()), draft: self.draft }
    }

    /// Whether a subschema accepts a value; true if the subschema cannot be compiled alone.
    pub(super) fn accepts(&self, subschema: &Subschema<'_>, value: &Value) -> bool {
        let key: *const Value = subschema.value;
        if let Value::Bool(accepts) = subschema.value {
            return *accepts;
        }
        let mut validators = self.validators.borrow_mut();
        if !validators.contains_key(&key) && validators.len() < MAX_VALIDATORS {
            validators.insert(key, self.compile(key));
        }
        validators.get(&key).and_then(Option::as_ref).is_none_or(|validator| validator.is_valid(value))
    }

    /// The JSON Pointer of a value of the document, as a URI fragment.
    pub(super) fn pointer(&self, key: *const Value) -> Option<String> {
        if self.pointers.borrow().is_empty() {
            index_pointers(self.root, String::new(), &mut self.pointers.borrow_mut());
        }
        self.pointers.borrow().get(&key).cloned()
    }

    /// Compiles a reference to a subschema, so that its own references keep their base URI.
    fn compile(&self, key: *const Value) -> Option<Validator> {
        let reference = format!("{}#{}", self.base.as_str().trim_end_matches('#'), self.pointer(key)?);
        let options = crate::matcher::schema_options().with_draft(self.draft).with_registry(&self.registry);
        options.with_base_uri(CHECK_BASE).build(&json!({"$ref": reference})).ok()
    }

    /// Whether a text matches a `pattern`, by the rules of the validator.
    pub(super) fn is_match(&self, pattern: &str, text: &str) -> bool {
        let mut patterns = self.patterns.borrow_mut();
        let compile = || crate::matcher::schema_options().build(&json!({"pattern": pattern})).ok();
        let compiled = patterns.entry(pattern.to_owned()).or_insert_with(compile);
        compiled.as_ref().is_some_and(|compiled| compiled.is_valid(&json!(text)))
    }
}

/// A retriever that fetches nothing.
struct Offline;

impl jsonschema::Retrieve for Offline {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("{uri} is another document").into())
    }
}

/// Stores the JSON Pointer of each value as a URI fragment.
fn index_pointers(value: &Value, pointer: String, found: &mut HashMap<*const Value, String>) {
    match value {
        Value::Object(fields) => {
            for (key, child) in fields {
                index_pointers(child, format!("{pointer}/{}", to_fragment(key)), found);
            }
        }
        Value::Array(elements) => {
            for (index, child) in elements.iter().enumerate() {
                index_pointers(child, format!("{pointer}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    found.insert(value, pointer);
}

/// A key escaped for a JSON Pointer, then percent-encoded.
fn to_fragment(key: &str) -> String {
    let escaped = key.replace('~', "~0").replace('/', "~1");
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'$' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    escaped.bytes().map(encode).collect()
}

/// A schema inside a document, with the base URI and the dynamic scope of its references.
#[derive(Clone)]
pub(super) struct Subschema<'s> {
    pub(super) value: &'s Value,
    resolver: Resolver<'s>,
    draft: Draft,
}

impl<'s> Subschema<'s> {
    /// The keywords; `None` for `true` and `false`.
    pub(super) fn keywords(&self) -> Option<&'s Map<String, Value>> {
        self.value.as_object()
    }

    /// The value of one keyword.
    pub(super) fn get(&self, keyword: &str) -> Option<&'s Value> {
        self.value.get(keyword)
    }

    /// A schema directly below this one.
    pub(super) fn child(&self, value: &'s Value) -> Subschema<'s> {
        let draft = match self.draft.detect(value) {
            Draft::Unknown => self.draft,
            known => known,
        };
        let resolver = self.resolver.in_subresource(draft.create_resource_ref(value));
        Subschema { value, resolver: resolver.unwrap_or_else(|_| self.resolver.clone()), draft }
    }

    /// The schema in a keyword.
    pub(super) fn child_at(&self, keyword: &str) -> Option<Subschema<'s>> {
        self.get(keyword).filter(|value| value.is_object() || value.is_boolean()).map(|value| self.child(value))
    }

    /// The schemas of a keyword whose value is an array of schemas.
    pub(super) fn children_at(&self, keyword: &str) -> Vec<Subschema<'s>> {
        let values = self.get(keyword).and_then(Value::as_array);
        values.into_iter().flatten().map(|value| self.child(value)).collect()
    }

    /// The schemas that this one refers to.
    pub(super) fn referenced(&self) -> Vec<Subschema<'s>> {
        let by_keyword = |keyword: &str| {
            let reference = self.get(keyword)?.as_str()?;
            match keyword {
                "$recursiveRef" => self.resolver.lookup_recursive_ref().ok(),
                _ => self.resolver.lookup(reference).ok(),
            }
        };
        let resolved = ["$ref", "$dynamicRef", "$recursiveRef"].into_iter().filter_map(by_keyword);
        let subschema = |(value, resolver, draft)| {
            let draft = if matches!(draft, Draft::Unknown) { self.draft } else { draft };
            Subschema { value, resolver, draft }
        };
        resolved.map(|resolved| subschema(resolved.into_inner())).collect()
    }

    /// Whether only `$ref` counts: until draft-07 it replaces the keywords beside it.
    pub(super) fn is_only_reference(&self) -> bool {
        matches!(self.draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7) && self.get("$ref").is_some()
    }
}
