//! `rehearse types` with `tsc`: correct plans are accepted, and every planted error is refused at its line.
//!
//! ```text
//! tools of other projects' servers ──► mcp.d.ts ──► tsc --noEmit mcp.d.ts plan.ts
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use rehearsal::core::protocol::Revision;
use rehearsal::dry_run::{Catalogue, DryRunOptions, types};
use serde_json::{Value, json};

use crate::dry_run::Project;
use crate::installation::{cache, folder, node};
use crate::mocked::rehearse;
use crate::schema_suite::suite;

/// The flags of the comment in the declarations.
const FLAGS: [&str; 10] = [
    "--noEmit",
    "--strict",
    "--target",
    "es2023",
    "--lib",
    "es2023",
    "--module",
    "esnext",
    "--moduleDetection",
    "force",
];

/// A plan that uses tools and results of all servers as they are declared.
const CORRECT: &str = r#"const folder = "WORK";
const { filesystem, memory, time, everything } = mcp;
interface Note { name: string; text: string }

await filesystem.write_file({ path: `${folder}/new.txt`, content: "new" });
const { content } = await filesystem.list_directory({ path: folder });
const names: readonly string[] = content.split("\n").filter((line) => line.startsWith("[FILE] "));
const notes: Note[] = await Promise.all(
  names.map(async (name) => ({ name, text: (await filesystem.read_text_file({ path: `${folder}/${name}`, head: 2 })).content })),
);
await filesystem.edit_file({ path: `${folder}/new.txt`, edits: [{ oldText: "new", newText: "old" }], dryRun: true });
const media = await filesystem.read_media_file({ path: `${folder}/logo.png` });
for (const block of media.content) console.log(block.type === "resource" ? block.resource.uri : block.mimeType);
const allowed = (await filesystem.list_allowed_directories()).content;

const call = mcp.git.git_status;
const status = await call({ repo_path: folder });
await mcp.git["git_log"]({ repo_path: folder, max_count: 2, start_timestamp: null });
await mcp.git.git_add({ repo_path: folder, files: ["new.txt"] as const });

await memory.create_entities({
  entities: notes.map(({ name, text }) => ({ name, entityType: "file", observations: [text] })),
});
const graph = await memory.read_graph({});
const observed: string[] = graph.entities.flatMap((entity) => entity.observations);

const converted = await time.convert_time({ source_timezone: "UTC", time: "12:00", target_timezone: "Asia/Tokyo" });
const hours: string = converted.time_difference;
const isSummer: boolean = converted.target.is_dst || (await time.get_current_time({ timezone: "UTC" })).is_dst;

const cities = ["New York", "Chicago"] as const;
const weather = await Promise.all(cities.map((location) => everything["get-structured-content"]({ location })));
const warmest = Math.max(...weather.map(({ temperature }) => temperature));
const sum = await everything["get-sum"]({ a: names.length, b: 40 });
await everything["get-tiny-image"]();
await everything["get-annotated-message"]({ messageType: "error", includeImage: true });

const later = new Promise((resolve) => setTimeout(resolve, 10));
const timer: number = setInterval(() => console.log("tick"), 1000);
clearInterval(timer);
queueMicrotask(() => console.assert(true, "never"));
await Promise.race([later, everything["trigger-long-running-operation"]({ duration: 1, steps: 2 })]);
try {
  await filesystem.read_text_file({ path: atob(btoa("missing")) });
} catch (error) {
  if (!(error instanceof ToolError)) throw error;
  const kind: "tool" | "protocol" | "timeout" = error.kind;
  console.error(kind, error.server, error.tool, error.message, error.place ?? "", error.content[0].text);
}
if ("git_diff" in mcp.git) console.log(Object.keys(mcp.filesystem).length);
({ status, allowed, observed, hours, isSummer, warmest, sum });
"#;

