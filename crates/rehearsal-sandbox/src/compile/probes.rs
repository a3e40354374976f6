//! Probes: calls in the compiled code that record how a plan decides what it does next.
//!
//! ```text
//! if (file.size > 100) …          ─►  if (PROBEb(0, PROBEo(0, file.size) > 100)) …
//! for (const file of files) { … } ─►  for (const file of PROBEn(1, files)) {PROBEi(1); … }
//! switch (issue.state) { … }      ─►  switch (PROBEs(2, ["open"], issue.state)) { … }
//! a ?? b                          ─►  PROBEq(3, a) ?? b
//! catch (error) { … }             ─►  catch (error) {PROBEc(4, error); … }
//! promise.catch(handler)          ─►  promise.catch(PROBEh(5, handler))
//! const n = text.indexOf("a")     ─►  const n = PROBEd(6, PROBEo(6, text).indexOf("a"))
//! ```
//! The last one is a *derivation*: a value computed from others. If its operands change and its value does not, what uses the
//! value still depends on them.
//!
//! A probe returns its value, unless the run forces another decision. Two runs whose probes recorded the same decided alike.

use oxc_ast::ast::{
    Argument, ArrayExpressionElement, ArrowFunctionExpression, AssignmentExpression, AssignmentTarget, BindingPattern,
    CallExpression, CatchClause, ChainElement, ConditionalExpression, DoWhileStatement, Expression, ForInStatement,
    ForOfStatement, ForStatement, IfStatement, LogicalExpression, LogicalOperator, NewExpression, ObjectPropertyKind,
    Program, Statement, SwitchStatement, TSEnumDeclaration, UnaryExpression, UnaryOperator, VariableDeclarator,
    WhileStatement,
};
use std::collections::{BTreeMap, BTreeSet};

use oxc_ast_visit::{Visit, walk};
use oxc_semantic::{Semantic, SymbolId};
use oxc_span::{GetSpan, Span};
use serde_json::Value;

use super::edits::Edits;
use super::expressions::{contains_await, is_literal, method, root, unwrapped};
use super::flows::{Flows, is_derivation, names, symbols};
use super::names::{Reached, Resolver, plain};
use crate::place::{LineIndex, SourcePlace};

/// The most sites with probes in one plan.
const MAX_SITES: usize = 2000;
/// The most operands that are recorded in one plan.
const MAX_OPERANDS: usize = 10_000;
/// The most values that are kept as values which the plan compares with.
const MAX_COMPARED: usize = 16;
/// The longest text of a site.
const MAX_TEXT_CHARACTERS: usize = 60;

/// Methods whose result usually decides something: their callbacks return conditions, or they are conditions themselves.
const PREDICATE_CALLBACKS: &[&str] = &["every", "filter", "find", "findIndex", "findLast", "findLastIndex", "some"];
const PREDICATES: &[&str] = &["endsWith", "every", "has", "includes", "some", "startsWith", "test"];

/// Methods that put their arguments into their object.
const ADDING: &[&str] = &["add", "push", "set", "unshift"];

/// Line and column, both from 1.
type Position = (u32, u32);

/// A place at which a plan decides what it does next.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ProbeSite {
    /// The form of the decision.
    pub kind: ProbeKind,
    /// Where the condition is, or the value that a loop or a `switch` uses.
    pub place: SourcePlace,
    /// Its text in the source.
    pub text: String,
    /// The part that runs if the condition is true, and the part that runs if it is false.
    sides: [Option<(Position, Position)>; 2],
    /// The number of literal cases of a `switch`.
    pub cases: u32,
    /// The derivations whose values may be used here, by the index of their site.
    pub derived_from: Vec<u32>,
}

/// The form of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum ProbeKind {
    /// A condition: a test, the left side of `&&` or `||`, or a comparison whose result is kept.
    Condition,
    /// The condition of a `while`, `do` or `for` loop.
    LoopCondition,
    /// The left side of `??`: true if it is neither `null` nor `undefined`.
    Nullish,
    /// The value of a `switch`.
    Switch,
    /// The values of a `for … of` or `for … in` loop.
    Loop,
    /// A `catch`.
    Catch,
    /// A value that is computed from others.
    Derivation,
}

