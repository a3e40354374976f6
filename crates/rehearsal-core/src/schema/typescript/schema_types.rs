//! The types of many schemas, and the named types that they share.

use std::collections::HashSet;

use serde_json::Value;

use super::conversion::Conversion;
use super::type_expression::{TypeDocumentation, TypeExpression};
use crate::schema::subschema::Document;

/// What the values of a type are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeUse {
    /// A program writes them: what the type cannot express is accepted, members that the schema does not name are not.
    Arguments,
    /// A program reads them: of what is not known, everything can be read.
    Results,
}

/// The TypeScript type of a schema.
#[derive(Clone, Debug)]
pub struct SchemaType {
    expression: TypeExpression,
    usage: TypeUse,
}

impl SchemaType {
    /// The text of the type, for a line that is indented by `indent` spaces.
    pub fn text(&self, indent: usize) -> String {
        self.expression.text(self.usage, indent)
    }

    /// Whether nothing is known about the values.
    pub fn is_unknown(&self) -> bool {
        self.expression == TypeExpression::Unknown
    }
}

/// The TypeScript types of schemas, with the named types that they refer to.
///
/// ```
/// # use rehearsal_core::schema::typescript::{SchemaTypes, TypeUse};
/// # use serde_json::json;
/// let mut types = SchemaTypes::new("Types");
/// let schema = json!({"type": "object", "properties": {"path": {"type": "string"}, "tail": {"type": "integer"}}, "required": ["path"]});
/// let arguments = types.add(&schema, TypeUse::Arguments, "ReadFile").unwrap();
/// assert_eq!(arguments.text(0), "{ path: string; tail?: number }");
/// ```
#[derive(Debug)]
pub struct SchemaTypes {
    namespace: &'static str,
    pub(super) definitions: Vec<NamedType>,
    names: HashSet<String>,
}

/// A type that schemas refer to.
#[derive(Debug)]
pub(super) struct NamedType {
    /// The name without the namespace.
    pub(super) name: String,
    pub(super) documentation: TypeDocumentation,
    /// `None` while it is converted, and if no type refers to it.
    pub(super) expression: Option<TypeExpression>,
    pub(super) usage: TypeUse,
}

impl SchemaTypes {
    /// Without types. The named types are declared in a namespace.
    pub fn new(namespace: &'static str) -> SchemaTypes {
        SchemaTypes { namespace, definitions: Vec::new(), names: HashSet::new() }
    }

    /// The type of the values of a schema, or why the schema cannot be read. The types that it refers to get names that begin
    /// with `prefix`.
    pub fn add(&mut self, schema: &Value, usage: TypeUse, prefix: &str) -> Result<SchemaType, String> {
        let document = Document::new(schema).map_err(|error| error.to_string())?;
        let expression = Conversion::new(&document, self, usage, prefix).root();
        Ok(SchemaType { expression, usage })
    }

    /// The declaration of the namespace with the named types; empty without any.
    pub fn declarations(&self) -> String {
        let mut text = String::new();
        for definition in &self.definitions {
            let Some(expression) = &definition.expression else { continue };
            let value = expression.text(definition.usage, 2);
            let space = if value.starts_with('\n') { "" } else { " " };
            text += &definition.documentation.comment(2);
            text += &format!("  type {} ={space}{value};\n", definition.name);
        }
        if text.is_empty() { text } else { format!("declare namespace {} {{\n{text}}}\n", self.namespace) }
    }

    /// Reserves a name, with a number if it is used.
    pub(super) fn reserve(&mut self, name: String, usage: TypeUse) -> usize {
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic());
        let name = if is_name { name } else { format!("Type{name}") };
        let numbered = (2..).map(|number| format!("{name}{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !self.names.contains(name));
        let name = free.unwrap_or(name);
        self.names.insert(name.clone());
        self.definitions.push(NamedType { name, documentation: TypeDocumentation::default(), expression: None, usage });
        self.definitions.len() - 1
    }

    /// The type that refers to a definition.
    pub(super) fn named(&self, index: usize) -> TypeExpression {
        TypeExpression::Named(format!("{}.{}", self.namespace, self.definitions[index].name))
    }
}
