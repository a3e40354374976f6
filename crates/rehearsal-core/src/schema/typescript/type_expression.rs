//! TypeScript types as a tree, and their text.

use std::collections::HashSet;

use super::comment::doc_comment;
use super::name::property_name;
use super::schema_types::TypeUse;
use crate::schema::generator::Presence;

/// Maximum width of a line, in characters, if the type can be broken.
const MAX_WIDTH: usize = 110;
/// Number of spaces by which the members of an object are indented.
const INDENT: usize = 2;

/// A TypeScript type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum TypeExpression {
    /// Any value: `unknown` in arguments, `any` in results.
    Unknown,
    /// A type that has a name in the language: `string`, `null`, `never`.
    Keyword(&'static str),
    /// A literal with the keyword of its type.
    Literal {
        /// `string`, `number` or `boolean`.
        base: &'static str,
        /// The literal.
        text: String,
    },
    /// A type that is declared elsewhere.
    Named(String),
    /// An array; read-only in arguments, so that a plan may pass any array.
    List(Box<TypeExpression>),
    /// An array with a type for each of its first elements.
    Tuple {
        /// The first elements.
        elements: Vec<(TypeExpression, Presence)>,
        /// The type of all others, if there may be any.
        rest: Option<Box<TypeExpression>>,
    },
    /// An object.
    Object {
        /// The members with a name.
        members: Vec<TypeMember>,
        /// The type of all other members, if there may be any.
        index: Option<Box<TypeExpression>>,
    },
    /// One of several types.
    Union(Vec<TypeExpression>),
    /// All of several types at once.
    Intersection(Vec<TypeExpression>),
}

/// A member of an object type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TypeMember {
    pub(super) name: String,
    pub(super) presence: Presence,
    pub(super) value: TypeExpression,
    pub(super) documentation: TypeDocumentation,
}

/// What the comment above a declaration contains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct TypeDocumentation {
    /// The description.
    pub(super) text: String,
    /// Lines such as `@default 10`.
    pub(super) tags: Vec<String>,
}

impl TypeDocumentation {
    fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.tags.is_empty()
    }

    pub(super) fn comment(&self, indent: usize) -> String {
        doc_comment(&self.text, &self.tags, indent)
    }
}

impl TypeExpression {
    pub(super) const NEVER: TypeExpression = TypeExpression::Keyword("never");
    pub(super) const NULL: TypeExpression = TypeExpression::Keyword("null");

    /// One of several types, each once.
    pub(super) fn union(types: impl IntoIterator<Item = TypeExpression>) -> TypeExpression {
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        for kind in types {
            let parts = if let TypeExpression::Union(parts) = kind { parts } else { vec![kind] };
            for part in parts {
                if part == TypeExpression::Unknown {
                    return part;
                }
                if part != TypeExpression::NEVER && seen.insert(part.clone()) {
                    found.push(part);
                }
            }
        }
        // `string | "a"` is `string`.
        found.retain(|part| !matches!(part, TypeExpression::Literal { base, .. } if seen.contains(&TypeExpression::Keyword(base))));
        match found.len() {
            0 => TypeExpression::NEVER,
            1 => found.remove(0),
            _ => TypeExpression::Union(found),
        }
    }

    /// All of several types at once. Objects are joined to one.
    pub(super) fn intersection(types: impl IntoIterator<Item = TypeExpression>) -> TypeExpression {
        let mut found: Vec<TypeExpression> = Vec::new();
        for kind in types {
            let parts = if let TypeExpression::Intersection(parts) = kind { parts } else { vec![kind] };
            for part in parts {
                if part == TypeExpression::NEVER {
                    return part;
                }
                if part != TypeExpression::Unknown && !found.contains(&part) {
                    found.push(part);
                }
            }
        }
        // An object of which nothing is known adds nothing to a type that is an object, too.
        let has_structure = |part: &TypeExpression| !part.is_scalar() && !part.is_any_object();
        if found.iter().any(has_structure) {
            found.retain(|part| !part.is_any_object());
        }
        let all = found.clone();
        // `string & "a"` is `"a"`.
        let is_narrowed = |part: &TypeExpression, base| all.iter().any(|other| other != part && other.is_of(base));
        found.retain(|part| !matches!(part, TypeExpression::Keyword(base) if is_narrowed(part, base)));
        let mut joined: Vec<TypeExpression> = Vec::new();
        for part in found {
            match (joined.iter_mut().find_map(TypeExpression::closed_members), part) {
                (Some(members), TypeExpression::Object { members: more, index: None }) => join_members(members, more),
                (_, part) => joined.push(part),
            }
        }
        match joined.len() {
            0 => TypeExpression::Unknown,
            1 => joined.remove(0),
            _ => TypeExpression::Intersection(joined),
        }
    }