impl ProbeSite {
    /// The side of the decision on which a call is: `true` is the part that runs if the condition holds. A call in a function
    /// is on the side from which the function was called.
    pub fn side_of(&self, place: &SourcePlace) -> Option<bool> {
        let own = (place.line, place.column.unwrap_or(u32::MAX));
        let within = |side: usize| {
            let (start, end) = self.sides[side]?;
            let mut positions = std::iter::once(own).chain(place.via.iter().copied());
            positions.any(|position| start <= position && position < end).then_some(side == 0)
        };
        within(0).or_else(|| within(1))
    }
}

/// The probes of a plan.
pub(super) struct Probes {
    pub(super) sites: Vec<ProbeSite>,
    /// Literals that the plan compares with.
    pub(super) compared: Vec<Value>,
    /// Whether there are sites without a probe.
    pub(super) is_truncated: bool,
    /// The derivations whose values may be used in an argument, by the start of the call and the name of the argument.
    pub(super) arguments: BTreeMap<(u32, String), Vec<u32>>,
}

/// Adds the probes of a program to the edits. The names of the probe functions begin with `prefix`.
pub(super) fn add<'a>(
    source: &LineIndex,
    program: &Program<'a>,
    semantic: &Semantic<'a>,
    prefix: &str,
    edits: &mut Edits,
) -> Probes {
    let (sites, compared, arguments) = (Vec::new(), Vec::new(), BTreeMap::new());
    let probes = Probes { sites, compared, is_truncated: false, arguments };
    let resolver = Resolver { semantic };
    let flows = Flows::default();
    let mut visitor = Visitor { source, resolver, prefix, edits, probes, operands: 0, in_condition: false, flows };
    visitor.visit_program(program);
    let Visitor { mut probes, flows, .. } = visitor;
    for (site, uses) in &flows.uses {
        probes.sites[*site].derived_from = flows.derivations(uses);
    }
    for (argument, uses) in &flows.arguments {
        probes.arguments.insert(argument.clone(), flows.derivations(uses));
    }
    probes
}

/// A prefix that does not occur in the source.
pub(super) fn prefix(source: &str) -> String {
    let mut prefix = "__probe".to_owned();
    while source.contains(&prefix) {
        prefix.push('_');
    }
    prefix
}

struct Visitor<'s, 'a> {
    source: &'s LineIndex,
    resolver: Resolver<'s, 'a>,
    prefix: &'s str,
    edits: &'s mut Edits,
    probes: Probes,
    operands: usize,
    /// The visited expression is part of a condition: its comparisons get no probe of their own.
    in_condition: bool,
    flows: Flows,
}

