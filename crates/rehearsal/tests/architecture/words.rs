//! Sources and documents use the terms of MCP, JSON-RPC and HTTP; this is the only list of words to avoid.
//!
//! | scope | text |
//! |---|---|
//! | `Everywhere` | comments, strings and identifiers of Rust, templates, YAML, Markdown, Python, JavaScript |
//! | `Code` | Rust without comments and strings, with upper and lower case |
//! | `Path` | paths of files |
//! | `Documents` | the prose of README.md, ARCHITECTURE.md, CHANGELOG.md, CONTRIBUTING.md and `docs/`, and every `--help` |
//!
//! Identifiers are split at `_` and between cases. JSON is data of other programs: inline code and `json` blocks of Markdown,
//! and lines of raw strings. A line that ends with the marker `words: allow` in a comment is skipped.

use std::path::{Path, PathBuf};

use regex::{Captures, Regex, RegexSet};

use crate::root;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Everywhere,
    Code,
    Path,
    Documents,
}

struct Row {
    number: u8,
    scope: Scope,
    pattern: &'static str,
    instead: &'static str,
}

const fn row(number: u8, scope: Scope, pattern: &'static str, instead: &'static str) -> Row {
    Row { number, scope, pattern, instead }
}

#[rustfmt::skip]
const ROWS: [Row; 31] = [
    row(1, Scope::Everywhere, r"(?i)\b(no|some|any|every)body\b|\bwho(so)?ever('s)?\b", "client, server, caller, user"),
    row(2, Scope::Everywhere, r"(?i)\b(said|told|tells?|telling|untold|unsaid|retold)\b", "sent, returned, reported, logged, printed"),
    row(3, Scope::Documents, r"(?i)\bsays?\b", "contains, states, is"),
    row(4, Scope::Everywhere, r"(?i)\b(over|un)?hear(s|d)?\b|\bears?\b|\bmouth\b", "receive(d)"),
    row(5, Scope::Documents, r"(?i)\b(speaks?|spoke|spoken)\b", "uses version, supports"),
    row(6, Scope::Documents, r"(?i)\bask(s|ed|ing)?\b", "request(s), requested"),
    row(7, Scope::Documents, r"(?i)\bquestions?\b", "request, server request, input request"),
    row(8, Scope::Everywhere, r"(?i)\bhal(f|ves) (of )?(a )?letters?\b|half.letter", "lone surrogate"),
    row(9, Scope::Everywhere, r"(?i)\blets? (\w+ )?in\b", "accepted, authorized, acknowledged"),
    row(10, Scope::Everywhere, r"(?i)\banew\b", "restart, from the start, new"),
    row(11, Scope::Everywhere, r"(?i)\bsen(d|ds|t|ding)[ _](\w+ )?away\b", "`input_required`, input round"),
    row(12, Scope::Everywhere, r"(?i)\b(giv(e|es|en|ing)|gave)[ _](\w+ )?up\b", "cancel, stop, time out"),
    row(13, Scope::Everywhere, r"(?i)\bin hand\b", "active, pending, in flight"),
    row(14, Scope::Everywhere, r"(?i)\b(tak(e|es|en|ing)|took)[ _](\w+ )?out\b", "redact, remove"),
    row(15, Scope::Documents, r"(?i)\bpass(ed|es|ing)? over\b", "ignore, skip"),
    row(16, Scope::Documents, r"(?i)\b(held|holds?|holding) (\w+ )?against\b", "compared with, checked against"),
    row(17, Scope::Documents, r"(?i)\bas (it|they) (was|were|came)\b|\b(did|asked|took|gave|sent|was) once\b|\bonce (did|asked|took|gave|sent|had|heard)\b", "unchanged, as recorded, in the recording"),
    row(18, Scope::Documents, r"(?i)\b(what|whatever) (comes?|came|becomes?|became) of\b", "outcome of, result of"),
    row(19, Scope::Documents, r"(?i)\bwant(s|ed)?\b", "requests, subscribes to, needs"),
    row(20, Scope::Everywhere, r"(?i)misdeed|misstep|\bwreck|aftermath|newsroom|farewell|last[ _]words|good.?bye|\bgrave\b|\bbreath\b|misbehav", "fault terms; timeouts named by purpose"),
    row(21, Scope::Documents, r"(?i)\bthings?\b", "event, entry, item, value"),
    row(24, Scope::Documents, r"(?i)\bin (its |our |their |the )?(own )?words\b", "as text, description, mock-file syntax"),
    row(25, Scope::Documents, r"(?i)\b(dies|died|dead|lives|born)\b|\b(hang|hangs|hung) up\b", "exits, crashes, closed, disconnects"),
    row(26, Scope::Documents, r"(?i)\b(pictures?|strangers?)\b|\bsounds\b", "image, foreign origin, audio"),
    row(28, Scope::Documents, r"(?i)\breal servers?\b|\bgo(es)? on\b|\bgoing on\b|\bby (itself|themselves)\b", "upstream, live server; continues"),
    row(29, Scope::Documents, r"(?i)\ball the same\b|\bnone of (its|our|their) business\b|\bon (its|their) way\b", "still; ignored; being sent"),
    row(30, Scope::Documents, r"(?i)\b(is|are) none\b", "is not one, is absent"),
    row(31, Scope::Code, r"\b(struct|enum|trait|type) (Thing|Live|Standing|Asked|Said|Told|Heard|Begun|Taken|Given|Meant|Rise|Ear|Left|Held|Kept|Found|Seen|Away|Early|Beside|Elsewhere|AtHand|Spoken|Woven|Weave|Tie|Bond|Fate|World|Hello|Moment|Others?|Performance|Scene|Score|Cue|Cast|Act)\b", "a name of the glossary"),
    row(32, Scope::Code, r"\bpub(\([a-z_: ]+\))? (struct|enum|trait|type) (Kind|State|Session|Place|Piece|Next|Options|Limits|Answers|Named|Mark|Source|Target|Key)\b", "a qualified name"),
    // `exchange::Outcome` is the only one.
    row(32, Scope::Code, r"\bpub(\([a-z_: ]+\))? (struct|enum|trait|type) Outcome\b", "a qualified name"),
    row(35, Scope::Path, r"(^|/)(as_heard|about_task|beside|away|looks|put|weave|tie|fate|evidence|likeness|told|wrong|news|half_letter|looked_at|beyond|narrow|elsewhere|at_hand|rise|seal|wanted|given|meant|score|scene|stage|line|held|halves|wreck|ladder|misdeed|misstep|spoil|shelf|spool|orphans)\.rs$", "the type or function in the file"),
];