/// A plan with an error in each line that ends with the code of an error of TypeScript.
const PLANTED: &str = r#"const folder = "WORK";
await mcp.filesystem.write_file({ path: `${folder}/new.txt`, content: 7 }); // TS2322
await mcp.filesystem.write_file({ path: folder }); // TS2741
await mcp.filesystem.create_directory(); // TS2554
await mcp.filesystem.create_directory({}); // TS2741
await mcp.filesystem.create_directory({ path: folder, recursive: true }); // TS2353
await mcp.filesystem.remove_file({ path: folder }); // TS2551
await mcp.filesystem.edit_file({
  path: folder,
  edits: [{ oldText: "a", newText: 1 }], // TS2322
});
await mcp.filesystem.edit_file({ path: folder, edits: { oldText: "a", newText: "b" } }); // TS2353
await mcp.filesystem.list_directory_with_sizes({ path: folder, sortBy: "date" }); // TS2322
await mcp.filesystem.list_directory_with_sizes({ path: folder, sortby: "name" }); // TS2561
const { content } = await mcp.filesystem.read_text_file({ path: folder });
content.bytes; // TS2339
mcp.filesystem.read_text_file({ path: folder }).content; // TS2339
(await mcp.filesystem.read_text_file({ path: folder })).text; // TS2339
await mcp.filesystem.list_allowed_directories({ path: folder }); // TS2322
await mcp.memory.create_entities({ entities: [{ name: "Ada", entityType: "person", observations: "one" }] }); // TS2322
await mcp.memory.create_entities({ entities: [{ name: "Ada", entityType: "person" }] }); // TS2741
const graph = await mcp.memory.read_graph({ limit: 3 }); // TS2322
for (const entity of graph.entities) console.log(entity.title); // TS2339
for (const entity of graph) console.log(entity); // TS2488
await mcp.git.git_add({ repo_path: folder, files: "new.txt" }); // TS2322
await mcp.git.git_status({ path: folder }); // TS2353
await mcp.git.git_log({ repo_path: folder, max_count: "2" }); // TS2322
await mcp.time.convert_time({ source_timezone: "UTC", time: "12:00" }); // TS2741
const now = await mcp.time.get_current_time({ timezone: "UTC" });
const year: number = now.datetime; // TS2322
now.date; // TS2339
await mcp.everything["get-structured-content"]({ location: "Oslo" }); // TS2322
await mcp.everything["get-sum"]({ a: "1", b: 2 }); // TS2322
await mcp.everything.get_sum({ a: 1, b: 2 }); // TS2551
await mcp.everything.echo("hello"); // TS2345
await mcp.everything.echo({ message: null }); // TS2322
await mcp.clock.now({}); // TS2339
mcp.git = mcp.filesystem; // TS2540
await fetch("https://example.com"); // TS2304
return year; // TS1108
"#;

/// Results of tools without an output schema, used as they were recorded.
const OBSERVED: &str = r#"const status = await mcp.git.git_status({ repo_path: "WORK" });
const lines: string[] = status.split("\n");
const image = await mcp.everything["get-tiny-image"]({});
image.map((block) => block.type);
const lost = await mcp.git.git_log({ repo_path: "WORK" });
lost.any.member.at.all;
lines.length;
"#;

/// The same with errors, marked as in [`PLANTED`].
const OBSERVED_PLANTED: &str = r#"const status = await mcp.git.git_status({ repo_path: "WORK" });
status.files; // TS2339
const sum: number = await mcp.everything["get-sum"]({ a: 1, b: 2 }); // TS2322
const image = await mcp.everything["get-tiny-image"]({});
image.data; // TS2339
image[0]?.pixels; // TS2339
sum;
"#;