impl<'a> Visitor<'_, 'a> {
    /// Adds a site and returns its id, unless there are too many.
    fn site(&mut self, kind: ProbeKind, span: Span, sides: [Option<Span>; 2], cases: u32) -> Option<usize> {
        if self.probes.sites.len() >= MAX_SITES {
            self.probes.is_truncated = true;
            return None;
        }
        let text = &self.source.text()[span.start as usize..span.end as usize];
        let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((end, _)) = text.char_indices().nth(MAX_TEXT_CHARACTERS) {
            text.truncate(end);
            text.push('…');
        }
        let positions = |span: Span| (self.source.position(span.start), self.source.position(span.end));
        let sides = sides.map(|side| side.map(positions));
        let place = self.source.place(span.start);
        self.probes.sites.push(ProbeSite { kind, place, text, sides, cases, derived_from: Vec::new() });
        Some(self.probes.sites.len() - 1)
    }

    /// Makes an expression the last argument of a probe function.
    fn wrap(&mut self, expression: &Expression<'a>, function: &str, arguments: &str) {
        // The parts of a sequence would be arguments of their own.
        let (open, close) = match expression {
            Expression::SequenceExpression(_) => ("(", "))"),
            _ => ("", ")"),
        };
        let span = expression.span();
        self.edits.insert(span.start, &format!("{}{function}({arguments}, {open}", self.prefix));
        self.edits.insert_end(span.end, close);
    }

    /// Whether the value of an expression is a decision: a comparison, or a method like `includes`.
    fn is_comparison(&self, expression: &Expression<'a>) -> bool {
        match plain(expression) {
            Expression::BinaryExpression(binary) => {
                binary.operator.is_compare() || binary.operator.is_equality() || binary.operator.is_relational()
            }
            Expression::CallExpression(call) => {
                method(call).is_some_and(|name| PREDICATES.contains(&name))
                    && self.resolver.reached(&call.callee).is_none()
            }
            _ => false,
        }
    }

    /// Adds the probe of a condition and of its operands.
    fn condition(&mut self, test: &Expression<'a>, kind: ProbeKind, sides: [Option<Span>; 2]) {
        let inner = unwrapped(test);
        if let Some(id) = self.site(kind, inner.span(), sides, 0) {
            self.wrap(inner, if kind == ProbeKind::Nullish { "q" } else { "b" }, &id.to_string());
            self.operands(inner, id);
            self.flows.uses.push((id, symbols(&self.resolver, inner)));
        }
    }

    /// Adds the probes of the computed arguments of a tool, and returns them with their sites.
    fn tool_arguments<'c>(&mut self, call: &'c CallExpression<'a>) -> Vec<(&'c Expression<'a>, usize)> {
        let is_tool = matches!(self.resolver.reached(&call.callee), Some(Reached::Tool(..)));
        let first = call.arguments.first().filter(|_| is_tool).and_then(Argument::as_expression);
        let Some(Expression::ObjectExpression(object)) = first.map(plain) else { return Vec::new() };
        let mut derivations = Vec::new();
        for property in &object.properties {
            if let ObjectPropertyKind::ObjectProperty(property) = property
                && let Some(name) = self.resolver.key(&property.key, property.computed, 1)
            {
                let derivation = if property.shorthand { None } else { self.derivation(&property.value) };
                derivations.extend(derivation.map(|id| (&property.value, id)));
                let mut uses = symbols(&self.resolver, &property.value);
                uses.derivations.extend(derivation);
                self.flows.arguments.push(((call.span.start, name), uses));
            }
        }
        derivations
    }

    /// Adds the probe of a function that handles errors of a promise: `promise.catch(f)`, `promise.then(f, g)`.
    fn visit_handler(&mut self, call: &CallExpression<'a>, method: Option<&str>) {
        let handler = match method {
            Some("catch") => call.arguments.first(),
            Some("then") => call.arguments.get(1),
            _ => None,
        };
        let Some(handler) = handler.and_then(Argument::as_expression) else { return };
        let Expression::StaticMemberExpression(member) = plain(&call.callee) else { return };
        if self.resolver.reached(&call.callee).is_some() {
            return;
        }
        if let Some(id) = self.site(ProbeKind::Catch, member.property.span, [Some(handler.span()), None], 0) {
            self.wrap(handler, "h", &id.to_string());
        }
    }

    /// Adds the probes of a loop: one where it begins, and one in each turn.
    fn loop_over(&mut self, values: &Expression<'a>, body: &Statement<'a>) {
        let (values, span) = (unwrapped(values), body.span());
        let Some(id) = self.site(ProbeKind::Loop, values.span(), [Some(span), None], 0) else { return };
        self.wrap(values, "n", &id.to_string());
        self.flows.uses.push((id, symbols(&self.resolver, values)));
        let turn = format!("{}i({id});", self.prefix);
        match body {
            Statement::BlockStatement(_) => self.edits.insert(span.start + 1, &turn),
            _ => {
                self.edits.insert(span.start, &format!("{{{turn}"));
                self.edits.insert_end(span.end, "}");
            }
        }
    }

    /// Visits a condition: comparisons in it get no probe of their own.
    fn visit_condition(&mut self, test: &Expression<'a>) {
        let before = std::mem::replace(&mut self.in_condition, true);
        self.visit_expression(test);
        self.in_condition = before;
    }

    fn operand(&mut self, expression: &Expression<'a>, id: usize) {
        if self.operands >= MAX_OPERANDS {
            self.probes.is_truncated = true;
            return;
        }
        self.operands += 1;
        self.wrap(expression, "o", &id.to_string());
    }

    /// Adds probes around the values that decide a condition.
    fn operands(&mut self, expression: &Expression<'a>, id: usize) {
        // `mcp` and its servers are not data.
        if self.resolver.reached(expression).is_some() {
            return;
        }
        match plain(expression) {
            // A global is the same in every run.
            Expression::Identifier(identifier) if self.resolver.symbol(identifier).is_some() => {
                self.operand(plain(expression), id);
            }
            member @ Expression::StaticMemberExpression(inner) => {
                self.operand(member, id);
                self.computed_object(&inner.object, id);
            }
            member @ Expression::PrivateFieldExpression(inner) => {
                self.operand(member, id);
                self.computed_object(&inner.object, id);
            }
            member @ Expression::ComputedMemberExpression(computed) => {
                self.operand(member, id);
                self.computed_object(&computed.object, id);
                self.operands(&computed.expression, id);
            }
            Expression::NewExpression(new) => new.arguments.iter().for_each(|argument| self.argument(argument, id)),
            Expression::ArrayExpression(array) => {
                for element in &array.elements {
                    match element {
                        ArrayExpressionElement::SpreadElement(spread) => self.operands(&spread.argument, id),
                        _ => element.as_expression().into_iter().for_each(|element| self.operands(element, id)),
                    }
                }
            }
            Expression::ObjectExpression(object) => {
                for property in &object.properties {
                    match property {
                        ObjectPropertyKind::SpreadProperty(spread) => self.operands(&spread.argument, id),
                        // A name that is key and value cannot be wrapped.
                        ObjectPropertyKind::ObjectProperty(property) if !property.shorthand => {
                            self.operands(&property.value, id);
                        }
                        ObjectPropertyKind::ObjectProperty(_) => {}
                    }
                }
            }
            awaited @ Expression::AwaitExpression(_) => self.operand(awaited, id),
            chain @ Expression::ChainExpression(inner) => {
                self.operand(chain, id);
                // Only the root of an optional chain can be wrapped without changing what the chain skips.
                let (callee, call) = match &inner.expression {
                    ChainElement::CallExpression(call) => (Some(&call.callee), Some(call)),
                    other => (other.as_member_expression().map(|member| member.object()), None),
                };
                if let Some(callee) = callee {
                    self.operands(root(callee), id);
                }
                for argument in call.iter().flat_map(|call| &call.arguments) {
                    self.argument(argument, id);
                }
            }
            whole @ Expression::CallExpression(call) => {
                self.operand(whole, id);
                if let Some(member) = plain(&call.callee).as_member_expression() {
                    self.operands(member.object(), id);
                }
                call.arguments.iter().for_each(|argument| self.argument(argument, id));
            }
            Expression::BinaryExpression(binary) => {
                self.compared(&binary.left);
                self.compared(&binary.right);
                self.operands(&binary.left, id);
                self.operands(&binary.right, id);
            }
            Expression::LogicalExpression(logical) => {
                if !contains_await(&logical.right) {
                    self.operands(&logical.left, id);
                }
                self.operands(&logical.right, id);
            }
            Expression::UnaryExpression(unary)
                if !matches!(unary.operator, UnaryOperator::Delete | UnaryOperator::Typeof) =>
            {
                self.operands(&unary.argument, id);
            }
            Expression::AssignmentExpression(assignment) => self.operands(&assignment.right, id),
            Expression::SequenceExpression(sequence) => {
                sequence.expressions.iter().for_each(|part| self.operands(part, id));
            }
            Expression::TemplateLiteral(template) => {
                template.expressions.iter().for_each(|part| self.operands(part, id));
            }
            _ => {}
        }
    }

    /// The operands of an object whose member is read, if the object is computed: `text.split(",")` in `text.split(",").length`.
    fn computed_object(&mut self, object: &Expression<'a>, id: usize) {
        let mut inner = plain(object);
        loop {
            inner = match inner {
                Expression::StaticMemberExpression(member) => plain(&member.object),
                Expression::CallExpression(_)
                | Expression::NewExpression(_)
                | Expression::ComputedMemberExpression(_)
                | Expression::ArrayExpression(_)
                | Expression::ChainExpression(_) => return self.operands(object, id),
                _ => return,
            };
        }
    }

    /// Adds the probe of a value that is computed, and returns its site. Its operands are added after the decisions in it, so
    /// that they are inside of them.
    fn derivation(&mut self, value: &Expression<'a>) -> Option<usize> {
        let uses_nothing = || symbols(&self.resolver, value).symbols.is_empty() && !contains_await(value);
        if self.in_condition || !is_derivation(value) || self.resolver.reached(value).is_some() || uses_nothing() {
            return None;
        }
        let id = self.site(ProbeKind::Derivation, value.span(), [None, None], 0)?;
        // A value may use more of a variable than its operands show: a member that is not there, or a name in a function.
        let names = names(&self.resolver, value);
        self.wrap(value, "d", &format!("{id}, {}", thunk(names)));
        Some(id)
    }

    /// The variable at the beginning of a chain of members.
    fn root_symbol(&self, expression: &Expression<'a>) -> Option<SymbolId> {
        match root(expression) {
            Expression::Identifier(name) => self.resolver.symbol(name),
            _ => None,
        }
    }

    fn argument(&mut self, argument: &Argument<'a>, id: usize) {
        match argument {
            Argument::SpreadElement(spread) => self.operands(&spread.argument, id),
            _ => {
                if let Some(argument) = argument.as_expression() {
                    self.operands(argument, id);
                }
            }
        }
    }

    /// Keeps a literal that is compared with other values.
    fn compared(&mut self, expression: &Expression<'a>) {
        let value = match plain(expression) {
            Expression::StringLiteral(text) if !text.lone_surrogates => Value::from(text.value.as_str()),
            Expression::NumericLiteral(number) => match super::arguments::json_number(number.value) {
                Some(number) => number,
                None => return,
            },
            Expression::ArrayExpression(array) => {
                for element in array.elements.iter().filter_map(|element| element.as_expression()) {
                    if !matches!(plain(element), Expression::ArrayExpression(_)) {
                        self.compared(element);
                    }
                }
                return;
            }
            _ => return,
        };
        self.compared_value(value);
    }

    fn compared_value(&mut self, value: Value) {
        if self.probes.compared.len() < MAX_COMPARED && !self.probes.compared.contains(&value) {
            self.probes.compared.push(value);
        }
    }

    /// Visits a callback of `filter`, `some` and the like: what it returns is a condition.
    fn visit_predicate(&mut self, function: &ArrowFunctionExpression<'a>) {
        match function.body.as_expression() {
            Some(body) if !self.is_comparison(body) && !is_literal(body) => {
                self.condition(body, ProbeKind::Condition, [None, None]);
                self.visit_condition(body);
            }
            _ => self.visit_arrow_function_expression(function),
        }
    }
}

