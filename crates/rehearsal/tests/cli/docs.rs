//! README.md and `docs/` are true: their commands run, their output is real, and their flags and link targets exist.
//!
//! | block | check |
//! |---|---|
//! | `sh` | runs and succeeds; if a `text` block follows, that is its output |
//! | `console` | each line after `$ ` runs; the lines below it are its output |
//! | `yaml` | `rehearse check` accepts it, or it is a workflow (`tasks`); a first line `# NAME.yaml` names the file for later blocks |
//! | `ts` | `rehearse dry-run` finds no syntax error in it; a first line `// NAME.ts` names the file for later blocks |
//! | `json` | is JSON |
//! | `text` | follows an `sh` block |
//! | any of them with a word after it (`sh network`, `text example`) | only the flags |
//!
//! The blocks of a page share a directory. In output, `…` is the rest of a line, and a line `…` is any number of lines.
//! `UPDATE_DOCS=1 cargo test -p rehearsal --test cli docs` writes the real output into the pages.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use regex::Regex;
use rehearsal::core::script::workflow;

use crate::fixture::Fixture;

/// Where the part of `docs/reference/cli.md` begins that is generated from `--help`.
const GENERATED: &str = "\n## rehearse\n";

struct Block<'a> {
    language: &'a str,
    /// The word after the language; a block that has one is not run.
    mark: &'a str,
    body: &'a str,
    range: Range<usize>,
}

