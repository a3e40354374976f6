//! Parses `table.txt`.

use super::table::Versions;
use super::table::{ErrorCode, Expects, FieldShape, MethodShape, NamedShape, ObjectShape, Shape, ShapeTable};
use crate::exchange::Side;
use crate::json::JsonType;

/// Parses a table. Lines that cannot be parsed are among its problems.
pub(super) fn table(text: &'static str) -> ShapeTable {
    let mut table = ShapeTable::default();
    let mut open: Option<(&'static str, Versions, ObjectShape)> = None;
    for (at, line) in (1..).zip(text.lines()) {
        let indented = line.starts_with(' ');
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let read = match (&mut open, indented) {
            (Some((_, _, body)), true) => member(line, body),
            (None, true) => None,
            (_, false) => {
                close(open.take(), &mut table);
                top(line, &mut table, &mut open)
            }
        };
        if read.is_none() {
            table.problems.push(format!("line {at}: {line}"));
        }
    }
    close(open, &mut table);
    include(&mut table);
    let undefined = names(&table).into_iter().filter(|name| !table.named.contains_key(name));
    let undefined: Vec<String> = undefined.map(|name| format!("{name} is not defined")).collect();
    table.problems.extend(undefined);
    table
}

fn close(open: Option<(&'static str, Versions, ObjectShape)>, table: &mut ShapeTable) {
    if let Some((name, versions, body)) = open
        && table.named.insert(name, NamedShape::Type { versions, body }).is_some()
    {
        table.problems.push(format!("{name} appears twice"));
    }
}

/// Parses a line that begins a declaration.
fn top(
    line: &'static str,
    table: &mut ShapeTable,
    open: &mut Option<(&'static str, Versions, ObjectShape)>,
) -> Option<()> {
    let (word, rest) = line.split_once(' ')?;
    match word {
        "type" => {
            let (name, versions) = versioned(rest)?;
            *open = Some((name, versions, ObjectShape::default()));
        }
        "alias" => {
            let (name, shape) = rest.split_once(" = ")?;
            table.named.insert(name, NamedShape::Alias(self::shape(shape)?));
        }
        "request" | "notification" => {
            let (head, shapes) = rest.split_once(": ")?;
            let (side, name) = head.split_once(' ')?;
            let (name, versions) = versioned(name)?;
            let from = match side {
                "client" => Some(Side::Client),
                "server" => Some(Side::Server),
                "both" => None,
                _ => return None,
            };
            let (wants, params, result) = match (word, shapes.split_once(" -> ")) {
                ("request", Some((params, result))) => (Expects::Answer, shape(params)?, shape(result)?),
                ("notification", None) => (Expects::Nothing, shape(shapes)?, Shape::Any),
                _ => return None,
            };
            table.methods.push(MethodShape { name, wants, from, versions, params, result });
        }
        "error" => {
            let (head, data) = rest.split_once(": ")?;
            let (code, versions) = versioned(head)?;
            table.codes.push(ErrorCode { code: code.parse().ok()?, versions, data: shape(data)? });
        }
        _ => return None,
    }
    Some(())
}

/// Parses a line inside a type.
fn member(line: &'static str, body: &mut ObjectShape) -> Option<()> {
    if let Some(name) = line.strip_prefix("+ ") {
        match name {
            "meta" => body.is_meta = true,
            name => body.includes.push(name),
        }
        return Some(());
    }
    if let Some(names) = line.strip_prefix("needs ") {
        body.needs.push(names.split(" | ").collect());
        return Some(());
    }
    let (name, rest) = line.split_once(": ")?;
    let (text, versions) = versioned(rest)?;
    let (name, required) = match name.strip_suffix('?') {
        Some(name) => (name, false),
        None => (name, true),
    };
    body.fields.push(FieldShape { name, required, versions, shape: shape(text)? });
    Some(())
}

/// Parses `text @versions`, or text alone.
fn versioned(text: &'static str) -> Option<(&'static str, Versions)> {
    match text.split_once(" @") {
        Some((text, versions)) => Some((text.trim(), Versions::parse(versions.trim())?)),
        None => Some((text.trim(), Versions::ALL)),
    }
}

fn shape(text: &'static str) -> Option<Shape> {
    let all = |separator: char| -> Option<Vec<Shape>> { split(text, separator).into_iter().map(shape).collect() };
    let text = text.trim();
    if split(text, '|').len() > 1 {
        return all('|').map(Shape::OneOf);
    }
    if split(text, '&').len() > 1 {
        return all('&').map(Shape::AllOf);
    }
    if let Some(inner) = text.strip_prefix('[') {
        let inner = inner.strip_suffix(']')?;
        let (each, at_most) = match inner.split_once(';') {
            Some((each, limit)) => (each, Some(limit.trim().parse().ok()?)),
            None => (inner, None),
        };
        return Some(Shape::List { each: Box::new(shape(each)?), at_most });
    }
    if let Some(inner) = text.strip_prefix('{') {
        return Some(Shape::Map(Box::new(shape(inner.strip_suffix('}')?)?)));
    }
    if let Some(word) = text.strip_prefix('\'') {
        return word.strip_suffix('\'').map(Shape::Word);
    }
    Some(match text {
        "any" => Shape::Any,
        "count" => Shape::Count,
        "share" => Shape::UnitInterval,
        "uri" => Shape::Uri,
        "base64" => Shape::Base64,
        "meta" => Shape::Meta,
        name => match JsonType::named(name) {
            Some(kind) => Shape::Kind(kind),
            None if name.starts_with(|c: char| c.is_ascii_uppercase()) => Shape::Named(name),
            None => return None,
        },
    })
}

/// Splits at the separators outside of brackets.
fn split(text: &'static str, separator: char) -> Vec<&'static str> {
    let (mut pieces, mut depth, mut from) = (Vec::new(), 0_u32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            c if c == separator && depth == 0 => {
                pieces.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(&text[from..]);
    pieces
}

/// Copies the fields of included types until nothing is left to copy; a cycle ends after the copies so far.
fn include(table: &mut ShapeTable) {
    for _ in 0..8 {
        let copy = table.named.clone();
        for named in table.named.values_mut() {
            let NamedShape::Type { body, .. } = named else { continue };
            for name in std::mem::take(&mut body.includes) {
                match copy.get(name) {
                    Some(NamedShape::Type { body: other, .. }) => {
                        body.fields.extend(other.fields.iter().cloned());
                        body.needs.extend(other.needs.iter().cloned());
                        body.includes.extend(&other.includes);
                        body.is_meta |= other.is_meta;
                    }
                    Some(NamedShape::Alias(_)) | None => {
                        table.problems.push(format!("{name} has no fields to include"))
                    }
                }
            }
        }
    }
}

/// Every name that some shape uses.
fn names(table: &ShapeTable) -> Vec<&'static str> {
    fn of(shape: &Shape, found: &mut Vec<&'static str>) {
        match shape {
            Shape::Named(name) => found.push(name),
            Shape::List { each, .. } | Shape::Map(each) => of(each, found),
            Shape::OneOf(all) | Shape::AllOf(all) => all.iter().for_each(|shape| of(shape, found)),
            Shape::Any
            | Shape::Kind(_)
            | Shape::Count
            | Shape::UnitInterval
            | Shape::Uri
            | Shape::Base64
            | Shape::Meta
            | Shape::Word(_) => {}
        }
    }
    let mut found = Vec::new();
    for named in table.named.values() {
        match named {
            NamedShape::Alias(shape) => of(shape, &mut found),
            NamedShape::Type { body, .. } => body.fields.iter().for_each(|field| of(&field.shape, &mut found)),
        }
    }
    for method in &table.methods {
        of(&method.params, &mut found);
        of(&method.result, &mut found);
    }
    table.codes.iter().for_each(|code| of(&code.data, &mut found));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_not_understood_is_a_problem_with_its_place() {
        let table = table("type A\n  a string\nrequest client x: A\nnonsense\ntype B\n  b: Missing\n  + C\n");
        assert_eq!(
            table.problems,
            [
                "line 2: a string",
                "line 3: request client x: A",
                "line 4: nonsense",
                "C has no fields to include",
                "Missing is not defined"
            ]
        );
    }

    #[test]
    fn alternatives_inside_brackets_belong_to_them() {
        let Some(Shape::OneOf(all)) = shape("'a' | [string | null; 3] | {A & B}") else { panic!("no choice") };
        assert_eq!(all.len(), 3);
        let Shape::List { each, at_most: Some(3) } = &all[1] else { panic!("{:?}", all[1]) };
        assert!(matches!(&**each, Shape::OneOf(both) if both.len() == 2));
    }
}
