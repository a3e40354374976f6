//! Examples for the schemas of the JSON-Schema-Test-Suite, each validated by its schema.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rehearsal::core::matcher::Schema;
use rehearsal::core::schema::{NoExample, example_or_reason};
use serde_json::{Value, json};

use crate::installation::folder;

/// Minimum share of schemas with a valid example, in percent.
const MIN_SHARE: usize = 98;

/// The folder of the suite; downloads it on first use.
pub(crate) fn suite() -> PathBuf {
    let install = folder().join("schema-suite/install");
    let output = std::process::Command::new(install).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "tests/interop/schema-suite/install failed");
    let text = String::from_utf8(output.stdout).unwrap();
    PathBuf::from(text.lines().last().unwrap())
}

/// The schemas of a draft that accept at least one value, each with its file and description; not those of `optional/`.
///
/// The suite's older drafts omit `$schema`. `dialect` takes its place.
fn satisfiable_schemas(draft: &Path, dialect: &str) -> Vec<(String, Value)> {
    let mut files: Vec<_> = std::fs::read_dir(draft).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let groups: Vec<Value> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        for group in groups {
            let mut schema = group["schema"].clone();
            if let Some(keywords) = schema.as_object_mut().filter(|keywords| !keywords.contains_key("$schema")) {
                keywords.insert("$schema".to_owned(), json!(dialect));
            }
            if group["tests"].as_array().unwrap().iter().any(|test| test["valid"] == json!(true)) {
                let file = file.file_name().unwrap().to_string_lossy();
                found.push((format!("{file} {}", group["description"]), schema));
            }
        }
    }
    found
}

/// The numbers of one draft.
#[derive(Debug, Default)]
struct Totals {
    valid: usize,
    invalid: Vec<String>,
    /// How many schemas refer to documents outside the suite's file.
    remote: usize,
    /// The reasons of the other schemas without an example.
    without: BTreeMap<String, NoExample>,
    time: Duration,
}

fn totals(schemas: &[(String, Value)]) -> Totals {
    let mut totals = Totals::default();
    for (label, schema) in schemas {
        let started = Instant::now();
        let example = example_or_reason(schema);
        totals.time += started.elapsed();
        match example {
            Ok(example) if Schema::compile(schema).is_ok_and(|schema| schema.is_valid(&example)) => totals.valid += 1,
            Ok(example) => totals.invalid.push(format!("{label}: {example}")),
            Err(NoExample::OtherDocument { .. }) => totals.remote += 1,
            Err(reason) => {
                totals.without.insert(label.clone(), reason);
            }
        }
    }
    totals
}

#[test]
fn nearly_every_satisfiable_schema_of_the_test_suite_has_a_valid_example() {
    let suite = suite();
    for (draft, dialect) in [
        ("draft7", "http://json-schema.org/draft-07/schema#"),
        ("draft2020-12", "https://json-schema.org/draft/2020-12/schema"),
    ] {
        let schemas = satisfiable_schemas(&suite.join(draft), dialect);
        let Totals { valid, invalid, remote, without, time } = totals(&schemas);
        println!(
            "{draft}: {} satisfiable schemas: {valid} valid, {} invalid, {remote} refer to other documents, {} without an example, {time:?}",
            schemas.len(),
            invalid.len(),
            without.len(),
        );
        for (label, reason) in &without {
            println!("  {label}: {reason}");
        }
        assert!(schemas.len() > 200, "{draft} has too few schemas");
        assert!(invalid.is_empty(), "{draft}: {invalid:#?}");
        let local = schemas.len() - remote;
        assert!(valid * 100 >= local * MIN_SHARE, "{draft}: only {valid} of {local} have an example: {without:#?}");
    }
}