impl<'a> Visit<'a> for Visitor<'_, 'a> {
    fn visit_if_statement(&mut self, statement: &IfStatement<'a>) {
        let sides = [Some(statement.consequent.span()), statement.alternate.as_ref().map(GetSpan::span)];
        self.condition(&statement.test, ProbeKind::Condition, sides);
        self.visit_condition(&statement.test);
        self.visit_statement(&statement.consequent);
        if let Some(alternate) = &statement.alternate {
            self.visit_statement(alternate);
        }
    }

    fn visit_conditional_expression(&mut self, expression: &ConditionalExpression<'a>) {
        let sides = [Some(expression.consequent.span()), Some(expression.alternate.span())];
        self.condition(&expression.test, ProbeKind::Condition, sides);
        self.visit_condition(&expression.test);
        let before = std::mem::replace(&mut self.in_condition, false);
        self.visit_expression(&expression.consequent);
        self.visit_expression(&expression.alternate);
        self.in_condition = before;
    }

    fn visit_while_statement(&mut self, statement: &WhileStatement<'a>) {
        self.condition(&statement.test, ProbeKind::LoopCondition, [Some(statement.body.span()), None]);
        self.visit_condition(&statement.test);
        self.visit_statement(&statement.body);
    }

    fn visit_do_while_statement(&mut self, statement: &DoWhileStatement<'a>) {
        self.visit_statement(&statement.body);
        self.condition(&statement.test, ProbeKind::LoopCondition, [Some(statement.body.span()), None]);
        self.visit_condition(&statement.test);
    }

