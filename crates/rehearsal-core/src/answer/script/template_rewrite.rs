//! Rewrites a template so that every operation that makes a value is a filter, which can be limited.
//!
//! ```text
//! {% set x = x ~ x %}   ──parse──► syntax tree ──print──►   {% set x = x|__concat(x) %}
//! ```
//!
//! The template engine calls filters and a formatter of ours, but computes `~`, `+`, `*`, slices and literals itself,
//! and writes raw text itself. After this rewriting every operation that makes a value is a filter of
//! [`template_limits`](super::template_limits). The engine also has no constants to compute while it compiles.

use minijinja::Error;
use minijinja::machinery::ast::{BinOpKind, Call, CallArg, CompareOpKind, Expr, Stmt, UnaryOpKind};
use minijinja::machinery::{ast, parse};
use minijinja::syntax::SyntaxConfig;

/// Returns the source of an equal template whose operations are filters.
pub(super) fn rewritten(source: &str, syntax: SyntaxConfig) -> Result<String, Error> {
    let tree = parse(source, "template", syntax)?;
    let mut out = String::with_capacity(source.len() * 2);
    statement(&tree, &mut out);
    Ok(out)
}

fn statements(body: &[Stmt<'_>], out: &mut String) {
    for child in body {
        statement(child, out);
    }
}

fn statement(written: &Stmt<'_>, out: &mut String) {
    match written {
        Stmt::Template(template) => statements(&template.children, out),
        Stmt::EmitExpr(emit) => out.push_str(&format!("{{{{ {} }}}}", expression(&emit.expr))),
        Stmt::EmitRaw(emit) => out.push_str(&format!("{{{{ {} }}}}", quoted(emit.raw))),
        Stmt::ForLoop(each) => {
            let (target, list) = (target(&each.target), operand(&each.iter));
            let condition = each.filter_expr.as_ref().map(|expr| format!(" if {}", operand(expr))).unwrap_or_default();
            let recursive = if each.recursive { " recursive" } else { "" };
            out.push_str(&format!("{{% for {target} in {list}|__each{condition}{recursive} %}}"));
            statements(&each.body, out);
            if !each.else_body.is_empty() {
                out.push_str("{% else %}");
                statements(&each.else_body, out);
            }
            out.push_str("{% endfor %}");
        }
        Stmt::IfCond(first) => {
            let mut keyword = "if";
            let mut condition = first;
            loop {
                out.push_str(&format!("{{% {keyword} {} %}}", expression(&condition.expr)));
                statements(&condition.true_body, out);
                // `elif` is not nested, so that a long chain stays within the nesting that the parser accepts.
                let [Stmt::IfCond(next)] = &condition.false_body[..] else { break };
                (keyword, condition) = ("elif", next);
            }
            if !condition.false_body.is_empty() {
                out.push_str("{% else %}");
                statements(&condition.false_body, out);
            }
            out.push_str("{% endif %}");
        }
        Stmt::WithBlock(with) => {
            let assign = |(name, value): &(Expr<'_>, Expr<'_>)| format!("{} = {}", target(name), operand(value));
            let assigned: Vec<_> = with.assignments.iter().map(assign).collect();
            out.push_str(&format!("{{% with {} %}}", assigned.join(", ")));
            statements(&with.body, out);
            out.push_str("{% endwith %}");
        }
        Stmt::Set(set) => {
            let value = if sets_attribute(&set.target) { as_held(&set.expr) } else { operand(&set.expr) };
            out.push_str(&format!("{{% set {} = {value} %}}", target(&set.target)));
        }
        Stmt::SetBlock(set) => {
            let filter = set.filter.as_ref().map(|chain| format!(" | {}", filters(chain))).unwrap_or_default();
            out.push_str(&format!("{{% set {}{filter} %}}", target(&set.target)));
            statements(&set.body, out);
            out.push_str("{% endset %}");
        }
        Stmt::AutoEscape(escape) => {
            out.push_str(&format!("{{% autoescape {} %}}", expression(&escape.enabled)));
            statements(&escape.body, out);
            out.push_str("{% endautoescape %}");
        }
        Stmt::FilterBlock(block) => {
            out.push_str(&format!("{{% filter {} %}}", filters(&block.filter)));
            statements(&block.body, out);
            out.push_str("{% endfilter %}");
        }
        Stmt::Continue(_) => out.push_str("{% continue %}"),
        Stmt::Break(_) => out.push_str("{% break %}"),
        Stmt::Do(call) => out.push_str(&format!("{{% do {} %}}", called(&call.call))),
    }
}

/// The target of a `set`, `for` or `with`.
fn target(written: &Expr<'_>) -> String {
    match written {
        Expr::List(list) => match &list.items[..] {
            [one] => format!("({},)", target(one)),
            items => format!("({})", items.iter().map(target).collect::<Vec<_>>().join(", ")),
        },
        Expr::GetAttr(attribute) => format!("{}.{}", target(&attribute.expr), attribute.name),
        other => expression(other),
    }
}

/// True if a `set` assigns to an attribute, which only a namespace has.
fn sets_attribute(target: &Expr<'_>) -> bool {
    match target {
        Expr::List(list) => list.items.iter().any(sets_attribute),
        target => matches!(target, Expr::GetAttr(_)),
    }
}

/// An expression in parentheses, unless it needs none beside an operator or in front of a filter.
fn operand(written: &Expr<'_>) -> String {
    match written {
        Expr::UnaryOp(_) | Expr::Compare(_) | Expr::IfExpr(_) | Expr::Test(_) => format!("({})", expression(written)),
        Expr::BinOp(binary) if filter_of(binary.op).is_none() => format!("({})", expression(written)),
        _ => expression(written),
    }
}

/// An expression in parentheses, unless an attribute, an item or a call can follow it.
fn base(written: &Expr<'_>) -> String {
    match written {
        Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) | Expr::Call(_) => expression(written),
        _ => format!("({})", expression(written)),
    }
}

