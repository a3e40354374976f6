//! Dependencies point in one direction, the core does no I/O, and names and words follow the glossary.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue panics")]

mod type_names;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The direct dependencies of each crate of the workspace, without those of tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]).current_dir(root());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names = |package: &Value| {
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let real = dependencies.filter(|dependency| dependency["kind"] != "dev");
        real.map(|dependency| dependency["name"].as_str().unwrap().to_owned()).collect()
    };
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages.map(|package| (package["name"].as_str().unwrap().to_owned(), names(package))).collect()
}

#[test]
fn crates_depend_in_one_direction() {
    let dependencies = dependencies();
    let ours = |name: &str| -> Vec<&str> {
        dependencies[name].iter().map(String::as_str).filter(|other| other.starts_with("rehearsal")).collect()
    };
    assert_eq!(ours("rehearsal-core"), [""; 0]);
    assert_eq!(ours("rehearsal-wire"), ["rehearsal-core"]);
    assert!(ours("rehearsal-sandbox").iter().all(|other| *other == "rehearsal-core"));
    assert_eq!(ours("rehearsal"), ["rehearsal-core", "rehearsal-sandbox", "rehearsal-wire"]);
}

#[test]
fn the_core_has_no_runtime_and_no_network() {
    let core = &dependencies()["rehearsal-core"];
    for forbidden in ["tokio", "hyper", "http", "nix", "futures-util", "rand", "rmcp"] {
        assert!(!core.contains(forbidden), "{forbidden}");
    }
}

/// The modules of the core; each uses only those before it.
const CORE: [&str; 16] = [
    "causes",
    "json",
    "duration",
    "suggest",
    "message",
    "protocol",
    "exchange",
    "transport_fault",
    "matcher",
    "schema",
    "trace",
    "redact",
    "report",
    "shape",
    "script",
    "answer",
];

/// The modules of the top crate; each uses only those before it.
const TOP: [&str; 16] = [
    "config", "oauth", "client", "record", "store", "cache", "serve", "mock", "replay", "generate", "verify",
    "dry_run", "exec", "testing", "print", "cli",
];

/// The code of a file without its tests.
fn code(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned()
}

/// The code of a file without its tests and comments, line by line.
fn without_comments(file: &Path) -> String {
    let code = code(file);
    let lines = code.lines().map(|line| if line.trim_start().starts_with("//") { "" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// The names that `code` takes from the root of its crate, each with its line: `crate::m`, `crate::{m, n::T}`, in the binary
/// `rehearsal::m`, and `super::m` behind as many `super` as the module is deep.
fn names_from_the_root(code: &str, depth: usize) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for root in ["crate::", "rehearsal::", &"super::".repeat(depth)] {
        for (at, _) in code.match_indices(root) {
            let line = code[..at].matches('\n').count() + 1;
            let path = &code[at + root.len()..];
            let (mut open, mut items) = (0, vec![String::new()]);
            for character in path.trim_start_matches('{').chars().filter(|_| path.starts_with('{')) {
                match character {
                    '}' if open == 0 => break,
                    ',' if open == 0 => items.push(String::new()),
                    _ => items.last_mut().unwrap().push(character),
                }
                open += i32::from(character == '{') - i32::from(character == '}');
            }
            if !path.starts_with('{') {
                items = vec![path.chars().take(100).collect()];
            }
            let name = |item: String| -> String {
                item.trim_start()
                    .chars()
                    .take_while(|character| character.is_alphanumeric() || *character == '_')
                    .collect()
            };
            found.extend(items.into_iter().map(|item| (line, name(item))));
        }
    }
    found
}

/// Panics if a module of `crate_name` uses one that comes after it in `order`.
fn assert_order(crate_name: &str, order: &[&str]) {
    let source = root().join("crates").join(crate_name).join("src");
    for file in files(&source) {
        let module = file.strip_prefix(&source).unwrap().with_extension("");
        let names: Vec<_> = module.iter().map(|name| name.to_str().unwrap()).filter(|name| *name != "mod").collect();
        if matches!(names[..], ["lib" | "main"]) {
            continue;
        }
        let own = order.iter().position(|name| *name == names[0]);
        let own = own.unwrap_or_else(|| panic!("{} is in no known module", file.display()));
        for (line, used) in names_from_the_root(&without_comments(&file), names.len()) {
            if let Some(other) = order.iter().position(|name| *name == used) {
                let place = format!("{}:{line}", file.display());
                assert!(other <= own, "{place}: {} uses {used}, which comes after it", order[own]);
            }
        }
    }
}

#[test]
fn every_syntax_for_a_module_path_is_parsed() {
    let code = "use crate::a;\nuse crate::{\n    b::{self, X},\n    c,\n};\nuse super::super::d::Y;\nlet e = rehearsal::e::z();";
    let names: Vec<String> = names_from_the_root(code, 2).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["a", "b", "c", "", "e", "d"]);
}

#[test]
fn modules_of_the_core_use_only_those_before_them() {
    assert_order("rehearsal-core", &CORE);
}

#[test]
fn modules_of_the_top_crate_use_only_those_before_them() {
    assert_order("rehearsal", &TOP);
}

#[test]
fn an_answer_source_reaches_no_server() {
    // Each folder with a source, and the files of it that may reach a server: they build the chain and what is around it, or
    // list the tools before a dry run, or call
    // those that the operator has declared safe.
    let folders = [
        ("replay", &["replay.rs", "replay_server.rs"][..]),
        ("cache", &[]),
        ("dry_run", &["mod.rs", "live.rs", "safe_tools.rs"]),
    ];
    for (folder, exceptions) in folders {
        let folder = root().join("crates/rehearsal/src").join(folder);
        let is_exception = |file: &&PathBuf| !exceptions.iter().any(|name| **file == folder.join(name));
        for file in files(&folder).iter().filter(is_exception) {
            for module in ["crate::client", "crate::serve", "rehearsal_wire", "tokio"] {
                assert!(!without_comments(file).contains(module), "{} uses {module}", file.display());
            }
        }
    }
}

#[test]
fn the_core_touches_no_clock_no_file_and_no_environment() {
    let forbidden =
        ["Instant::", "SystemTime", "std::fs", "std::net", "std::env", "std::process", "std::thread", "println!"];
    for file in files(&root().join("crates/rehearsal-core/src")) {
        let code = without_comments(&file);
        for word in forbidden {
            assert!(!code.contains(word), "{} uses {word}", file.display());
        }
    }
}

#[test]
fn files_have_one_concept_and_at_most_700_lines() {
    for crate_name in ["rehearsal-core", "rehearsal-wire", "rehearsal-sandbox", "rehearsal"] {
        for file in files(&root().join("crates").join(crate_name).join("src")) {
            let lines = code(&file).lines().filter(|line| !line.trim().is_empty()).count();
            assert!(lines <= 700, "{} has {lines} lines of code", file.display());
            let name = file.file_stem().unwrap().to_string_lossy().into_owned();
            // `rehearse types` is a verb.
            let is_vague = ["utils", "util", "common", "types", "helpers", "manager"].contains(&name.as_str());
            assert!(!is_vague || file.ends_with("cli/types.rs"), "{name}");
        }
    }
}
