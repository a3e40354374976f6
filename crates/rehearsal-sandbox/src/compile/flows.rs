//! Which computed values a part of the source may use, through variables. Order and scope of assignments do not count.

use std::collections::{BTreeSet, HashMap};

use oxc_ast::ast::{Expression, IdentifierReference};
use oxc_ast_visit::Visit;
use oxc_semantic::SymbolId;
use oxc_span::GetSpan;

use super::names::{Resolver, plain};

/// What a part of the source uses.
#[derive(Debug, Clone, Default)]
pub(super) struct Uses {
    pub(super) symbols: Vec<SymbolId>,
    /// The derivations in the part itself, by site.
    pub(super) derivations: Vec<usize>,
}

/// What the variables of a plan and its decisions use.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// What the values of a variable use.
    variables: HashMap<SymbolId, Vec<Uses>>,
    /// What decisions use, by site.
    pub(super) uses: Vec<(usize, Uses)>,
    /// What arguments of tools use, by the start of the call and the name of the argument.
    pub(super) arguments: Vec<((u32, String), Uses)>,
}

impl Flows {
    /// Notes a value of variables.
    pub(super) fn define(&mut self, variables: Vec<SymbolId>, derivation: Option<usize>, mut uses: Uses) {
        uses.derivations.extend(derivation);
        for variable in variables {
            self.variables.entry(variable).or_default().push(uses.clone());
        }
    }

    /// The derivations whose values may be used, directly or through variables.
    pub(super) fn derivations(&self, uses: &Uses) -> Vec<u32> {
        let mut found: BTreeSet<usize> = uses.derivations.iter().copied().collect();
        let mut seen: BTreeSet<SymbolId> = BTreeSet::new();
        let mut open: Vec<SymbolId> = uses.symbols.clone();
        while let Some(symbol) = open.pop() {
            if seen.insert(symbol) {
                for value in self.variables.get(&symbol).into_iter().flatten() {
                    found.extend(&value.derivations);
                    open.extend(&value.symbols);
                }
            }
        }
        found.into_iter().filter_map(|site| u32::try_from(site).ok()).collect()
    }
}

/// The variables that an expression names, also in functions in it.
pub(super) fn symbols<'a>(resolver: &Resolver<'_, 'a>, expression: &Expression<'a>) -> Uses {
    struct Names<'r, 's, 'a>(&'r Resolver<'s, 'a>, Vec<SymbolId>);

    impl<'a> Visit<'a> for Names<'_, '_, 'a> {
        fn visit_identifier_reference(&mut self, name: &IdentifierReference<'a>) {
            self.1.extend(self.0.symbol(name));
        }
    }

    let mut names = Names(resolver, Vec::new());
    names.visit_expression(expression);
    Uses { symbols: names.1, derivations: Vec::new() }
}

/// The names of variables that an expression uses and does not declare itself.
pub(super) fn names<'a>(resolver: &Resolver<'_, 'a>, expression: &Expression<'a>) -> BTreeSet<String> {
    let (span, scoping) = (expression.span(), resolver.semantic.scoping());
    let is_outside = |symbol: &SymbolId| {
        let declared = scoping.symbol_span(*symbol).start;
        !(span.start <= declared && declared < span.end)
    };
    let symbols = symbols(resolver, expression).symbols.into_iter().filter(is_outside);
    symbols.map(|symbol| scoping.symbol_name(symbol).to_owned()).collect()
}

/// Whether a value is computed: not a literal, a name, a member of a name, a function, or the result of a call of a tool.
pub(super) fn is_derivation(expression: &Expression<'_>) -> bool {
    match plain(expression) {
        Expression::CallExpression(_)
        | Expression::NewExpression(_)
        | Expression::ChainExpression(_)
        | Expression::BinaryExpression(_)
        | Expression::LogicalExpression(_)
        | Expression::ConditionalExpression(_)
        | Expression::TemplateLiteral(_)
        | Expression::UnaryExpression(_)
        | Expression::ArrayExpression(_)
        | Expression::ObjectExpression(_)
        | Expression::ComputedMemberExpression(_) => true,
        Expression::StaticMemberExpression(member) => is_derivation(&member.object),
        _ => false,
    }
}