fn expression(written: &Expr<'_>) -> String {
    match written {
        Expr::Var(variable) => variable.id.to_owned(),
        Expr::Const(constant) => match constant.value.as_str() {
            Some(text) => quoted(text),
            None => constant.value.to_string(),
        },
        Expr::Slice(slice) => {
            let bound = |bound: &Option<Expr<'_>>| bound.as_ref().map_or_else(|| "none".to_owned(), expression);
            let (start, stop, step) = (bound(&slice.start), bound(&slice.stop), bound(&slice.step));
            format!("{}|__slice({start}, {stop}, {step})", operand(&slice.expr))
        }
        Expr::UnaryOp(unary) => {
            let operator = match unary.op {
                UnaryOpKind::Not => "not ",
                UnaryOpKind::Neg => "-",
            };
            format!("{operator}{}", operand(&unary.expr))
        }
        Expr::BinOp(binary) => operation(binary),
        Expr::Compare(compare) => {
            let mut out = format!("{}|__text", operand(&compare.expr));
            for part in &compare.ops {
                out.push_str(&format!(" {} {}|__text", comparison(part.op), operand(&part.expr)));
            }
            out
        }
        Expr::IfExpr(choice) => {
            let (value, condition) = (operand(&choice.true_expr), operand(&choice.test_expr));
            let otherwise = choice.false_expr.as_ref().map(|expr| format!(" else {}", operand(expr)));
            format!("{value} if {condition}{}", otherwise.unwrap_or_default())
        }
        Expr::Filter(_) => filters(written),
        Expr::Test(test) => format!("{} is {}{}", operand(&test.expr), test.name, in_parentheses(&test.args)),
        Expr::GetAttr(attribute) => format!("{}.{}", base(&attribute.expr), attribute.name),
        Expr::GetItem(item) => format!("{}[{}]", base(&item.expr), expression(&item.subscript_expr)),
        Expr::Call(call) => called(call),
        Expr::List(list) => format!("[{}]|__made", listed(&list.items)),
        Expr::Tuple(tuple) => match &tuple.items[..] {
            [] => "()".to_owned(),
            items => format!("({},)|__made", listed(items)),
        },
        Expr::Map(map) => {
            let pairs = map.keys.iter().zip(&map.values);
            let pairs: Vec<_> =
                pairs.map(|(key, value)| format!("{}: {}", expression(key), expression(value))).collect();
            format!("{{{}}}|__made", pairs.join(", "))
        }
    }
}

fn listed(items: &[Expr<'_>]) -> String {
    items.iter().map(expression).collect::<Vec<_>>().join(", ")
}

fn operation(binary: &ast::BinOp<'_>) -> String {
    // A long `a ~ b ~ c` is a deep tree to the left. It is walked in a loop, and printed flat, so that it needs neither
    // the stack nor more nesting than the parser accepts.
    let mut rights = Vec::new();
    let mut leftmost = binary;
    let first = loop {
        rights.push((leftmost.op, &leftmost.right));
        match &leftmost.left {
            Expr::BinOp(left) if is_flat(left.op, leftmost.op) => leftmost = left,
            left => break left,
        }
    };
    let mut out = operand(first);
    for (operator, right) in rights.into_iter().rev() {
        match filter_of(operator) {
            Some(filter) => out.push_str(&format!("|{filter}({})", expression(right))),
            None => out.push_str(&format!(" {} {}", operator_text(operator), operand(right))),
        }
    }
    out
}

/// True if the left operand of an operator needs no parentheses, because it has this operator.
fn is_flat(left: BinOpKind, operator: BinOpKind) -> bool {
    match (left, operator) {
        (BinOpKind::ScAnd, BinOpKind::ScAnd) | (BinOpKind::ScOr, BinOpKind::ScOr) => true,
        (left, operator) => filter_of(left).is_some() && filter_of(operator).is_some(),
    }
}

/// The filter that an operator is printed as.
fn filter_of(operator: BinOpKind) -> Option<&'static str> {
    match operator {
        BinOpKind::Add => Some("__add"),
        BinOpKind::Concat => Some("__concat"),
        BinOpKind::Mul => Some("__repeat"),
        BinOpKind::In => Some("__in"),
        _ => None,
    }
}

