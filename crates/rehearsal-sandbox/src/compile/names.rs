//! Which server and tool an expression names, found without running the plan.

use oxc_ast::AstKind;
use oxc_ast::ast::{BinaryOperator, BindingPattern, Expression, IdentifierReference, PropertyKey};
use oxc_semantic::{Semantic, SymbolFlags, SymbolId};

/// How many aliases are followed: `const a = mcp.fs; const b = a; …`.
const ALIAS_DEPTH: u32 = 8;

/// A name that is known, or computed when the plan runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    Known(String),
    Computed,
}

/// What an expression reaches from the global `mcp`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reached {
    /// `mcp` itself.
    Mcp,
    /// A server.
    Server(Name),
    /// A tool of a server.
    Tool(Name, Name),
}

/// Resolves expressions through constants, aliases and destructuring.
pub(super) struct Resolver<'s, 'a> {
    pub(super) semantic: &'s Semantic<'a>,
}

impl<'s, 'a> Resolver<'s, 'a> {
    /// What `expression` reaches, or `None` if it is not a member of `mcp`.
    pub(super) fn reached(&self, expression: &Expression<'a>) -> Option<Reached> {
        self.reached_within(expression, ALIAS_DEPTH)
    }

    fn reached_within(&self, expression: &Expression<'a>, depth: u32) -> Option<Reached> {
        let depth = depth.checked_sub(1)?;
        match plain(expression) {
            Expression::Identifier(identifier) => self.identifier(identifier, depth),
            Expression::StaticMemberExpression(member) => {
                let name = member.property.name.as_str();
                if name == "mcp" && self.is_global(plain(&member.object), "globalThis") {
                    return Some(Reached::Mcp);
                }
                step(self.reached_within(&member.object, depth)?, Name::Known(name.to_owned()))
            }
            Expression::ComputedMemberExpression(member) => {
                let name = self.text(&member.expression, depth).map_or(Name::Computed, Name::Known);
                step(self.reached_within(&member.object, depth)?, name)
            }
            Expression::ChainExpression(chain) => {
                let member = chain.expression.as_member_expression()?;
                let name = match member {
                    oxc_ast::ast::MemberExpression::StaticMemberExpression(member) => {
                        Name::Known(member.property.name.as_str().to_owned())
                    }
                    oxc_ast::ast::MemberExpression::ComputedMemberExpression(member) => {
                        self.text(&member.expression, depth).map_or(Name::Computed, Name::Known)
                    }
                    oxc_ast::ast::MemberExpression::PrivateFieldExpression(_) => return None,
                };
                step(self.reached_within(member.object(), depth)?, name)
            }
            _ => None,
        }
    }

    fn is_global(&self, expression: &Expression<'a>, name: &str) -> bool {
        let Expression::Identifier(identifier) = expression else { return false };
        identifier.name.as_str() == name && self.symbol(identifier).is_none()
    }

    /// The declared symbol of an identifier; `None` for a global.
    pub(super) fn symbol(&self, identifier: &IdentifierReference<'a>) -> Option<SymbolId> {
        let scoping = self.semantic.scoping();
        scoping.get_reference(identifier.reference_id.get()?).symbol_id()
    }

    fn identifier(&self, identifier: &IdentifierReference<'a>, depth: u32) -> Option<Reached> {
        let is_mcp = identifier.name.as_str() == "mcp";
        let Some(symbol) = self.symbol(identifier) else { return is_mcp.then_some(Reached::Mcp) };
        // `declare const mcp: …` only names the global.
        if is_mcp && self.semantic.scoping().symbol_flags(symbol).contains(SymbolFlags::Ambient) {
            return Some(Reached::Mcp);
        }
        let (pattern, init) = self.declared(symbol)?;
        let keys = self.keys(pattern, symbol, depth)?;
        keys.into_iter().try_fold(self.reached_within(init, depth)?, step)
    }

    /// The pattern and the initial value of a variable that nothing assigns later.
    fn declared(&self, symbol: SymbolId) -> Option<(&'s BindingPattern<'a>, &'s Expression<'a>)> {
        let scoping = self.semantic.scoping();
        if scoping.symbol_is_mutated(symbol) || !scoping.symbol_redeclarations(symbol).is_empty() {
            return None;
        }
        match self.semantic.symbol_declaration(symbol).kind() {
            AstKind::VariableDeclarator(declarator) => Some((&declarator.id, declarator.init.as_ref()?)),
            _ => None,
        }
    }