#[test]
fn docs_show_commands_that_run_and_their_real_output() {
    let mut failures = String::new();
    for (path, mut text) in documents().into_iter().filter(|(path, _)| !path.ends_with("CONTRIBUTING.md")) {
        let updates = run_page(&text, &mut |message| writeln!(failures, "{}: {message}", path.display()).unwrap());
        if std::env::var_os("UPDATE_DOCS").is_some() && !updates.is_empty() {
            for (range, output) in updates.into_iter().rev() {
                text.replace_range(range, &output);
            }
            std::fs::write(&path, text).unwrap();
        }
    }
    assert!(failures.is_empty(), "{failures}UPDATE_DOCS=1 writes the real output into the pages");
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

#[test]
fn docs_name_only_flags_that_exist() {
    let command = Regex::new(r"\brehearse ((?:trace |cache )?[a-z][a-z-]*)([^`\n]*)").unwrap();
    let fixture = Fixture::new();
    let mut helps: HashMap<String, Option<String>> = HashMap::new();
    let mut failures = String::new();
    for (path, text) in documents() {
        let text = text.split(GENERATED).next().unwrap().replace("\\\n", " ");
        // "this rehearse reads up to 1" is part of an error.
        let commands =
            command.captures_iter(&text).filter(|found| !text[..found.get(0).unwrap().start()].ends_with("this "));
        for found in commands {
            let verb = found[1].to_owned();
            let help = helps.entry(verb.clone()).or_insert_with(|| {
                let output = fixture.shell(&format!("rehearse {verb} --help")).output().unwrap();
                output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
            });
            let Some(help) = help else {
                writeln!(failures, "{}: no verb in `{}`", path.display(), &found[0]).unwrap();
                continue;
            };
            let words = found[2]
                .split_whitespace()
                .take_while(|word| !["--", "|", "#", "&&", ";", ">", "rehearse"].contains(word));
            for word in words.filter(|word| word.starts_with('-') && word.len() > 1) {
                let flag = word.split('=').next().unwrap().trim_end_matches(|c: char| !c.is_alphanumeric());
                if !Regex::new(&format!(r"(?m)(^|[\s,\[]){}($|[\s,=\].])", regex::escape(flag))).unwrap().is_match(help)
                {
                    writeln!(failures, "{}: `rehearse {verb}` has no {flag}", path.display()).unwrap();
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// Runs the blocks of a page, and returns the output to replace, by its place in the page.
fn run_page(text: &str, fail: &mut dyn FnMut(String)) -> Vec<(Range<usize>, String)> {
    let mut updates = Vec::new();
    let fixture = Fixture::new();
    let run = |line: &str| {
        std::fs::write(fixture.path().join(".commands"), line).unwrap();
        let output = fixture.shell("timeout 20 sh .commands 2>&1; code=$?; rm .commands; exit $code").output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let blocks = blocks(text);
    // Whether a block is the output of the `sh` block above it.
    let is_output = |index: usize| {
        let [above, block] = &blocks[index - 1..=index] else { return false };
        let between = text[above.range.end..block.range.start].trim_matches(['`', '\n']);
        above.language == "sh" && above.mark.is_empty() && block.language == "text" && between == "text"
    };
    for (index, block) in blocks.iter().enumerate().filter(|(_, block)| block.mark.is_empty()) {
        match block.language {
            "yaml" => {
                let named = block.body.lines().next().and_then(|line| line.strip_prefix("# "));
                let name = named.filter(|name| name.ends_with(".yaml") && !name.contains(' ')).unwrap_or("mock.yaml");
                std::fs::write(fixture.path().join(name), block.body).unwrap();
                if block.body.lines().any(|line| line == "tasks:") {
                    if let Err(error) = workflow::parse(name, block.body) {
                        fail(error.to_string());
                    }
                } else if let (false, output) = run(&format!("rehearse check --schema-fill {name}")) {
                    fail(output);
                }
            }
            "ts" => {
                let named = block.body.lines().next().and_then(|line| line.strip_prefix("// "));
                let name = named.filter(|name| name.ends_with(".ts") && !name.contains(' ')).unwrap_or("block.ts");
                std::fs::write(fixture.path().join(name), block.body).unwrap();
                let check = "printf 'tools: []' > .none.yaml; \
                     rehearse dry-run --json --no-cache --config .none.json --override none=.none.yaml";
                std::fs::write(fixture.path().join(".none.json"), r#"{"mcpServers": {}}"#).unwrap();
                let (_, output) = run(&format!("{check} {name}"));
                if !output.contains("\"syntax_valid\": true") {
                    fail(format!("{}is no valid plan:\n{output}", block.body));
                }
            }
            "json" => {
                if let Err(error) = serde_json::from_str::<serde_json::Value>(block.body) {
                    fail(format!("{error} in {}", block.body));
                }
            }
            "sh" => {
                let (success, output) = run(block.body);
                match blocks.get(index + 1).filter(|_| is_output(index + 1)) {
                    Some(below) if !fits(below.body, &output) => {
                        fail(format!("{}prints\n{output}", block.body));
                        updates.push((below.range.clone(), output));
                    }
                    None if !success => fail(format!("{}fails:\n{output}", block.body)),
                    _ => {}
                }
            }
            "console" => {
                let mut body = String::new();
                for (command, expected) in commands(block.body) {
                    let (_, output) = run(command.replace("\n$ ", "\n").trim_start_matches("$ "));
                    let fits = fits(expected, &output);
                    if !fits {
                        fail(format!("{command}prints\n{output}"));
                    }
                    body.extend([command, if fits { expected } else { &output }]);
                }
                if body != block.body {
                    updates.push((block.range.clone(), body));
                }
            }
            // A test of the core crate compares the examples of `matchers.md`.
            "text" if index > 0 && is_output(index) || block.body.starts_with("matcher: ") => {}
            "text" => fail(format!("`text example` for\n{}", block.body)),
            _ => {}
        }
    }
    updates
}

/// Whether real output is what a page shows.
fn fits(shown: &str, real: &str) -> bool {
    let line = |line: &str| match line.trim_end() {
        "…" => r"(?:.*\n)*?".to_owned(),
        line => regex::escape(line).replace('…', ".*") + "[ ]*\n",
    };
    let real = if real.is_empty() || real.ends_with('\n') { real.to_owned() } else { format!("{real}\n") };
    Regex::new(&format!("^{}$", shown.trim_end().lines().map(line).collect::<String>())).unwrap().is_match(&real)
}

/// Each command of a `console` block, from `$ ` to the end of its last line, with the output below it.
fn commands(body: &str) -> Vec<(&str, &str)> {
    let command = Regex::new(r"(?m)^\$ (?:.*\\\n)*.*\n").unwrap();
    let found: Vec<_> = command.find_iter(body).collect();
    assert!(found.first().is_some_and(|first| first.start() == 0), "a console block begins with `$ `:\n{body}");
    let ends = found.iter().skip(1).map(|next| next.start()).chain([body.len()]);
    found.iter().zip(ends).map(|(command, end)| (command.as_str(), &body[command.end()..end])).collect()
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let fence = Regex::new(r"(?ms)^```([a-z]+)(?: ([a-z]+))?\n(.*?)^```$").unwrap();
    let text = text.split(GENERATED).next().unwrap();
    let block = |found: regex::Captures<'_>| {
        let [language, mark, body] = [1, 2, 3].map(|group| found.get(group).map_or(0..0, |group| group.range()));
        Block { language: &text[language], mark: &text[mark], body: &text[body.clone()], range: body }
    };
    fence.captures_iter(text).map(block).collect()
}

/// README.md, CHANGELOG.md, CONTRIBUTING.md and all pages of `docs/`.
fn documents() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut paths = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|name| root.join(name)).to_vec();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { &mut folders } else { &mut paths }.push(path);
        }
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}
