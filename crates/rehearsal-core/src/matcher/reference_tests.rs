//! Compares `docs/reference/matchers.md` with the code.
//!
//! ```text
//! matcher: {"contains": "rain"}
//! value:   "sun"
//! differs: $: expected something containing "rain", got "sun"
//! ```
//!
//! A value without `differs` matches; `error` and `hint` follow a matcher that is rejected.

use super::matcher::Matcher;
use super::mismatch_sink::Mismatch;
use super::parse;

const REFERENCE: &str = include_str!("../../../../docs/reference/matchers.md");

struct Example {
    value: String,
    mismatches: Vec<String>,
}

fn blocks() -> impl Iterator<Item = &'static str> {
    let fenced = REFERENCE.split("```text\n").skip(1);
    fenced.map(|rest| rest.split("```").next().unwrap()).filter(|block| block.starts_with("matcher:"))
}

fn check_block(block: &str) {
    let mut matcher = None;
    let mut error = None;
    let mut examples: Vec<Example> = Vec::new();
    for line in block.lines().filter(|line| !line.is_empty()) {
        let (label, rest) = line.split_once(':').unwrap();
        let rest = rest.trim();
        match label {
            "matcher" => match Matcher::parse(&serde_json::from_str(rest).expect(rest)) {
                Ok(read) => matcher = Some(read),
                Err(refused) => error = Some(refused),
            },
            "value" => examples.push(Example { value: rest.to_owned(), mismatches: Vec::new() }),
            "differs" => examples.last_mut().unwrap().mismatches.push(rest.to_owned()),
            "error" => assert_eq!(error.as_ref().expect(block).to_string(), rest),
            "hint" => assert_eq!(error.as_ref().unwrap().hint.as_deref(), Some(rest)),
            other => panic!("unknown label {other} in\n{block}"),
        }
    }
    if error.is_some() {
        assert!(block.contains("error:"), "{error:?} in\n{block}");
    }
    for Example { value, mismatches } in examples {
        let value = serde_json::from_str(&value).expect(&value);
        let found = matcher.as_ref().unwrap().check(&value);
        let found: Vec<_> = found.iter().map(Mismatch::to_string).collect();
        assert_eq!(found, mismatches, "{value} in\n{block}");
    }
}

#[test]
fn every_example_in_the_reference_holds() {
    assert!(blocks().count() > 15);
    blocks().for_each(check_block);
}

#[test]
fn every_operator_is_in_the_reference_with_an_example() {
    for word in parse::WORDS {
        let quoted = format!("\"{word}\":");
        let shown = blocks().any(|block| block.contains(&quoted));
        assert!(shown, "{word} has no example");
    }
}