fn operator_text(operator: BinOpKind) -> &'static str {
    match operator {
        BinOpKind::ScAnd => "and",
        BinOpKind::ScOr => "or",
        BinOpKind::Eq => "==",
        BinOpKind::Ne => "!=",
        BinOpKind::Lt => "<",
        BinOpKind::Lte => "<=",
        BinOpKind::Gt => ">",
        BinOpKind::Gte => ">=",
        BinOpKind::Add => "+",
        BinOpKind::Sub => "-",
        BinOpKind::Mul => "*",
        BinOpKind::Div => "/",
        BinOpKind::FloorDiv => "//",
        BinOpKind::Rem => "%",
        BinOpKind::Pow => "**",
        BinOpKind::Concat => "~",
        BinOpKind::In => "in",
    }
}

fn comparison(operator: CompareOpKind) -> &'static str {
    match operator {
        CompareOpKind::Eq => "==",
        CompareOpKind::Ne => "!=",
        CompareOpKind::Lt => "<",
        CompareOpKind::Lte => "<=",
        CompareOpKind::Gt => ">",
        CompareOpKind::Gte => ">=",
        CompareOpKind::In => "in",
        CompareOpKind::NotIn => "not in",
    }
}

/// A chain of filters, with the value in front if there is one: the chain of a block has none.
fn filters(written: &Expr<'_>) -> String {
    let Expr::Filter(filter) = written else { return operand(written) };
    let before = filter.expr.as_ref().map(|expr| format!("{}|", filters(expr))).unwrap_or_default();
    format!("{before}{}{}", filter.name, in_parentheses(&filter.args))
}

fn called(call: &Call<'_>) -> String {
    let arguments = if call.args.is_empty() { "()".to_owned() } else { in_parentheses(&call.args) };
    format!("{}{arguments}", base(&call.expr))
}

/// A value that a namespace or an argument holds. A literal and the result of an operator were measured already.
fn as_held(value: &Expr<'_>) -> String {
    match value {
        Expr::Const(_) | Expr::Slice(_) | Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => expression(value),
        Expr::BinOp(binary) if filter_of(binary.op).is_some() => expression(value),
        _ => format!("{}|__held", operand(value)),
    }
}

/// Arguments in parentheses, and nothing if there are none.
fn in_parentheses(arguments: &[CallArg<'_>]) -> String {
    let print = |argument: &CallArg<'_>| match argument {
        CallArg::Pos(value) => as_held(value),
        CallArg::Kwarg(name, value) => format!("{name}={}", as_held(value)),
        CallArg::PosSplat(value) => format!("*{}|__made", operand(value)),
        CallArg::KwargSplat(value) => format!("**{}|__made", operand(value)),
    };
    match arguments {
        [] => String::new(),
        arguments => format!("({})", arguments.iter().map(print).collect::<Vec<_>>().join(", ")),
    }
}

/// A text as a literal of a template.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_that_makes_a_value_becomes_a_filter() {
        for (written, expected) in [
            ("a {{ x }}", r#"{{ "a " }}{{ x }}"#),
            ("{% set x = x ~ x ~ 'a' %}", r#"{% set x = x|__concat(x)|__concat("a") %}"#),
            ("{% set x.y = z %}", "{% set x.y = z|__held %}"),
            ("{% set x.y = x.y + 1 %}", "{% set x.y = x.y|__add(1) %}"),
            ("{{ a + b * c - d }}", "{{ a|__add(b|__repeat(c)) - d }}"),
            ("{{ (a + b).c[1:2] }}", "{{ (a|__add(b)).c|__slice(1, 2, none) }}"),
            ("{{ -a ** 2 }}", "{{ (-a) ** 2 }}"),
            ("{{ [1, 'a\"'] }}", r#"{{ [1, "a\""]|__made }}"#),
            ("{{ a and b and not c or d }}", "{{ (a and b and (not c)) or d }}"),
            ("{{ 1 if a in b else 2 }}", "{{ 1 if a|__in(b) else 2 }}"),
            (
                "{% for a, b in c|items if a %}x{% else %}y{% endfor %}",
                concat!("{% for (a, b) in c|items|__each if a %}", r#"{{ "x" }}{% else %}{{ "y" }}{% endfor %}"#),
            ),
            ("{% if a %}{% elif b %}{% else %}c{% endif %}", r#"{% if a %}{% elif b %}{% else %}{{ "c" }}{% endif %}"#),
            (
                "{% filter upper|replace('a', b) %}c{% endfilter %}",
                concat!(r#"{% filter upper|replace("a", b|__held) %}"#, r#"{{ "c" }}{% endfilter %}"#),
            ),
            ("{{ loop(x.y(*a, b=1)) }}", "{{ loop(x.y(*a|__made, b=1)|__held) }}"),
        ] {
            assert_eq!(rewritten(written, SyntaxConfig::default()).unwrap(), expected, "{written}");
        }
    }
}