    /// Whether all values are of a basic type.
    fn is_of(&self, keyword: &str) -> bool {
        match self {
            TypeExpression::Keyword(own) => *own == keyword,
            TypeExpression::Literal { base, .. } => *base == keyword,
            TypeExpression::Union(parts) => parts.iter().all(|part| part.is_of(keyword)),
            TypeExpression::Unknown
            | TypeExpression::Named(_)
            | TypeExpression::List(_)
            | TypeExpression::Tuple { .. }
            | TypeExpression::Object { .. }
            | TypeExpression::Intersection(_) => false,
        }
    }

    /// Whether it is written without a reference to other types, and has no structure.
    pub(super) fn is_scalar(&self) -> bool {
        matches!(self, TypeExpression::Unknown | TypeExpression::Keyword(_) | TypeExpression::Literal { .. })
    }

    /// Whether it is an object about which nothing is known.
    fn is_any_object(&self) -> bool {
        let TypeExpression::Object { members, index } = self else { return false };
        members.is_empty() && index.as_deref().is_none_or(|index| *index == TypeExpression::NEVER)
    }

    fn closed_members(&mut self) -> Option<&mut Vec<TypeMember>> {
        match self {
            TypeExpression::Object { members, index: None } => Some(members),
            _ => None,
        }
    }

    /// The text of the type. Its first line begins somewhere in a line that is indented by `indent` spaces.
    pub(super) fn text(&self, usage: TypeUse, indent: usize) -> String {
        let line = self.line(usage).filter(|line| line.chars().count() + indent <= MAX_WIDTH);
        line.unwrap_or_else(|| self.lines(usage, indent))
    }