/// The files that contain the words because they list them.
const EXEMPT: [&str; 1] = ["crates/rehearsal/tests/architecture/words.rs"];

/// The file of the public type `Outcome`.
const OUTCOME: &str = "crates/rehearsal-core/src/exchange/";

/// The rows of some scopes in one `RegexSet`, so that a file without findings is searched once.
struct Words {
    rows: Vec<&'static Row>,
    set: RegexSet,
}

impl Words {
    fn new(is_included: impl Fn(Scope) -> bool) -> Words {
        let rows: Vec<&Row> = ROWS.iter().filter(|row| is_included(row.scope)).collect();
        let set = RegexSet::new(rows.iter().map(|row| row.pattern)).unwrap();
        Words { rows, set }
    }

    /// Reports the findings of a text whose lines are those of the file.
    fn check(&self, path: &str, text: &str, report: &mut String) {
        if !self.set.is_match(text) {
            return;
        }
        for (number, line) in (1..).zip(text.lines()) {
            for index in &self.set.matches(line) {
                let Row { number: row, pattern, instead, .. } = self.rows[index];
                if pattern.contains("Outcome") && path.starts_with(OUTCOME) {
                    continue;
                }
                let word = Regex::new(pattern).unwrap().find(line).unwrap().as_str().to_owned();
                *report += &format!("{path}:{number}: row {row}: `{word}`; use: {instead}\n");
            }
        }
    }
}

/// The parts of Rust that a line can begin in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    /// A `/* */` comment, with its depth.
    Comment(usize),
    String,
    /// A raw string, with the number of its `#`.
    RawString(usize),
}

