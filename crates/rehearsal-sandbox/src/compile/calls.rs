//! All calls of a plan: where they are, and which tools they call as far as the source shows it.

use oxc_ast::ast::{
    Argument, CallExpression, Expression, ExpressionStatement, MemberExpression, NewExpression, Program,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::Semantic;
use oxc_span::{GetSpan, Span};

use super::arguments::StaticArguments;
use super::names::{Name, Reached, Resolver, plain};
use crate::place::{LineIndex, SourcePlace};

/// A call of a tool that the source names, whether or not it runs.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StaticCall {
    /// The server's name in the plan.
    pub server: String,
    /// The tool's name.
    pub tool: String,
    /// Where the call begins.
    pub place: SourcePlace,
    /// The arguments as far as the source fixes them.
    pub arguments: StaticArguments,
}

/// A tool that the source names without calling it there: it is kept in a variable or passed on.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ToolReference {
    /// The server's name in the plan.
    pub server: String,
    /// The tool's name.
    pub tool: String,
    /// Where the tool is named.
    pub place: SourcePlace,
}

/// One call expression in the source, by byte offsets.
#[derive(Debug, Clone)]
struct Call {
    start: u32,
    end: u32,
    /// Where the callee ends and the arguments begin.
    callee_end: u32,
    /// The members that the callee reads; `None` if the callee is no member.
    members: Option<Members>,
    tool: Option<(String, String)>,
    /// The function that the callee names.
    function: Option<(u32, u32)>,
}

/// The members that a callee reads.
#[derive(Debug, Clone)]
struct Members {
    /// Where the engine places these reads: `mcp.fs.read`, and only `.bind` in `mcp.fs.read.bind`.
    part: (u32, u32),
    /// The names of the members.
    names: Vec<String>,
    /// Whether the plan computes a name when it runs.
    has_computed: bool,
}

/// The calls of a plan by offset, outer calls before inner ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallIndex {
    calls: Vec<Call>,
    /// Tools that are an argument of a call: `paths.map(mcp.fs.read)`.
    tool_arguments: Vec<(u32, u32)>,
}

impl CallIndex {
    /// The calls around `offset`, innermost first.
    fn around(&self, offset: u32) -> impl Iterator<Item = &Call> {
        let mut around: Vec<&Call> =
            self.calls.iter().filter(|call| call.start <= offset && offset < call.end).collect();
        around.sort_by_key(|call| call.end - call.start);
        around.into_iter()
    }

    /// The start of the call whose callee reads the member `name` at `offset`.
    ///
    /// The engine gives a read of `a.b.c` the position of `a`, and a read of `a[b]` or `a[b].c` the position of `b`.
    pub(crate) fn with_callee_at(&self, offset: u32, name: &str) -> Option<u32> {
        let mut in_callee = self.around(offset).take_while(|call| offset < call.callee_end);
        let reads = |call: &&Call| {
            let Some(Members { part: (from, to), names, has_computed }) = &call.members else { return false };
            *from <= offset && offset < *to && (*has_computed || names.iter().any(|known| known == name))
        };
        in_callee.find(reads).map(|call| call.start)
    }

    /// The start of the innermost call around `offset` that calls this tool.
    pub(crate) fn calling(&self, offset: u32, server: &str, tool: &str) -> Option<u32> {
        let calls = |call: &&Call| call.tool.as_ref().is_some_and(|(s, t)| s == server && t == tool);
        self.around(offset).find(calls).map(|call| call.start)
    }

    /// The start of the innermost call around `offset`.
    pub(crate) fn enclosing(&self, offset: u32) -> Option<u32> {
        self.around(offset).next().map(|call| call.start)
    }

    /// The start of the tool at `member` that is an argument of the innermost call around `call`.
    pub(crate) fn tool_as_argument(&self, member: u32, call: u32) -> Option<u32> {
        let around = self.around(call).next()?;
        let argument = self.tool_arguments.iter().find(|(start, end)| *start <= member && member < *end)?;
        (around.start <= argument.0 && argument.1 <= around.end).then_some(argument.0)
    }

    /// The start of the call at `offset` that called the function around `inner`.
    pub(crate) fn caller(&self, offset: u32, inner: u32) -> Option<u32> {
        let called = |call: &&Call| call.function.is_some_and(|(from, to)| from <= inner && inner < to);
        let found = self.around(offset).find(called).or_else(|| self.around(offset).next());
        found.map(|call| call.start)
    }
}

