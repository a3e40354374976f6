//! `rehearse check`

use std::path::Path;

use rehearsal::core::matcher::Schema;
use rehearsal::core::script::read;

use crate::fixture::{Fixture, rehearse};

/// The error of every broken file of the repository has a location and a hint.
#[test]
fn each_broken_file_gets_a_located_error() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/mocks/broken");
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 30);
    let mut all = String::new();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let fixture = Fixture::new();
        std::fs::copy(&file, fixture.path().join(&name)).unwrap();
        let played = fixture.run(&format!("rehearse check {name}"));
        assert!(played.starts_with("exit: 2\n"), "{name}: {played}");
        all += &format!("{played}\n");
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_file_without_mistakes_is_only_counted() {
    let mock = "server: { name: weather }\ntools: [{ name: rain, answers: [{ text: Rain }] }]\n";
    let fixture = Fixture::new().file("one.mock.yaml", mock).file("two.mock.yaml", "tools: [{ name: x }]\n");
    rehearse!(fixture, "rehearse check one.mock.yaml", @r"
    exit: 0
    ----- stderr -----
    1 file checked, no problems
    ");
    rehearse!(fixture, "rehearse check --json one.mock.yaml two.mock.yaml", @r#"
    exit: 2
    ----- stdout -----
    {"file":"two.mock.yaml","line":1,"column":17,"message":"the tool `x` has no answer","hint":"add `answers: [{ text: … }]`, or have answers invented with --schema-fill"}
    ----- stderr -----
    2 files checked, 1 problem found
    "#);
}

/// Errors that appear only when a file is compiled are found as well.
#[test]
fn templates_and_referenced_files_are_checked() {
    let mock = "tools:\n  - name: a\n    answers: [{ text: \"{{ arguments.city \" }]\n\
                resources: [{ uri: \"notes://today\", file: notes.md }]\n";
    let fixture = Fixture::new().file("m.yaml", mock);
    rehearse!(fixture, "rehearse check m.yaml", @r#"
    exit: 2
    ----- stderr -----
    error: syntax error: unexpected end of input, expected end of variable block
     --> m.yaml:3:23
      |
    3 |     answers: [{ text: "{{ arguments.city " }]
      |                       ^^^^^^^^^^^^^^^^^^^^
    error: cannot read notes.md: No such file or directory (os error 2)
     --> m.yaml:4:43
      |
    4 | resources: [{ uri: "notes://today", file: notes.md }]
      |                                           ^^^^^^^^
    1 file checked, 2 problems found
    "#);
    let fixture = Fixture::new().file("m.yaml", &mock.replace("city ", "city }}")).file("notes.md", "# Notes");
    rehearse!(fixture, "rehearse check m.yaml", @r"
    exit: 0
    ----- stderr -----
    1 file checked, no problems
    ");
}

/// `schemas/` is what `rehearse schema` prints; `rehearse schema mock > schemas/mock.schema.json` brings it up to date.
#[test]
fn the_schemas_for_editors_are_up_to_date() {
    for (format, kept) in [
        ("mock", include_str!("../../../../schemas/mock.schema.json")),
        ("workflow", include_str!("../../../../schemas/workflow.schema.json")),
        ("dry-run", include_str!("../../../../schemas/dry-run.schema.json")),
        ("exec", include_str!("../../../../schemas/exec.schema.json")),
        ("saved-plan", include_str!("../../../../schemas/saved-plan.schema.json")),
    ] {
        let printed = Fixture::new().run(&format!("rehearse schema {format}"));
        assert_eq!(printed, format!("exit: 0\n----- stdout -----\n{kept}"), "rehearse schema {format}");
    }
}

#[test]
fn the_example_mocks_have_no_errors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").canonicalize().unwrap();
    let played = Fixture::new().run(&format!("rehearse check {}/*.mock.yaml", folder.display()));
    assert!(played.starts_with("exit: 0\n"), "{played}");
}

/// An editor must not complain about a file that has no mistakes.
#[test]
fn the_example_mocks_conform_to_the_editor_schema() {
    let schema: serde_json::Value = serde_json::from_str(include_str!("../../../../schemas/mock.schema.json")).unwrap();
    let schema = Schema::compile(&schema).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        if !name.ends_with(".mock.yaml") {
            continue;
        }
        let mock: serde_json::Value = read(&name, &std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(schema.objections(&mock), [""; 0], "{name}");
        count += 1;
    }
    assert!(count >= 8, "{count}");
    let wrong: serde_json::Value = read("m", "tools: [{ name: a, inputSchema: {} }]").unwrap();
    assert!(!schema.is_valid(&wrong));
}

#[test]
fn a_workflow_and_a_report_conform_to_their_schemas() {
    let schema = |text| Schema::compile(&serde_json::from_str(text).unwrap()).unwrap();
    let workflow = schema(include_str!("../../../../schemas/workflow.schema.json"));
    let example: serde_json::Value =
        read("cleanup.yaml", include_str!("../../../../examples/plans/cleanup.yaml")).unwrap();
    assert_eq!(workflow.objections(&example), [""; 0]);

    let report = schema(include_str!("../../../../schemas/dry-run.schema.json"));
    let plans = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plans").canonicalize().unwrap();
    let plans = plans.display();
    for plan in ["summary.ts", "mistakes.ts", "cleanup.ts", "cleanup.yaml"] {
        let line = format!("rehearse dry-run {plans}/{plan} --json --override files={plans}/files.mock.yaml");
        let output = Fixture::new().shell(&line).output().unwrap();
        let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report.objections(&printed), [""; 0], "{plan}");
    }
}

#[test]
fn all_unknown_keys_and_wrong_values_of_a_file_are_reported() {
    let mock = "server: { name: weather, verson: x }\npage_size: many\ntools:\n  - name: rain\n    answers: [{ times: \"3\", txt: Rain }]\n";
    let fixture = Fixture::new().file("m.yaml", mock);
    rehearse!(fixture, "rehearse check m.yaml", @r#"
    exit: 2
    ----- stderr -----
    error: unknown key `verson`
     --> m.yaml:1:26
      |
    1 | server: { name: weather, verson: x }
      |                          ^^^^^^
      |
      = help: did you mean `version`?
    error: expected a whole number that is not too large, got the text "many"
     --> m.yaml:2:12
      |
    2 | page_size: many
      |            ^^^^
    error: expected a whole number that is not too large, got the text "3"
     --> m.yaml:5:24
      |
    5 |     answers: [{ times: "3", txt: Rain }]
      |                        ^^^
      |
      = help: write it without quotes: 3
    error: unknown key `txt`
     --> m.yaml:5:29
      |
    5 |     answers: [{ times: "3", txt: Rain }]
      |                             ^^^
      |
      = help: did you mean `text`?
    1 file checked, 4 problems found
    "#);
}
