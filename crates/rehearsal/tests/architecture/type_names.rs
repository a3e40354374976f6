//! Public types: their names are unique, and errors print themselves as text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::{code, files, root};

/// The files of a crate that are compiled into it, without the modules of tests.
fn sources(crate_folder: &Path) -> Vec<PathBuf> {
    let source = crate_folder.join("src");
    let test_module = Regex::new(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))? )?mod (\w+);").unwrap();
    let mut sources = files(&source);
    let mut tests = Vec::new();
    for file in &sources {
        let folder = match file.file_stem().unwrap().to_str().unwrap() {
            "mod" | "lib" | "main" => file.parent().unwrap().to_owned(),
            _ => file.with_extension(""),
        };
        let text = std::fs::read_to_string(file).unwrap();
        tests.extend(test_module.captures_iter(&text).map(|module| folder.join(&module[1])));
    }
    // The type that stands for `matcher::Schema` in a build without JSON Schema.
    sources.retain(|file| !file.ends_with("matcher/no_schema.rs"));
    sources.retain(|file| !tests.iter().any(|test| file.with_extension("") == *test || file.starts_with(test)));
    sources
}

#[test]
fn public_types_have_unique_names() {
    let declaration =
        Regex::new(r"(?m)^\s*pub(?:\([a-z_: ]+\))? (?:unsafe )?(?:struct|enum|trait|type) (\w+)").unwrap();
    let mut declared: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        for file in sources(&entry.unwrap().path()) {
            let path = file.strip_prefix(root()).unwrap().display().to_string();
            for name in declaration.captures_iter(&code(&file)) {
                declared.entry(name[1].to_owned()).or_default().push(path.clone());
            }
        }
    }
    declared.retain(|_, files| files.len() > 1);
    let report: String = declared.iter().map(|(name, files)| format!("{name}: {}\n", files.join(", "))).collect();
    assert!(report.is_empty(), "{report}{} names are used for several public types", declared.len());
}

#[test]
fn public_errors_print_their_text_as_debug() {
    let error = Regex::new(
        r"#\[derive\(([^)]*thiserror::Error[^)]*)\)\]\s*(?:#\[[^\n]*\]\s*)*pub(?:\([a-z_: ]+\))? (?:struct|enum) (\w*Error)\b",
    )
    .unwrap();
    let (mut found, mut report) = (0, String::new());
    for name in ["rehearsal", "rehearsal-core", "rehearsal-wire"] {
        for file in sources(&root().join("crates").join(name)) {
            let text = std::fs::read_to_string(&file).unwrap();
            for captures in error.captures_iter(&text) {
                found += 1;
                if captures[1].contains("Debug") {
                    report += &format!("{}: {}\n", file.strip_prefix(root()).unwrap().display(), &captures[2]);
                }
            }
        }
    }
    assert!(found > 20, "{found}");
    assert!(report.is_empty(), "{report}`unwrap` prints Debug: use `debug_as_display!` in place of the derive");
}