/// Runs `tsc` on files of a folder, and returns the places of its errors: file, line and code.
fn tsc(folder: &Path, files: &[&str]) -> Vec<(String, usize, String)> {
    let program = cache().join("node/node_modules/typescript/bin/tsc");
    let mut command = Command::new(node());
    let output = command.arg(program).args(FLAGS).args(files).current_dir(folder).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // The lines below an error begin with spaces.
    let errors: Vec<_> = text.lines().filter(|line| !line.starts_with(' ')).map(error_place).collect();
    assert_eq!(output.status.success(), errors.is_empty(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    errors
}

/// The file, the line and the code of `plan.ts(2,62): error TS2322: …`.
fn error_place(line: &str) -> (String, usize, String) {
    let parts = line.split_once('(').and_then(|(file, rest)| Some((file, rest.split_once("): error ")?)));
    let (file, (place, message)) = parts.unwrap_or_else(|| panic!("no error of tsc: {line}"));
    let number = place.split(',').next().unwrap().parse().unwrap();
    (file.to_owned(), number, message.split(':').next().unwrap().to_owned())
}

/// The errors that the comments of a plan announce.
fn planted(file: &str, plan: &str) -> Vec<(String, usize, String)> {
    let marked = |(index, line): (usize, &str)| {
        let (_, code) = line.rsplit_once(" // TS")?;
        Some((file.to_owned(), index + 1, format!("TS{code}")))
    };
    plan.lines().enumerate().filter_map(marked).collect()
}

/// Checks a plan with the declarations in a project.
fn assert_errors(project: &Project, plan: &str) {
    std::fs::write(project.path("plan.ts"), project.plan(plan)).unwrap();
    assert_eq!(tsc(&project.path(""), &["mcp.d.ts", "plan.ts"]), planted("plan.ts", plan));
}

#[test]
fn tsc_accepts_a_correct_plan_for_real_servers_and_refuses_every_planted_error() {
    let project = Project::new();
    project.rehearse(&["types", "--timeout", "120", "-o", "mcp.d.ts"]);
    let live = std::fs::read_to_string(project.path("mcp.d.ts")).unwrap();
    assert_errors(&project, CORRECT);
    assert_errors(&project, PLANTED);
    // The lists of tools were saved.
    project.rehearse(&["types", "--offline", "-o", "mcp.d.ts"]);
    let saved = std::fs::read_to_string(project.path("mcp.d.ts")).unwrap();
    let declarations = |text: &str| text.split_once("declare const mcp").unwrap().1.to_owned();
    assert_eq!(declarations(&saved), declarations(&live));
}

#[tokio::test(flavor = "multi_thread")]
async fn results_without_an_output_schema_have_the_types_of_their_recordings() {
    let project = Project::new();
    project.rehearse(&["wrap", ".mcp.json"]);
    let plan = project.plan(
        r#"await mcp.git.git_status({ repo_path: "WORK" });
        await mcp.everything["get-sum"]({ a: 1, b: 2 });
        await mcp.everything["get-sum"]({ a: 3, b: 4 });
        await mcp.everything["get-tiny-image"]({});"#,
    );
    project.real_run(&plan, &["git", "everything"], |builder| builder.legacy(Revision::V2025_11_25)).await;
    project.rehearse(&["cache", "import", "trace.jsonl"]);
    project.rehearse(&["types", "--offline", "--server", "git", "--server", "everything", "-o", "mcp.d.ts"]);
    let declared = std::fs::read_to_string(project.path("mcp.d.ts")).unwrap();
    assert!(declared.contains("observed in 2 recorded results"), "{declared}");
    assert_errors(&project, OBSERVED);
    assert_errors(&project, OBSERVED_PLANTED);
}

#[test]
fn tsc_accepts_the_correct_example_plans_and_refuses_the_mistakes() {
    let plans = folder().join("../../examples/plans");
    let temporary = tempfile::tempdir().unwrap();
    let declarations = temporary.path().join("mcp.d.ts");
    let mut command = Command::new(rehearse());
    command.args(["types", "--no-cache", "--config", "/dev/stdin", "--override", "files=files.mock.yaml", "-o"]);
    let empty = temporary.path().join("none.json");
    std::fs::write(&empty, r#"{"mcpServers": {}}"#).unwrap();
    command.arg(&declarations).current_dir(&plans).stdin(std::fs::File::open(empty).unwrap());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let check = |plan: &str| tsc(&plans, &[declarations.to_str().unwrap(), plan]);
    let mut accepted = Vec::new();
    for entry in std::fs::read_dir(&plans).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".ts") && name != "mistakes.ts" {
            assert_eq!(check(&name), [], "{name}");
            accepted.push(name);
        }
    }
    assert!(accepted.len() >= 2, "{accepted:?}");
    let mistakes = check("mistakes.ts");
    let lines: Vec<_> = mistakes.iter().map(|(_, line, code)| (*line, code.as_str())).collect();
    assert_eq!(lines, [(2, "TS2353"), (5, "TS2322"), (7, "TS2339")]);
}

/// Tests of the suite with valid objects that a type refuses for another reason than an undeclared member.
const NARROWER: [&str; 6] = [
    // A schema without `type` accepts objects, whatever its keywords are for.
    "ignore",
    "pseudo-array",
    "not array is valid",
    "root pointer ref",
    // TypeScript finds `toString` on every object.
    "none of the properties mentioned",
    // TypeScript has no patterns: all members have the type of one of them.
    "regexes are case sensitive",
];

#[test]
fn types_of_all_schemas_of_the_test_suite_compile_and_accept_valid_arguments() {
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (draft, dialect) in [
        ("draft7", "http://json-schema.org/draft-07/schema#"),
        ("draft2020-12", "https://json-schema.org/draft/2020-12/schema"),
    ] {
        let (mut tools, mut plan, mut labels) = (Vec::new(), String::new(), Vec::new());
        let mut files: Vec<_> =
            std::fs::read_dir(suite().join(draft)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        for file in files {
            let groups: Vec<Value> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            for group in groups {
                let mut schema = group["schema"].clone();
                if let Some(keywords) = schema.as_object_mut() {
                    keywords.entry("$schema").or_insert(json!(dialect));
                }
                let name = format!("tool-{}", tools.len());
                tools.push(json!({ "name": name, "inputSchema": schema, "outputSchema": schema }));
                for test in group["tests"].as_array().unwrap() {
                    if test["valid"] == json!(true) && test["data"].is_object() {
                        plan += &format!("await mcp.server[{name:?}]({});\n", test["data"]);
                        labels.push(format!("{draft}: {}: {}", group["description"], test["description"]));
                    }
                }
            }
        }
        let options = DryRunOptions::new(Catalogue::default().with_tools("server", tools));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mcp.d.ts"), types(&options, "cargo test", "mcp.d.ts").unwrap()).unwrap();
        std::fs::write(folder.path().join("plan.ts"), plan).unwrap();
        for (file, line, code) in tsc(folder.path(), &["mcp.d.ts", "plan.ts"]) {
            assert_eq!(file, "plan.ts", "line {line} of the declarations: {code}");
            // A member that the schema allows and does not name.
            if code != "TS2353" {
                refused.entry(labels[line - 1].clone()).or_default().push(code);
            }
        }
        assert!(labels.len() > 100, "{draft} has {} valid objects", labels.len());
    }
    refused.retain(|label, _| !NARROWER.iter().any(|known| label.contains(known)));
    assert!(refused.is_empty(), "{refused:#?}");
}
