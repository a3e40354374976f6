//! Arrows point one way, and the core stays pure.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The direct dependencies of each crate of ours, tests aside.
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
    assert!(!ours("rehearsal").contains(&"rehearsal"));
}

#[test]
fn the_core_has_no_runtime_and_no_network() {
    let core = &dependencies()["rehearsal-core"];
    for forbidden in ["tokio", "hyper", "http", "nix", "futures-util", "rand", "rmcp"] {
        assert!(!core.contains(forbidden), "{forbidden}");
    }
}

/// The modules of the core; each uses only those before it.
const CORE: [&str; 14] = [
    "json", "duration", "suggest", "message", "protocol", "exchange", "matcher", "schema", "trace", "redact", "report",
    "shape", "script", "answer",
];

/// The code of a file without its tests.
fn code(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned()
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

#[test]
fn modules_of_the_core_use_only_those_before_them() {
    let source = root().join("crates/rehearsal-core/src");
    let module = |file: &Path| {
        let first = file.strip_prefix(&source).unwrap().components().next().unwrap();
        first.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned()
    };
    for file in files(&source).iter().filter(|file| !file.ends_with("lib.rs")) {
        let own = CORE.iter().position(|name| *name == module(file));
        let own = own.unwrap_or_else(|| panic!("{} is in no known module", file.display()));
        for (at, line) in code(file).lines().enumerate() {
            for used in line.split("crate::").skip(1) {
                let used: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if let Some(other) = CORE.iter().position(|name| *name == used) {
                    let place = format!("{}:{}", file.display(), at + 1);
                    assert!(other <= own, "{place}: {} uses {used}, which comes after it", CORE[own]);
                }
            }
        }
    }
}

#[test]
fn the_core_touches_no_clock_no_file_and_no_environment() {
    let forbidden =
        ["Instant::", "SystemTime", "std::fs", "std::net", "std::env", "std::process", "std::thread", "println!"];
    for file in files(&root().join("crates/rehearsal-core/src")) {
        let code: String = code(&file).lines().filter(|line| !line.trim_start().starts_with("//")).collect();
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
            assert!(!["utils", "util", "common", "types", "helpers", "manager"].contains(&name.as_str()), "{name}");
        }
    }
}
