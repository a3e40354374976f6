//! The parts of a plan whose errors the plan catches itself.

use oxc_ast::ast::{
    ArrowFunctionExpression, BlockStatement, CallExpression, Expression, Function, Program, ThrowStatement,
    TryStatement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

use crate::place::{LineIndex, SourcePlace};

/// Line and column, both from 1.
type Position = (u32, u32);

/// The parts of a plan whose errors it catches: blocks of `try` with a `catch`, and promises with `.catch(…)`.
#[derive(Debug, Clone, Default)]
pub(crate) struct CaughtParts(Vec<(Position, Position)>);

impl CaughtParts {
    /// Finds the parts of a program.
    pub(super) fn find(source: &LineIndex, program: &Program<'_>) -> CaughtParts {
        let mut visitor = Visitor { source, parts: Vec::new() };
        visitor.visit_program(program);
        CaughtParts(visitor.parts)
    }

    /// Whether an error of a call at this place, or of one of its callers, is caught. A place without a column counts by its
    /// line.
    pub(crate) fn contain(&self, place: &SourcePlace) -> bool {
        let own = (place.line, place.column.unwrap_or(u32::MAX));
        let positions = std::iter::once(own).chain(place.via.iter().copied());
        positions.into_iter().any(|position| self.0.iter().any(|(start, end)| *start <= position && position < *end))
    }
}

struct Visitor<'s> {
    source: &'s LineIndex,
    parts: Vec<(Position, Position)>,
}

impl Visitor<'_> {
    fn add(&mut self, span: Span) {
        self.parts.push((self.source.position(span.start), self.source.position(span.end)));
    }
}

impl<'a> Visit<'a> for Visitor<'_> {
    fn visit_try_statement(&mut self, statement: &TryStatement<'a>) {
        if statement.handler.as_ref().is_some_and(|handler| !throws(&handler.body)) {
            self.add(statement.block.span);
        }
        walk::walk_try_statement(self, statement);
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if let Expression::StaticMemberExpression(member) = &call.callee {
            match member.property.name.as_str() {
                "catch" if !call.arguments.is_empty() => self.add(member.object.span()),
                "then" if call.arguments.len() > 1 => self.add(member.object.span()),
                // It turns errors into values.
                "allSettled" | "any" => call.arguments.iter().for_each(|argument| self.add(argument.span())),
                _ => {}
            }
        }
        walk::walk_call_expression(self, call);
    }
}

/// Whether a handler throws an error itself, outside of functions in it.
fn throws(body: &BlockStatement<'_>) -> bool {
    struct Throws(bool);

    impl<'a> Visit<'a> for Throws {
        fn visit_throw_statement(&mut self, _: &ThrowStatement<'a>) {
            self.0 = true;
        }

        fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}

        fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}
    }

    let mut throws = Throws(false);
    throws.visit_block_statement(body);
    throws.0
}

#[cfg(test)]
mod tests {
    use crate::compile;

    #[test]
    fn errors_are_caught_in_try_blocks_and_by_handlers_of_promises() {
        for (source, caught) in [
            ("await mcp.a.b()", false),
            ("try { await mcp.a.b() } catch { }", true),
            ("try { await mcp.a.b() } finally { }", false),
            ("try { await mcp.a.b() } catch (e) { console.log(e); throw e }", false),
            ("try { 1 } catch { await mcp.a.b() }", false),
            ("await mcp.a.b().catch(() => 1)", true),
            ("await mcp.a.b().then((x) => x)", false),
            ("await mcp.a.b().then((x) => x, () => 1)", true),
            ("await Promise.allSettled([mcp.a.b()])", true),
            ("const f = async () => { try { return await mcp.a.b() } catch (e) { return 1 } }; await f()", true),
        ] {
            let plan = compile("plan.ts", source).unwrap();
            assert_eq!(plan.is_caught(&plan.static_calls[0].place), caught, "{source}");
        }
    }
}