    fn visit_for_statement(&mut self, statement: &ForStatement<'a>) {
        if let Some(init) = &statement.init {
            self.visit_for_statement_init(init);
        }
        if let Some(test) = &statement.test {
            self.condition(test, ProbeKind::LoopCondition, [Some(statement.body.span()), None]);
            self.visit_condition(test);
        }
        if let Some(update) = &statement.update {
            self.visit_expression(update);
        }
        self.visit_statement(&statement.body);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        self.loop_over(&statement.right, &statement.body);
        walk::walk_for_of_statement(self, statement);
    }

    fn visit_for_in_statement(&mut self, statement: &ForInStatement<'a>) {
        self.loop_over(&statement.right, &statement.body);
        walk::walk_for_in_statement(self, statement);
    }

    fn visit_switch_statement(&mut self, statement: &SwitchStatement<'a>) {
        let mut literals = Vec::new();
        for test in statement.cases.iter().filter_map(|case| case.test.as_ref()) {
            self.compared(test);
            if is_literal(test) {
                let span = plain(test).span();
                literals.push(&self.source.text()[span.start as usize..span.end as usize]);
            }
        }
        let value = unwrapped(&statement.discriminant);
        let cases = match (statement.cases.first(), statement.cases.last()) {
            (Some(first), Some(last)) => Some(Span::new(first.span.start, last.span.end)),
            _ => None,
        };
        if let Some(id) = self.site(ProbeKind::Switch, value.span(), [cases, None], literals.len() as u32) {
            self.flows.uses.push((id, symbols(&self.resolver, value)));
            self.wrap(value, "s", &format!("{id}, [{}]", literals.join(", ")));
        }
        walk::walk_switch_statement(self, statement);
    }