/// What the static pass finds.
pub(super) struct Calls {
    pub(super) index: CallIndex,
    pub(super) named: Vec<StaticCall>,
    pub(super) computed: Vec<SourcePlace>,
    pub(super) references: Vec<ToolReference>,
    /// The starts of calls with whose results the plan does nothing: `await mcp.fs.write(…);`.
    pub(super) discarded: Vec<u32>,
}

/// Finds all calls of a program.
pub(super) fn find<'a>(source: &LineIndex, program: &Program<'a>, semantic: &Semantic<'a>) -> Calls {
    let (index, named, computed, references) = (CallIndex::default(), Vec::new(), Vec::new(), Vec::new());
    let calls = Calls { index, named, computed, references, discarded: Vec::new() };
    let mut visitor = Visitor { source, resolver: Resolver { semantic }, calls, callees: Vec::new() };
    visitor.visit_program(program);
    visitor.calls
}

struct Visitor<'s, 'a> {
    source: &'s LineIndex,
    resolver: Resolver<'s, 'a>,
    calls: Calls,
    /// The callees of the calls around the visited expression.
    callees: Vec<Span>,
}

impl<'a> Visit<'a> for Visitor<'_, 'a> {
    fn visit_expression(&mut self, expression: &Expression<'a>) {
        let is_member =
            matches!(expression, Expression::StaticMemberExpression(_) | Expression::ComputedMemberExpression(_));
        if is_member
            && !self.callees.contains(&expression.span())
            && let Some(Reached::Tool(Name::Known(server), Name::Known(tool))) = self.resolver.reached(expression)
        {
            let place = self.source.place(expression.span().start);
            self.calls.references.push(ToolReference { server, tool, place });
        }
        walk::walk_expression(self, expression);
    }

    fn visit_expression_statement(&mut self, statement: &ExpressionStatement<'a>) {
        if let Expression::AwaitExpression(awaited) = plain(&statement.expression)
            && let Expression::CallExpression(call) = plain(&awaited.argument)
        {
            self.calls.discarded.push(call.span.start);
        }
        walk::walk_expression_statement(self, statement);
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        self.callees.push(plain(&call.callee).span());
        let mut tool = None;
        match self.resolver.reached(&call.callee) {
            Some(Reached::Tool(Name::Known(server), Name::Known(name))) => {
                self.calls.named.push(StaticCall {
                    server: server.clone(),
                    tool: name.clone(),
                    place: self.source.place(call.span.start),
                    arguments: self.resolver.arguments(&call.arguments),
                });
                tool = Some((server, name));
            }
            Some(Reached::Tool(..)) => self.calls.computed.push(self.source.place(call.span.start)),
            Some(Reached::Mcp | Reached::Server(_)) | None => {}
        }
        self.calls.index.calls.push(Call {
            start: call.span.start,
            end: call.span.end,
            callee_end: call.callee.span().end,
            members: members(plain(&call.callee)),
            tool,
            function: self.resolver.function(&call.callee),
        });
        for argument in call.arguments.iter().filter_map(Argument::as_expression) {
            if let Some(Reached::Tool(..)) = self.resolver.reached(argument) {
                self.calls.index.tool_arguments.push((argument.span().start, argument.span().end));
            }
        }
        walk::walk_call_expression(self, call);
    }

    /// `new` calls no tool, but it is a caller of code that does.
    fn visit_new_expression(&mut self, new: &NewExpression<'a>) {
        let (start, end, function) = (new.span.start, new.span.end, self.resolver.function(&new.callee));
        self.calls.index.calls.push(Call { start, end, callee_end: start, members: None, tool: None, function });
        walk::walk_new_expression(self, new);
    }
}

/// The members that a callee reads. `tool.bind(…)` calls the tool later, so that its object does not count.
fn members(callee: &Expression<'_>) -> Option<Members> {
    let outer = member_expression(callee)?;
    let is_bind = outer.static_property_name() == Some("bind");
    let start = if is_bind { outer.object().span().end } else { callee.span().start };
    let mut members = Members { part: (start, callee.span().end), names: Vec::new(), has_computed: false };
    let mut next = Some(outer);
    while let Some(member) = next {
        match member.static_property_name() {
            Some(name) => members.names.push(name.to_owned()),
            None => members.has_computed |= matches!(member, MemberExpression::ComputedMemberExpression(_)),
        }
        next = member_expression(plain(member.object()));
    }
    Some(members)
}

fn member_expression<'e, 'a>(expression: &'e Expression<'a>) -> Option<&'e MemberExpression<'a>> {
    match expression {
        Expression::ChainExpression(chain) => chain.expression.as_member_expression(),
        other => other.as_member_expression(),
    }
}