/// Splits Rust into two texts with as many lines: comments, strings and identifiers, and the code without comments and strings.
fn rust(text: &str) -> (String, String) {
    let mut part = Part::Code;
    let (mut all_words, mut all_code) = (String::new(), String::new());
    for line in text.lines() {
        let begins_in = part;
        let (mut words, mut code) = (String::new(), String::new());
        let characters: Vec<char> = line.chars().collect();
        let mut index = 0;
        while index < characters.len() {
            let rest = &characters[index..];
            let starts_with = |text: &str| text.chars().eq(rest.iter().copied().take(text.chars().count()));
            let mut length = 1;
            match part {
                Part::Code if starts_with("//") => {
                    words.push(';');
                    words.extend(rest);
                    length = rest.len();
                }
                Part::Code if starts_with("/*") => (part, length) = (Part::Comment(1), 2),
                Part::Code if rest[0] == '"' => {
                    part = match hashes_of_raw_string(&characters[..index]) {
                        Some(hashes) => Part::RawString(hashes),
                        None => Part::String,
                    };
                    words.push(';');
                }
                Part::Code if rest[0] == '\'' => length = length_of_quoted_character(rest),
                Part::Code => {
                    code.push(rest[0]);
                    words.push(if rest[0].is_alphanumeric() || rest[0] == '_' { rest[0] } else { ';' });
                }
                Part::Comment(depth) if starts_with("*/") => {
                    (part, length) = (if depth == 1 { Part::Code } else { Part::Comment(depth - 1) }, 2);
                }
                Part::Comment(depth) if starts_with("/*") => (part, length) = (Part::Comment(depth + 1), 2),
                Part::String if rest[0] == '\\' => {
                    words.push(' ');
                    length = 2;
                }
                Part::String if rest[0] == '"' => {
                    words.push(';');
                    part = Part::Code;
                }
                Part::RawString(hashes) if starts_with(&format!("\"{}", "#".repeat(hashes))) => {
                    words.push(';');
                    (part, length) = (Part::Code, 1 + hashes);
                }
                Part::Comment(_) | Part::String | Part::RawString(_) => words.push(rest[0]),
            }
            index += length;
        }
        if !(matches!(begins_in, Part::RawString(_)) && is_json(line) || is_allowed(line)) {
            all_words += &split_identifiers(&words);
            all_code += &code;
        }
        all_words.push('\n');
        all_code.push('\n');
    }
    (all_words, all_code)
}

/// The number of `#` in `r#"`, if the code before a `"` makes it the start of a raw string.
fn hashes_of_raw_string(before: &[char]) -> Option<usize> {
    let hashes = before.iter().rev().take_while(|character| **character == '#').count();
    let prefix: String = before[..before.len() - hashes].iter().rev().take(3).collect();
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    let after = prefix.strip_prefix('r')?.trim_start_matches(['b', 'c']);
    (!after.starts_with(is_name)).then_some(hashes)
}

/// The length of `'x'` or `'\n'`, or 1 for the `'` of a lifetime.
fn length_of_quoted_character(rest: &[char]) -> usize {
    match rest {
        ['\'', '\\', ..] => rest.iter().skip(3).position(|character| *character == '\'').map_or(1, |end| end + 4),
        ['\'', _, '\'', ..] => 3,
        _ => 1,
    }
}

/// Whether a line of a raw string is JSON: a message, a message of a transcript, or a member.
fn is_json(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches("> ").trim_start_matches("< ");
    let is_member = line.strip_prefix('"').and_then(|rest| rest.split_once('"'));
    line.starts_with("{\"") || line.starts_with("[{") || is_member.is_some_and(|(_, rest)| rest.starts_with(':'))
}

fn is_allowed(line: &str) -> bool {
    let line = line.trim_end();
    line.ends_with("// words: allow") || line.ends_with("# words: allow") || line.ends_with("<!-- words: allow -->")
}

/// Puts spaces between the words of `snake_case` and `camelCase`.
fn split_identifiers(text: &str) -> String {
    let mut split = String::with_capacity(text.len() + 16);
    let mut before = ' ';
    for character in text.chars() {
        if character.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            split.push(' ');
        }
        split.push(if character == '_' { ' ' } else { character });
        before = character;
    }
    split
}

/// A text with as many lines as before, without those that have a marker.
fn without_allowed_lines(text: &str) -> String {
    text.lines().map(|line| if is_allowed(line) { "\n".to_owned() } else { format!("{line}\n") }).collect()
}