    /// The text in one line; `None` if a member has a comment.
    fn line(&self, usage: TypeUse) -> Option<String> {
        self.write(&|part| part.line(usage), usage, |members, index| {
            let mut parts = Vec::new();
            for member in members {
                if !member.documentation.is_empty() {
                    return None;
                }
                parts.push(format!("{}{}", member.head(), member.value.line(usage)?));
            }
            if let Some(index) = index {
                parts.push(format!("[name: string]: {}", index.line(usage)?));
            }
            Some(if parts.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", parts.join("; ")) })
        })
    }

    /// The text with each member of an object, and each part of a long union, in a line of its own.
    fn lines(&self, usage: TypeUse, indent: usize) -> String {
        let margin = " ".repeat(indent + INDENT);
        if let TypeExpression::Union(parts) = self {
            let part = |part: &TypeExpression| format!("\n{margin}| {}", part.text(usage, indent + INDENT));
            return parts.iter().map(part).collect();
        }
        let text = self.write(&|part| Some(part.text(usage, indent)), usage, |members, index| {
            let mut text = "{\n".to_owned();
            for member in members {
                text += &member.documentation.comment(indent + INDENT);
                text += &format!("{margin}{}", follow(&member.head(), &member.value.text(usage, indent + INDENT)));
                text += ";\n";
            }
            if let Some(index) = index {
                text += &format!("{margin}{};\n", follow("[name: string]: ", &index.text(usage, indent + INDENT)));
            }
            Some(format!("{text}{}}}", " ".repeat(indent)))
        });
        text.expect("every part has a text")
    }

    /// Writes the type with the texts of its parts.
    fn write(
        &self,
        part: &dyn Fn(&TypeExpression) -> Option<String>,
        usage: TypeUse,
        object: impl FnOnce(&[TypeMember], Option<&TypeExpression>) -> Option<String>,
    ) -> Option<String> {
        let readonly = if usage == TypeUse::Arguments { "readonly " } else { "" };
        // The type as an operand of `[]`, `?` or `&`.
        let operand = |operand: &TypeExpression| {
            let text = part(operand)?;
            let is_prefixed = |operand: &TypeExpression| match operand {
                TypeExpression::List(_) | TypeExpression::Tuple { .. } => usage == TypeUse::Arguments,
                TypeExpression::Union(_) | TypeExpression::Intersection(_) => true,
                TypeExpression::Unknown
                | TypeExpression::Keyword(_)
                | TypeExpression::Literal { .. }
                | TypeExpression::Named(_)
                | TypeExpression::Object { .. } => false,
            };
            Some(if is_prefixed(operand) { format!("({text})") } else { text })
        };
        Some(match self {
            TypeExpression::Unknown => match usage {
                TypeUse::Arguments => "unknown".to_owned(),
                TypeUse::Results => "any".to_owned(),
            },
            TypeExpression::Keyword(keyword) => (*keyword).to_owned(),
            TypeExpression::Literal { text, .. } => text.clone(),
            TypeExpression::Named(name) => name.clone(),
            TypeExpression::List(element) => format!("{readonly}{}[]", operand(element)?),
            TypeExpression::Tuple { elements, rest } => {
                let mut parts = Vec::new();
                for (element, presence) in elements {
                    parts.push(match presence {
                        Presence::Required => part(element)?,
                        Presence::Optional => format!("{}?", operand(element)?),
                    });
                }
                if let Some(rest) = rest {
                    parts.push(format!("...{}[]", operand(rest)?));
                }
                format!("{readonly}[{}]", parts.join(", "))
            }
            TypeExpression::Object { members, index } => object(members, index.as_deref())?,
            TypeExpression::Union(parts) => parts.iter().map(part).collect::<Option<Vec<_>>>()?.join(" | "),
            TypeExpression::Intersection(parts) => parts.iter().map(operand).collect::<Option<Vec<_>>>()?.join(" & "),
        })
    }
}

impl TypeMember {
    fn head(&self) -> String {
        let optional = if self.presence == Presence::Optional { "?" } else { "" };
        format!("{}{optional}: ", property_name(&self.name))
    }
}

/// A text after the one that it follows in the line, or below it.
fn follow(head: &str, text: &str) -> String {
    let head = if text.starts_with('\n') { head.trim_end() } else { head };
    format!("{head}{text}")
}

/// Adds the members of an object to those of another one that holds at the same time.
fn join_members(members: &mut Vec<TypeMember>, more: Vec<TypeMember>) {
    for member in more {
        match members.iter_mut().find(|known| known.name == member.name) {
            None => members.push(member),
            Some(known) => {
                known.value = TypeExpression::intersection([known.value.clone(), member.value]);
                if member.presence == Presence::Required {
                    known.presence = Presence::Required;
                }
                if known.documentation.is_empty() {
                    known.documentation = member.documentation;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string() -> TypeExpression {
        TypeExpression::Keyword("string")
    }

    fn literal(text: &str) -> TypeExpression {
        TypeExpression::Literal { base: "string", text: format!("{text:?}") }
    }

    fn object(name: &str, presence: Presence, value: TypeExpression) -> TypeExpression {
        let member = TypeMember { name: name.to_owned(), presence, value, documentation: TypeDocumentation::default() };
        TypeExpression::Object { members: vec![member], index: None }
    }

    #[test]
    fn a_union_has_each_type_once_and_no_literal_of_its_keywords() {
        assert_eq!(TypeExpression::union([string(), literal("a"), string()]), string());
        assert_eq!(TypeExpression::union([literal("a"), TypeExpression::NEVER]), literal("a"));
        assert_eq!(TypeExpression::union([]), TypeExpression::NEVER);
        assert_eq!(TypeExpression::union([string(), TypeExpression::Unknown]), TypeExpression::Unknown);
    }

    #[test]
    fn an_intersection_joins_objects_and_drops_what_adds_nothing() {
        let optional = object("a", Presence::Optional, string());
        let required = object("a", Presence::Required, TypeExpression::Unknown);
        assert_eq!(
            TypeExpression::intersection([optional.clone(), required]),
            object("a", Presence::Required, string())
        );
        let any = TypeExpression::Object { members: Vec::new(), index: None };
        assert_eq!(TypeExpression::intersection([any, optional.clone()]), optional);
        assert_eq!(TypeExpression::intersection([string(), literal("a")]), literal("a"));
        assert_eq!(TypeExpression::intersection([]), TypeExpression::Unknown);
    }

    #[test]
    fn long_types_have_a_line_for_each_member_and_each_part() {
        let words: Vec<_> = ["a", "b", "c"].map(|letter| literal(&letter.repeat(40))).into();
        let long = TypeExpression::List(Box::new(TypeExpression::union(words)));
        let text = object("long", Presence::Optional, long).text(TypeUse::Arguments, 4);
        let [a, b, c] = ["a", "b", "c"].map(|letter| letter.repeat(40));
        assert_eq!(
            text,
            format!("{{\n      long?: readonly (\n        | \"{a}\"\n        | \"{b}\"\n        | \"{c}\")[];\n    }}")
        );
    }
}