    /// The keys that lead from the initial value to the variable: `const { fs: { read } } = mcp` gives `fs`, `read`.
    fn keys(&self, pattern: &BindingPattern<'a>, symbol: SymbolId, depth: u32) -> Option<Vec<Name>> {
        match pattern {
            BindingPattern::BindingIdentifier(identifier) => {
                (identifier.symbol_id.get() == Some(symbol)).then(Vec::new)
            }
            BindingPattern::AssignmentPattern(assignment) => self.keys(&assignment.left, symbol, depth),
            BindingPattern::ObjectPattern(object) => object.properties.iter().find_map(|property| {
                let mut keys =
                    vec![self.key(&property.key, property.computed, depth).map_or(Name::Computed, Name::Known)];
                keys.extend(self.keys(&property.value, symbol, depth)?);
                Some(keys)
            }),
            BindingPattern::ArrayPattern(_) => None,
        }
    }

    /// The text of a property key.
    pub(super) fn key(&self, key: &PropertyKey<'a>, computed: bool, depth: u32) -> Option<String> {
        match key {
            PropertyKey::StaticIdentifier(name) => Some(name.name.as_str().to_owned()),
            PropertyKey::PrivateIdentifier(_) => None,
            PropertyKey::NumericLiteral(number) => Some(number.value.to_string()),
            _ if computed => self.text(key.as_expression()?, depth),
            _ => match key.as_expression()? {
                Expression::StringLiteral(text) => Some(text.value.as_str().to_owned()),
                _ => None,
            },
        }
    }

    /// The text of a constant expression: literals, templates without parts, constants, sums of them.
    pub(super) fn text(&self, expression: &Expression<'a>, depth: u32) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        match plain(expression) {
            Expression::StringLiteral(text) if !text.lone_surrogates => Some(text.value.as_str().to_owned()),
            Expression::TemplateLiteral(template) if template.expressions.is_empty() => {
                let quasi = template.quasis.first()?;
                if quasi.lone_surrogates { None } else { Some(quasi.value.cooked.as_ref()?.as_str().to_owned()) }
            }
            Expression::BinaryExpression(sum) if sum.operator == BinaryOperator::Addition => {
                Some(self.text(&sum.left, depth)? + &self.text(&sum.right, depth)?)
            }
            Expression::Identifier(_) => self.text(self.constant(expression)?, depth),
            _ => None,
        }
    }

    /// The initial value of a plain constant: `const name = …`.
    pub(super) fn constant(&self, expression: &Expression<'a>) -> Option<&'s Expression<'a>> {
        let Expression::Identifier(identifier) = plain(expression) else { return None };
        let (pattern, init) = self.declared(self.symbol(identifier)?)?;
        matches!(pattern, BindingPattern::BindingIdentifier(_)).then_some(init)
    }

    /// The span of the function that an identifier names.
    pub(super) fn function(&self, callee: &Expression<'a>) -> Option<(u32, u32)> {
        let Expression::Identifier(identifier) = plain(callee) else { return None };
        let symbol = self.symbol(identifier)?;
        let span = match self.semantic.symbol_declaration(symbol).kind() {
            AstKind::Function(function) => function.span,
            AstKind::VariableDeclarator(declarator) => declarator.span,
            AstKind::Class(class) => class.span,
            _ => return None,
        };
        Some((span.start, span.end))
    }
}

/// The expression without parentheses and without syntax that only concerns types.
pub(super) fn plain<'e, 'a>(expression: &'e Expression<'a>) -> &'e Expression<'a> {
    let mut expression = expression;
    loop {
        expression = match expression {
            Expression::ParenthesizedExpression(inner) => &inner.expression,
            Expression::TSAsExpression(inner) => &inner.expression,
            Expression::TSSatisfiesExpression(inner) => &inner.expression,
            Expression::TSNonNullExpression(inner) => &inner.expression,
            Expression::TSTypeAssertion(inner) => &inner.expression,
            Expression::TSInstantiationExpression(inner) => &inner.expression,
            _ => return expression,
        };
    }
}

fn step(reached: Reached, name: Name) -> Option<Reached> {
    match reached {
        Reached::Mcp => Some(Reached::Server(name)),
        Reached::Server(server) => Some(Reached::Tool(server, name)),
        Reached::Tool(..) => None,
    }
}