/// Markdown without the spans that `pattern` finds, with as many lines as before.
fn without_spans(text: &str, pattern: &str) -> String {
    let spans = Regex::new(pattern).unwrap();
    spans.replace_all(text, |span: &Captures<'_>| "\n".repeat(span[0].matches('\n').count())).into_owned()
}

const JSON_OF_MARKDOWN: &str = r"(?ms)^ *```json.*?^ *```$|`[\[{][^`\n]*`";
const INLINE_CODE_OF_MARKDOWN: &str = r"``[^\n]+?``|`[^`\n]*`|\]\([^)\n]*\)";
const CODE_OF_MARKDOWN: &str = r"(?ms)^ *```.*?^ *```$|``[^\n]+?``|`[^`\n]*`|\]\([^)\n]*\)";

/// The text files of the workspace, by their paths in it.
fn sources() -> Vec<(String, PathBuf)> {
    let skipped = ["target", "fixtures", "node_modules", "examples/instruction-server/instructions"];
    let (root, mut sources, mut folders) = (root(), Vec::new(), vec![root()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            let last = path.file_name().unwrap().to_str().unwrap();
            let has_extension =
                |known: &[&str]| path.extension().is_some_and(|found| known.iter().any(|it| found == *it));
            if path.is_dir() {
                if !last.starts_with('.') && !skipped.contains(&name.as_str()) && last != "target" {
                    folders.push(path);
                }
            } else if has_extension(&["rs", "md", "jinja", "yaml", "py", "mjs"])
                || name.ends_with("src/shape/table.txt")
            {
                sources.push((name, path));
            }
        }
    }
    sources.sort();
    sources
}

#[test]
fn sources_use_the_terms_of_the_glossary() {
    let words = Words::new(|scope| scope == Scope::Everywhere);
    let declarations = Words::new(|scope| scope == Scope::Code);
    let paths = Words::new(|scope| scope == Scope::Path);
    let mut report = String::new();
    for (name, path) in sources() {
        paths.check(&name, &name, &mut report);
        if EXEMPT.contains(&name.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        let text = match name.rsplit_once('.').unwrap().1 {
            "rs" => {
                let (text, code) = rust(&text);
                declarations.check(&name, &code, &mut report);
                text
            }
            "jinja" => split_identifiers(&without_allowed_lines(&text)),
            "md" => without_spans(&without_allowed_lines(&text), JSON_OF_MARKDOWN),
            _ => without_allowed_lines(&text),
        };
        words.check(&name, &text, &mut report);
    }
    assert!(
        report.is_empty(),
        "{report}{} findings; the glossary is docs/concepts/glossary.md",
        report.lines().count()
    );
}

#[test]
fn documents_use_the_terms_of_the_glossary() {
    let words = Words::new(|scope| matches!(scope, Scope::Everywhere | Scope::Documents));
    let mut report = String::new();
    for (name, path) in sources() {
        let is_document = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"].contains(&name.as_str());
        if !(is_document || name.starts_with("docs/")) || !name.ends_with(".md") {
            continue;
        }
        let text = without_allowed_lines(&std::fs::read_to_string(Path::new(&path)).unwrap());
        // The blocks of this page are the `--help` of each verb, and are searched like prose.
        let code = if name == "docs/reference/cli.md" { INLINE_CODE_OF_MARKDOWN } else { CODE_OF_MARKDOWN };
        words.check(&name, &without_spans(&text, code), &mut report);
    }
    assert!(report.is_empty(), "{report}the glossary (docs/concepts/glossary.md) has the terms to use");
}

#[test]
fn comments_strings_and_identifiers_are_searched() {
    let words = Words::new(|scope| scope == Scope::Everywhere);
    let declarations = Words::new(|scope| scope == Scope::Code);
    let rows = |text: &str| {
        let mut report = String::new();
        let (text, code) = rust(text);
        words.check("a.rs", &text, &mut report);
        declarations.check("a.rs", &code, &mut report);
        report.lines().map(|line| line.split(": ").nth(1).unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (text, row) in [
        ("/// A client that gives it up.", "row 12"),
        ("let a = 1; /* nobody\n */", "row 1"),
        ("let text = \"\n taken out\";", "row 14"),
        ("let text = r##\"x\"# nobody\"##;", "row 1"),
        ("fn was_told() {}", "row 2"),
        ("let x = SentAway;", "row 11"),
        ("if LET_IN {}", "row 9"),
        ("    pub(super) enum Kind {", "row 32"),
        ("struct Fate;", "row 31"),
    ] {
        assert_eq!(rows(text), [row], "{text}");
    }
    for text in [
        "let in_flight = call.start();",
        "let quote = '\"'; let slash = '\\''; fn f<'a>() {}",
        "// nobody // words: allow",
        "let text = r#\"\n> {\"data\":\"nobody\"}\n\"#;",
        "struct FateOf;\nenum Kind {}\n// pub enum State",
    ] {
        assert_eq!(rows(text), [""; 0], "{text}");
    }
}