    /// The keys of a table may be compared with a value that is looked up in it.
    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if let Some(Expression::ObjectExpression(object)) = declarator.init.as_ref().map(plain) {
            for property in &object.properties {
                if let ObjectPropertyKind::ObjectProperty(property) = property
                    && let Some(key) = self.resolver.key(&property.key, property.computed, 1)
                {
                    self.compared_value(key.into());
                }
            }
        }
        let Some(init) = &declarator.init else { return walk::walk_variable_declarator(self, declarator) };
        let derivation = self.derivation(init);
        let names = declarator.id.get_binding_identifiers();
        let declared = names.iter().filter_map(|name| name.symbol_id.get()).collect();
        self.flows.define(declared, derivation, symbols(&self.resolver, init));
        walk::walk_variable_declarator(self, declarator);
        derivation.into_iter().for_each(|id| self.operands(init, id));
    }

    fn visit_assignment_expression(&mut self, assignment: &AssignmentExpression<'a>) {
        let derivation = self.derivation(&assignment.right);
        let symbol = match &assignment.left {
            AssignmentTarget::AssignmentTargetIdentifier(name) => self.resolver.symbol(name),
            // A member that is set changes the object that a variable names.
            left => left.as_member_expression().and_then(|member| self.root_symbol(member.object())),
        };
        if let Some(symbol) = symbol {
            self.flows.define(vec![symbol], derivation, symbols(&self.resolver, &assignment.right));
        }
        walk::walk_assignment_expression(self, assignment);
        derivation.into_iter().for_each(|id| self.operands(&assignment.right, id));
    }

    /// So may the keys of a `Map` and the elements of a `Set`.
    fn visit_new_expression(&mut self, new: &NewExpression<'a>) {
        let is_collection =
            matches!(plain(&new.callee), Expression::Identifier(name) if matches!(name.name.as_str(), "Map" | "Set"));
        if let (true, Some(Expression::ArrayExpression(array))) =
            (is_collection, new.arguments.first().and_then(Argument::as_expression).map(plain))
        {
            for element in array.elements.iter().filter_map(|element| element.as_expression()) {
                match plain(element) {
                    Expression::ArrayExpression(pair) => {
                        if let Some(key) = pair.elements.first().and_then(|key| key.as_expression()) {
                            self.compared(key);
                        }
                    }
                    element => self.compared(element),
                }
            }
        }
        walk::walk_new_expression(self, new);
    }

    fn visit_logical_expression(&mut self, logical: &LogicalExpression<'a>) {
        // In a condition, the whole is one decision, unless a call depends on a part of it.
        if !self.in_condition || contains_await(&logical.right) {
            let right = Some(logical.right.span());
            let (kind, sides) = match logical.operator {
                LogicalOperator::And => (ProbeKind::Condition, [right, None]),
                LogicalOperator::Or => (ProbeKind::Condition, [None, right]),
                LogicalOperator::Coalesce => (ProbeKind::Nullish, [None, right]),
            };
            self.condition(&logical.left, kind, sides);
            self.visit_condition(&logical.left);
        } else {
            self.visit_expression(&logical.left);
        }
        self.visit_expression(&logical.right);
    }

    fn visit_expression(&mut self, expression: &Expression<'a>) {
        // A comparison whose result is kept: `const isOpen = issue.state === "open"`.
        if !self.in_condition && self.is_comparison(expression) {
            self.condition(expression, ProbeKind::Condition, [None, None]);
            self.visit_condition(plain(expression));
            return;
        }
        walk::walk_expression(self, expression);
    }

    fn visit_unary_expression(&mut self, unary: &UnaryExpression<'a>) {
        let argument = &unary.argument;
        let is_probed = self.in_condition
            || self.is_comparison(argument)
            || is_literal(argument)
            || matches!(plain(argument), Expression::UnaryExpression(_));
        if unary.operator == UnaryOperator::LogicalNot && !is_probed {
            self.condition(argument, ProbeKind::Condition, [None, None]);
            return self.visit_condition(argument);
        }
        walk::walk_unary_expression(self, unary);
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        let method = method(call);
        if method.is_some_and(|name| PREDICATES.contains(&name) || name == "split") {
            call.arguments.iter().filter_map(Argument::as_expression).for_each(|argument| self.compared(argument));
            if let Some(member) = plain(&call.callee).as_member_expression() {
                self.compared(member.object());
            }
        }
        self.visit_handler(call, method);
        let derivations = self.tool_arguments(call);
        if method.is_some_and(|name| ADDING.contains(&name))
            && let Some(member) = plain(&call.callee).as_member_expression()
            && let Some(symbol) = self.root_symbol(member.object())
        {
            for argument in call.arguments.iter().filter_map(Argument::as_expression) {
                self.flows.define(vec![symbol], None, symbols(&self.resolver, argument));
            }
        }
        let takes_predicate = method.is_some_and(|name| PREDICATE_CALLBACKS.contains(&name));
        self.visit_expression(&call.callee);
        for argument in &call.arguments {
            match argument {
                Argument::ArrowFunctionExpression(function) if takes_predicate => self.visit_predicate(function),
                _ => self.visit_argument(argument),
            }
        }
        for (value, id) in derivations {
            self.operands(value, id);
        }
    }

    fn visit_arrow_function_expression(&mut self, function: &ArrowFunctionExpression<'a>) {
        let before = std::mem::replace(&mut self.in_condition, false);
        walk::walk_arrow_function_expression(self, function);
        self.in_condition = before;
    }

    fn visit_function(&mut self, function: &oxc_ast::ast::Function<'a>, flags: oxc_syntax::scope::ScopeFlags) {
        let before = std::mem::replace(&mut self.in_condition, false);
        walk::walk_function(self, function, flags);
        self.in_condition = before;
    }

    fn visit_catch_clause(&mut self, clause: &CatchClause<'a>) {
        let body = clause.body.span;
        let keyword = Span::new(clause.span.start, clause.span.start + "catch".len() as u32);
        if let Some(id) = self.site(ProbeKind::Catch, keyword, [Some(body), None], 0) {
            let error = match &clause.param {
                None => {
                    let name = format!("{}e", self.prefix);
                    self.edits.insert(body.start, &format!("({name})"));
                    name
                }
                Some(parameter) => match &parameter.pattern {
                    BindingPattern::BindingIdentifier(identifier) => identifier.name.as_str().to_owned(),
                    _ => "undefined".to_owned(),
                },
            };
            self.edits.insert(body.start + 1, &format!("{}c({id}, {error});", self.prefix));
        }
        walk::walk_catch_clause(self, clause);
    }

    // The compiler computes the members of enums.
    fn visit_ts_enum_declaration(&mut self, _: &TSEnumDeclaration<'a>) {}
}

