//! Documents use the words of the protocol, and their links lead to files.
//!
//! Code blocks, inline code and link targets are not prose. A line with `words: allow` is skipped.

use std::path::Path;

use regex::{Captures, Regex, RegexBuilder};

use crate::docs::documents;

/// One pattern for each habit that must not come back.
const WORDS: [&str; 27] = [
    r"\b(no|some|any|every)body\b|\bwho(so)?ever('s)?\b",
    r"\b(said|told|tells?|telling|untold|unsaid|retold)\b",
    r"\bsays?\b",
    r"\b(over|un)?hear(s|d)?\b|\bears?\b|\bmouth\b",
    r"\b(speaks?|spoke|spoken)\b",
    r"\bask(s|ed|ing)?\b",
    r"\bquestions?\b",
    r"\bhal(f|ves) (of )?(a )?letters?\b",
    r"\blets? (\w+ )?in\b",
    r"\banew\b",
    r"\bsen(d|ds|t|ding) (\w+ )?away\b",
    r"\b(giv(e|es|en|ing)|gave) (\w+ )?up\b",
    r"\bin hand\b",
    r"\b(tak(e|es|en|ing)|took) (\w+ )?out\b",
    r"\bpass(ed|es|ing)? over\b",
    r"\b(held|holds?|holding) (\w+ )?against\b",
    r"\bas (it|they) (was|were|came)\b|\b(did|asked|took|gave|sent|was) once\b|\bonce (did|asked|took|gave|sent|had|heard)\b",
    r"\b(what|whatever) (comes?|came|becomes?|became) of\b",
    r"\bwant(s|ed)?\b",
    r"\bmisdeed|misstep|\bwreck|last words|good.?bye|misbehav",
    r"\bthings?\b",
    r"\bin (its |our |their |the )?(own )?words\b",
    r"\b(dies|died|dead|lives|born)\b|\b(hang|hangs|hung) up\b",
    r"\b(pictures?|strangers?)\b|\bsounds\b",
    r"\breal servers?\b|\bgo(es)? on\b|\bgoing on\b|\bby (itself|themselves)\b",
    r"\ball the same\b|\bnone of (its|our|their) business\b|\bon (its|their) way\b",
    r"\b(is|are) none\b",
];

#[test]
fn documents_use_the_words_of_the_protocol() {
    let code = Regex::new(r"(?ms)^ *```.*?^ *```$|``[^\n]+?``|`[^`\n]*`|\]\([^)\n]*\)").unwrap();
    let words = RegexBuilder::new(&WORDS.join("|")).case_insensitive(true).build().unwrap();
    let mut found = String::new();
    for (path, text) in documents() {
        // It repeats what the program prints; another test compares it with that.
        if path.ends_with("matchers.md") {
            continue;
        }
        let prose = code.replace_all(&text, |code: &Captures<'_>| "\n".repeat(code[0].matches('\n').count()));
        for (number, line) in prose.lines().enumerate().filter(|(_, line)| !line.contains("words: allow")) {
            for word in words.find_iter(line) {
                found += &format!("{}:{}: {}\n", path.display(), number + 1, word.as_str());
            }
        }
    }
    assert!(found.is_empty(), "{found}the glossary (docs/concepts/glossary.md) has the terms to use");
}

#[test]
fn docs_link_to_files_that_exist() {
    let link = Regex::new(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)").unwrap();
    for (path, text) in documents() {
        for found in link.captures_iter(&text) {
            let target = path.parent().unwrap().join(&found[1]);
            assert!(target.exists(), "{}: no file {}", path.display(), &found[1]);
        }
    }
}

#[test]
fn pages_that_promise_no_orphaned_process_name_the_exception() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in ["README.md", "ARCHITECTURE.md", "docs/reference/exit-status.md"] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        assert!(text.contains("setsid"), "{page}");
    }
}
