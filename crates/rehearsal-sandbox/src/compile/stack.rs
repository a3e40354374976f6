//! The stack that compiling a source can need: the parser and its visitors are recursive, and a plan is not trusted.
//!
//! No exact nesting can be known without parsing, so the stack is made large enough for the worst source of the same
//! length and the same number of brackets. It is reserved, and used only as far as the source is really nested.

/// The longest source that is compiled.
pub const MAX_SOURCE_BYTES: usize = 128 * 1024;

/// The most brackets that a source can have.
pub(super) const MAX_BRACKETS: usize = 12_000;

/// Stack of one level of brackets: the parser descends through all precedences (measured by the tests below).
const BRACKET_BYTES: usize = if cfg!(debug_assertions) { 24 * 1024 } else { 8 * 1024 };

/// Stack of one byte of other source; the densest nesting is a chain of `!`, `- -` or `a=>`.
const SOURCE_BYTES: usize = if cfg!(debug_assertions) { 4096 } else { 1536 };

/// The stack needed for `source`, or `None` if it has too many brackets.
pub(super) fn stack_bytes(source: &str) -> Option<usize> {
    let brackets = source.bytes().filter(|byte| matches!(byte, b'(' | b'[' | b'{' | b'<')).count();
    (brackets <= MAX_BRACKETS).then_some(1024 * 1024 + brackets * BRACKET_BYTES + source.len() * SOURCE_BYTES)
}

#[cfg(test)]
mod tests {
    use crate::compile::compile;

    #[test]
    fn the_deepest_sources_end_in_a_result_not_in_a_stack_overflow() {
        let patterns = [
            ("(", "1", ")"),
            ("[", "", "]"),
            ("{", "", "}"),
            ("f(", "1", ")"),
            ("(()=>{", "", "})"),
            ("`${", "1", "}`"),
            ("let x: A<", "B", ">"),
            ("!", "1", ""),
            ("- ", "1", ""),
            ("a=>", "1", ""),
            ("a=", "1", ""),
            ("1?1:", "1", ""),
            ("1+", "1", ""),
            ("1**", "1", ""),
            ("a.", "a", ""),
            ("a?.", "a", ""),
            ("if(1);else ", "1", ""),
            ("await ", "1", ""),
            ("new ", "A", ""),
            ("a:", "1", ""),
            ("(", "", ""),
            ("a", "()", ""),
            ("x=>{", "", "}"),
            ("function a(){", "", "}"),
            ("class A{a=", "1", "}"),
            ("if(1)", "1", ""),
            ("[a=", "b", "]=c"),
            ("typeof ", "1", ""),
        ];
        for (open, middle, close) in patterns {
            let bracket = open.contains(['(', '[', '{', '<']);
            let count = if bracket { super::MAX_BRACKETS / 2 } else { super::MAX_SOURCE_BYTES };
            let count = count.min((super::MAX_SOURCE_BYTES - 10) / (open.len() + close.len()).max(1));
            let source = format!("{}{middle}{}", open.repeat(count), close.repeat(count));
            drop(compile("plan.ts", &source));
        }
    }
}