/// A function that returns the values of some names, for the probe of a derivation.
fn thunk(names: BTreeSet<String>) -> String {
    if names.is_empty() { "0".to_owned() } else { format!("() => [{}]", Vec::from_iter(names).join(", ")) }
}

#[cfg(test)]
mod tests {
    use crate::compile;

    /// The compiled plan with `§` in place of the prefix of probes.
    fn probed(source: &str) -> String {
        let plan = compile("plan.ts", source).unwrap();
        let (_, code) = plan.code.split_once('\n').unwrap();
        code.replace("__probe", "§").trim_end_matches("\n})").trim_end().replace('\n', " ")
    }

    #[test]
    fn decisions_and_their_values_get_probes() {
        for (source, expected) in [
            ("let a = 1; if (a) f(); function f() {}", "let a = 1; if (§b(0, §o(0, a))) f(); function f() {}"),
            ("let a = {}; if (a.b > 1 && !a.c) {}", "let a = {}; if (§b(0, §o(0, a.b) > 1 && !§o(0, a.c))) {}"),
            (
                "let a = ''; if (a.trim().includes('x')) {}",
                "let a = \"\"; if (§b(0, §o(0, §o(0, §o(0, a).trim()).includes(\"x\")))) {}",
            ),
            ("let a = {}; a.b && await mcp.x.y(); 1", "let a = {}; §b(0, §o(0, a.b)) && await mcp.x.y(); return 1;"),
            ("let a = []; a.filter((b) => b.c)", "let a = []; return a.filter((b) => §b(0, §o(0, b.c)));"),
            (
                "let a = []; a.some((b) => b.c > 1)",
                "let a = []; return §b(0, §o(0, §o(0, a).some((b) => §b(1, §o(1, b.c) > 1))));",
            ),
            (
                "let a = []; a.every((b) => { return b.c < 1; })",
                "let a = []; return §b(0, §o(0, §o(0, a).every((b) => { return §b(1, §o(1, b.c) < 1); })));",
            ),
            (
                "let a = {}; const b = a.c === 'd'",
                "let a = {}; const b = §d(0, () => [a], §b(1, §o(1, §o(0, a.c)) === \"d\"));",
            ),
            (
                "let a; const b = a?.c ?? 1",
                "let a; const b = §d(0, () => [a], §q(1, §o(1, §o(1, §o(0, §o(0, a))?.c))) ?? 1);",
            ),
            ("for (const a of [1]) { a }", "for (const a of §n(0, [1])) { §i(0); a; }"),
            (
                "let b; for (const a of [1]) b = a === 1",
                "let b; for (const a of §n(0, [1])) { §i(0); b = §d(1, () => [a], §b(2, §o(2, §o(1, a)) === 1)); }",
            ),
            (
                "for (const a in {}) f(a); function f(a) {}",
                "for (const a in §n(0, {})) { §i(0); f(a); } function f(a) {}",
            ),
            (
                "let a = 'b'; switch (a) { case 'c': break }",
                "let a = \"b\"; switch (§s(0, [\"c\"], a)) { case \"c\": break; }",
            ),
            (
                "let p; p.catch(() => 1); p.then(f, g); function f() {} function g() {}",
                "let p; p.catch(§h(0, () => 1)); p.then(f, §h(1, g)); function f() {} function g() {}",
            ),
            ("try { f() } catch { } function f() {}", "try { f(); } catch (§e) { §c(0, §e); } function f() {}"),
            ("try { f() } catch (e) { } function f() {}", "try { f(); } catch (e) { §c(0, e); } function f() {}"),
            ("let a = 0; while ((a++, a < 3)) {}", "let a = 0; while (§b(0, (a++, §o(0, a) < 3))) {}"),
            ("if (await mcp.x.has({})) {}", "if (§b(0, §o(0, await mcp.x.has({})))) {}"),
            (
                "let a = {}; if (a.b === 1 && (await mcp.x.y()).c) {}",
                "let a = {}; if (§b(0, §b(1, §o(1, a.b) === 1) && §o(0, (await mcp.x.y()).c))) {}",
            ),
            (
                "let a; const b = !!a; const c = !a.d",
                "let a; const b = §d(0, () => [a], !!§b(1, §o(1, §o(0, a)))); const c = §d(2, () => [a], !§b(3, §o(3, §o(2, a.d))));",
            ),
        ] {
            assert_eq!(probed(source), expected, "{source}");
        }
    }
}
