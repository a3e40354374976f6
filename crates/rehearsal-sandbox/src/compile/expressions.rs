//! Forms of expressions.

use oxc_ast::ast::{CallExpression, Expression};
use oxc_ast_visit::Visit;

use super::names::plain;

/// The expression without parentheses, so that text can be inserted around it.
pub(super) fn unwrapped<'e, 'a>(expression: &'e Expression<'a>) -> &'e Expression<'a> {
    match expression {
        Expression::ParenthesizedExpression(inner) => unwrapped(&inner.expression),
        _ => expression,
    }
}

/// The innermost object of a chain of members and calls.
pub(super) fn root<'e, 'a>(expression: &'e Expression<'a>) -> &'e Expression<'a> {
    let mut expression = expression;
    loop {
        expression = match plain(expression) {
            Expression::CallExpression(call) => &call.callee,
            other => match other.as_member_expression() {
                Some(member) => member.object(),
                None => return other,
            },
        };
    }
}

pub(super) fn method<'e>(call: &'e CallExpression<'_>) -> Option<&'e str> {
    match plain(&call.callee) {
        Expression::StaticMemberExpression(member) => Some(member.property.name.as_str()),
        _ => None,
    }
}

pub(super) fn is_literal(expression: &Expression<'_>) -> bool {
    matches!(
        plain(expression),
        Expression::StringLiteral(_)
            | Expression::NumericLiteral(_)
            | Expression::BooleanLiteral(_)
            | Expression::NullLiteral(_)
    )
}

pub(super) fn contains_await(expression: &Expression<'_>) -> bool {
    struct Awaits(bool);

    impl<'a> Visit<'a> for Awaits {
        fn visit_await_expression(&mut self, _: &oxc_ast::ast::AwaitExpression<'a>) {
            self.0 = true;
        }
    }

    let mut awaits = Awaits(false);
    awaits.visit_expression(expression);
    awaits.0
}
