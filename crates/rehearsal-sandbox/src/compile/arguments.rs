//! The arguments of a call as far as the source fixes them.

use oxc_ast::ast::{Argument, ArrayExpressionElement, Expression, ObjectPropertyKind, UnaryOperator};
use serde_json::{Map, Value};

use super::names::{Resolver, plain};

/// How deep constants and nested literals are followed.
const DEPTH: u32 = 64;

/// The literal arguments of a call; parts that the source does not fix are `null` and listed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StaticArguments {
    /// The arguments with `null` in the place of each unknown part.
    pub value: Value,
    /// JSON Pointers of the unknown parts; `""` if nothing is known.
    pub unknown: Vec<String>,
    /// JSON Pointers of objects with a spread or a computed key: they may have more members than shown.
    pub open: Vec<String>,
}

impl<'a> Resolver<'_, 'a> {
    /// The arguments object of a call: its first argument, or `{}` without one.
    pub(super) fn arguments(&self, arguments: &[Argument<'a>]) -> StaticArguments {
        let mut found = StaticArguments { value: Value::Object(Map::new()), unknown: Vec::new(), open: Vec::new() };
        if let Some(first) = arguments.first() {
            let value = first.as_expression().and_then(|first| self.value(first, "", DEPTH, &mut found));
            found.value = value.unwrap_or_else(|| found.unknown_at(""));
        }
        found
    }

    /// The JSON value of an expression; `None` if nothing is known about it, or if it is `undefined`.
    fn value(&self, expression: &Expression<'a>, at: &str, depth: u32, found: &mut StaticArguments) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        match plain(expression) {
            Expression::NullLiteral(_) => Some(Value::Null),
            Expression::BooleanLiteral(boolean) => Some(Value::Bool(boolean.value)),
            Expression::NumericLiteral(number) => json_number(number.value),
            Expression::UnaryExpression(unary) if unary.operator == UnaryOperator::UnaryNegation => {
                match plain(&unary.argument) {
                    Expression::NumericLiteral(number) => json_number(-number.value),
                    _ => None,
                }
            }
            Expression::ArrayExpression(array) => {
                let mut items = Vec::with_capacity(array.elements.len());
                for (index, element) in array.elements.iter().enumerate() {
                    let at = format!("{at}/{index}");
                    items.push(match element {
                        // Behind a spread no index is known.
                        ArrayExpressionElement::SpreadElement(_) => return None,
                        ArrayExpressionElement::Elision(_) => Value::Null,
                        _ => match element.as_expression() {
                            Some(element) if is_undefined(element) => Value::Null,
                            Some(element) => {
                                self.value(element, &at, depth, found).unwrap_or_else(|| found.unknown_at(&at))
                            }
                            None => found.unknown_at(&at),
                        },
                    });
                }
                Some(Value::Array(items))
            }
            Expression::ObjectExpression(object) => {
                let mut members = Map::new();
                for property in &object.properties {
                    let ObjectPropertyKind::ObjectProperty(property) = property else {
                        found.open_at(at, &mut members);
                        continue;
                    };
                    let Some(key) = self.key(&property.key, property.computed, depth) else {
                        found.open_at(at, &mut members);
                        continue;
                    };
                    let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                    found.forget(&at);
                    if is_undefined(&property.value) {
                        members.shift_remove(&key);
                        continue;
                    }
                    let value = match property.kind {
                        oxc_ast::ast::PropertyKind::Init => self.value(&property.value, &at, depth, found),
                        oxc_ast::ast::PropertyKind::Get | oxc_ast::ast::PropertyKind::Set => None,
                    };
                    let value = value.unwrap_or_else(|| found.unknown_at(&at));
                    members.insert(key, value);
                }
                Some(Value::Object(members))
            }
            Expression::Identifier(_) => {
                let constant = self.constant(expression)?;
                // An object may be changed after its declaration, a primitive cannot.
                match plain(constant) {
                    Expression::ObjectExpression(_) | Expression::ArrayExpression(_) => None,
                    _ => self.value(constant, at, depth, found),
                }
            }
            other => self.text(other, depth).map(Value::String),
        }
    }
}

impl StaticArguments {
    fn unknown_at(&mut self, at: &str) -> Value {
        self.forget(at);
        self.unknown.push(at.to_owned());
        Value::Null
    }

    /// A spread may replace every member before it, so those become unknown.
    fn open_at(&mut self, at: &str, members: &mut Map<String, Value>) {
        if !self.open.iter().any(|open| open == at) {
            self.open.push(at.to_owned());
        }
        for key in std::mem::take(members).into_iter().map(|(key, _)| key) {
            let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
            let unknown = self.unknown_at(&at);
            members.insert(key, unknown);
        }
    }

    /// Removes what was noted at or below `at`: a later member of the same name replaces it.
    fn forget(&mut self, at: &str) {
        let below = |other: &String| other != at && !other.strip_prefix(at).is_some_and(|rest| rest.starts_with('/'));
        self.unknown.retain(below);
        self.open.retain(below);
    }
}

fn is_undefined(expression: &Expression<'_>) -> bool {
    matches!(plain(expression), Expression::Identifier(identifier) if identifier.name.as_str() == "undefined")
}

/// The number as `JSON.stringify` writes it: integers without a fraction.
pub(super) fn json_number(number: f64) -> Option<Value> {
    if number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0 {
        return Some(Value::from(number as i64));
    }
    serde_json::Number::from_f64(number).map(Value::Number)
}
