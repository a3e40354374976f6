//! Plans for real servers: a dry run returns what a real run returned, finds planted mistakes, and changes nothing.
//!
//! ```text
//! plan ──► real run on recorded servers ──► trace ──► cache ──► dry run without servers: the same result
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

use rehearsal::Client;
use rehearsal::client::{ClientBuilder, ServerResponse};
use rehearsal::config::read_config;
use rehearsal::core::protocol::Revision;
use rehearsal::dry_run::{AnswerOrigin, Catalogue, DryRunOptions, Plan};
use rehearsal::record::{HttpRecording, Recorder};
use rehearsal_sandbox::{CallOutcome, Deliver, ErrorKind, Host, Idle, PlanCall, Program, RunOptions, Worker, compile};
use rehearsal_wire::http::proxy::HttpProxyOptions;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::installation::{TIMEOUT, node, npm_server, python};
use crate::mocked::rehearse;
use crate::server_everything;
use crate::servers::git;

/// A plan that uses five servers; `WORK` is a folder. It calls the same tool twice around a change.
const WHOLE: &str = r#"const folder = "WORK";
const { filesystem, memory, time, everything } = mcp;

const before = await filesystem.list_directory({ path: folder });
const note = await filesystem.read_text_file({ path: `${folder}/note.txt` });
await filesystem.write_file({ path: `${folder}/copy.txt`, content: note.content.toUpperCase() });
const after = await filesystem.list_directory({ path: folder });
const files: string[] = after.content.split("\n").filter((line: string) => line.startsWith("[FILE] "));
const names = files.map((line) => line.slice("[FILE] ".length));
const texts = await Promise.all(
  names.map(async (name) => (await filesystem.read_text_file({ path: `${folder}/${name}` })).content as string),
);
let missing = "";
try {
  await filesystem.read_text_file({ path: `${folder}/missing.txt` });
} catch (error) {
  missing = `${error.kind}: ${error.message}`;
}

const status = async () => mcp.git.git_status({ repo_path: folder });
const untracked = await status();
await mcp.git.git_add({ repo_path: folder, files: ["copy.txt"] });
const staged = await status();
const commit = await mcp.git["git_commit"]({ repo_path: folder, message: `Copy ${names.length} files` });
const log = await mcp.git.git_log({ repo_path: folder, max_count: 1 });

const empty = await memory.read_graph();
await memory.create_entities({
  entities: names.map((name, index) => ({ name, entityType: "file", observations: [texts[index]] })),
});
const graph = await memory.read_graph();
const found = await memory.search_nodes({ query: "COPY" });

const tokyo = await time.convert_time({ source_timezone: "UTC", time: "12:00", target_timezone: "Asia/Tokyo" });
const times = [await time.get_current_time({ timezone: "UTC" }), await time.get_current_time({ timezone: "UTC" })];
const nowhere = await time.get_current_time({ timezone: "No/Where" }).catch((error: Error) => error.message);

const sum = await everything["get-sum"]({ a: names.length, b: 40 });
const weather = await everything["get-structured-content"]({ location: "Chicago" });
const image = await everything["get-tiny-image"]({});
const links = await everything["get-resource-links"]({ count: 2 });
await everything["trigger-long-running-operation"]({ duration: 0.3, steps: 2 });
({
  before, note, after, names, texts, missing, untracked, staged, commit, log, empty, graph, found, tokyo, times, nowhere,
  sum, weather, image, links,
});
"#;

/// A plan for a server over HTTP.
const OVER_HTTP: &str = r#"const sums = [];
for (let i = 0; i < 5; i++) sums.push(await mcp.everything["get-sum"]({ a: i, b: i }));
const twice = await Promise.all([1, 2].map(() => mcp.everything.echo({ message: "again" })));
return { sums, twice, weather: await mcp.everything["get-structured-content"]({ location: "New York" }) };
"#;

/// A plan for the servers that support both eras.
const BOTH_ERAS: &str = r#"const repo_path = "WORK";
const branches = async () => await mcp.git.git_branch({ repo_path, branch_type: "local" });
const before = await branches();
await mcp.git.git_create_branch({ repo_path, branch_name: "other" });
return [before, await branches(), await mcp.time.get_current_time({ timezone: "Asia/Tokyo" })];
"#;

/// A plan with mistakes: each line ends with the errors that it must get, in any order.
const MISTAKES: &str = r#"const folder = "WORK";
await mcp.filesystem.write_file({ path: `${folder}/new.txt`, content: 7 }); // error: filesystem:write_file: $.content: expected string, got number
await mcp.filesystem.create_directory({ path: `${folder}/new` });
await mcp.filesystem.remove_file({ path: `${folder}/note.txt` }); // error: no tool filesystem:remove_file
const { content } = await mcp.filesystem.read_text_file({
  path: `${folder}/note.txt`,
});
await mcp.filesystem.edit_file({ path: `${folder}/note.txt`, edits: [{ oldText: "a", newText: 1 }, {}] }); // error: filesystem:edit_file: $.edits[0].newText: expected string, got number // error: filesystem:edit_file: $.edits[1].oldText: missing, expected string // error: filesystem:edit_file: $.edits[1].newText: missing, expected string
await mcp.filesystem.move_file({ source: `${folder}/note.txt`, destination: `${folder}/moved.txt` });
await mcp.memory.create_entities({ entities: [{ name: "Ada", entityType: "person", observations: "one" }] }); // error: memory:create_entities: $.entities[0].observations: expected array, got string
await mcp.memory.create_entities({ entities: [{ name: "Ada", entityType: "person", observations: ["one"] }] });
const add = (files: unknown) => mcp.git.git_add({ repo_path: folder, files }); // error: git:git_add: $.files: expected array, got string
await add("note.txt");
await add(["note.txt"]);
await mcp.git.git_commit({ repo_path: folder, message: "A commit" });
await mcp.time.convert_time({ source_timezone: "UTC", time: "12:00" }); // error: time:convert_time: $.target_timezone: missing, expected string
await mcp.clock.now({}); // error: no server clock, called as clock:now
await mcp.everything["get-structured-content"]({ location: "Oslo" }); // error: everything:get-structured-content: $.location: expected one of ["New York","Chicago","Los Angeles"], got "Oslo"
if (content === "something else") {
  await mcp.everything["get-sum"]({ a: "1", b: 2 }); // error: everything:get-sum: $.a: expected number, got string
  await mcp.everything.get_sum({ a: 1, b: 2 }); // error: no tool everything:get_sum
}
"#;

/// A folder with the configuration of a client, a repository for the servers to work in, and a cache.
pub(crate) struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    pub(crate) fn new() -> Project {
        let project = Project { folder: tempfile::tempdir().unwrap() };
        let work = project.work();
        std::fs::create_dir_all(project.path(".rehearsal")).unwrap();
        std::fs::create_dir_all(&work).unwrap();
        git(&work, &["init", "--quiet", "--initial-branch=main"]);
        for setting in [["user.name", "Ada"], ["user.email", "ada@example.com"]] {
            git(&work, &["config", setting[0], setting[1]]);
        }
        std::fs::write(work.join("note.txt"), "a note\nof two lines\n").unwrap();
        git(&work, &["add", "."]);
        git(&work, &["commit", "--quiet", "-m", "the first commit"]);
        let (node, memory) = (node(), project.path("memory.jsonl"));
        project.configure(json!({
            "filesystem": { "command": node, "args": [npm_server("server-filesystem"), work] },
            "memory": { "command": node, "args": [npm_server("server-memory")], "env": { "MEMORY_FILE_PATH": memory } },
            "git": { "command": python("mcp-server-git"), "args": ["--repository", work] },
            "time": { "command": python("mcp-server-time"), "args": ["--local-timezone", "UTC"] },
            "everything": { "command": node, "args": [npm_server("server-everything"), "stdio"] },
        }));
        project
    }

    fn configure(&self, servers: Value) {
        std::fs::write(self.path(".mcp.json"), json!({ "mcpServers": servers }).to_string()).unwrap();
    }

    /// Replaces the command of every server: starting one leaves the file `started`.
    fn break_servers(&self) {
        let text = std::fs::read_to_string(self.path(".mcp.json")).unwrap();
        let config: Value = serde_json::from_str(&text).unwrap();
        let names = config["mcpServers"].as_object().unwrap().keys();
        let broken = json!({ "command": "touch", "args": [self.path("started")] });
        self.configure(names.map(|name| (name.clone(), broken.clone())).collect());
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn work(&self) -> PathBuf {
        self.path("work")
    }

    pub(crate) fn plan(&self, text: &str) -> String {
        text.replace("WORK", self.work().to_str().unwrap())
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        Command::new(rehearse()).args(arguments).current_dir(self.folder.path()).output().unwrap()
    }

    pub(crate) fn rehearse(&self, arguments: &[&str]) {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// The exit status and the report of a plan.
    fn dry_run(&self, plan: &str, flags: &[&str]) -> (i32, Value) {
        std::fs::write(self.path("plan.ts"), plan).unwrap();
        let output = self.run(&[&["dry-run", "plan.ts", "--json", "--timeout", "120"], flags].concat());
        let report = serde_json::from_slice(&output.stdout);
        let report = report.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        (output.status.code().unwrap(), report)
    }

    /// The dry run with broken servers: it must return what the real run returned, only from the cache.
    fn assert_same_without_servers(&self, plan: &str, real: &Value) -> Value {
        self.break_servers();
        let (status, report) = self.dry_run(plan, &["--offline"]);
        assert_eq!(status, 0, "{}", report["findings"]);
        assert_eq!(&report["simulated_result"], real);
        let sources = report["tools_called"].as_array().unwrap().iter().map(|call| &call["answer"]["_source"]);
        assert!(sources.clone().all(|source| source == "capability_cache"), "{:?}", sources.collect::<Vec<_>>());
        let validation = &report["validation"];
        assert_eq!(validation["cache_misses"], 0);
        assert_eq!(validation["cache_hits"], report["tools_called"].as_array().unwrap().len());
        assert!(!self.path("started").exists(), "the dry run started a server");
        report
    }

    /// Runs a plan on the servers of the configuration.
    pub(crate) async fn real_run(
        &self,
        plan: &str,
        servers: &[&str],
        protocol: impl Fn(ClientBuilder) -> ClientBuilder,
    ) -> Value {
        let mut clients = BTreeMap::new();
        for name in servers {
            let entry = read_config(&self.path(".mcp.json"), name, |_| None).unwrap();
            let builder = protocol(ClientBuilder::from(entry).timeout(TIMEOUT));
            clients.insert((*name).to_owned(), builder.connect().await.unwrap());
        }
        real_run(plan, clients).await
    }
}

/// Runs a plan on servers, then closes the connections.
async fn real_run(plan: &str, clients: BTreeMap<String, Client>) -> Value {
    for client in clients.values() {
        client.list_tools().await.unwrap();
    }
    let value = tokio::task::block_in_place(|| {
        let compiled = compile("plan.ts", plan).unwrap_or_else(|errors| panic!("{errors:?}"));
        let program = Program::new(rehearse(), ["__rehearsal-plan-worker"]);
        let mut host = RealHost { clients: &clients, now_ms: 0.0 };
        let outcome = Worker::start(&program).unwrap().run(&compiled, &RunOptions::default(), &mut host);
        serde_json::from_str(outcome.result.unwrap().get()).unwrap()
    });
    for (_, client) in clients {
        client.close().await;
    }
    value
}

/// Sends the calls of a plan to servers, one after the other.
struct RealHost<'a> {
    clients: &'a BTreeMap<String, Client>,
    now_ms: f64,
}

impl Host for RealHost<'_> {
    fn idle(&mut self, batch: Idle) -> Deliver {
        let results = batch.calls.iter().map(|call| (call.id, self.call(call))).collect();
        self.now_ms += 1.0;
        Deliver::Results { now_ms: self.now_ms, results }
    }
}

impl RealHost<'_> {
    fn call(&self, call: &PlanCall) -> CallOutcome {
        let arguments: Value = serde_json::from_str(call.arguments.get()).unwrap();
        let call = self.clients[&call.server].call_tool(&call.tool, arguments);
        let response = Handle::current().block_on(call.into_future()).unwrap();
        match response.is_tool_error() {
            true => CallOutcome::Error {
                kind: ErrorKind::Tool,
                message: response.error_message().unwrap(),
                content: response.result()["content"].clone(),
            },
            false => CallOutcome::Value(to_raw_value(&value_of(&response)).unwrap()),
        }
    }
}

/// What a plan gets: structured content, else the text, parsed if it is JSON, else the blocks.
fn value_of(response: &ServerResponse) -> Value {
    if let Some(structured) = response.structured_content() {
        return structured.clone();
    }
    let blocks = response.result()["content"].as_array().unwrap();
    match blocks.iter().all(|block| block["type"] == "text") {
        true => serde_json::from_str(&response.content()).unwrap_or_else(|_| response.content().into()),
        false => blocks.clone().into(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_of_a_recorded_session_returns_its_result_without_servers() {
    let project = Project::new();
    let plan = project.plan(WHOLE);
    project.rehearse(&["wrap", ".mcp.json"]);
    let servers = ["filesystem", "memory", "git", "time", "everything"];
    let real = project.real_run(&plan, &servers, |builder| builder.legacy(Revision::V2025_11_25)).await;
    assert_ne!(real["before"], real["after"], "the same call has two results");
    assert_ne!(real["empty"], real["graph"], "the same call has two results");
    assert!(real["missing"].as_str().unwrap().ends_with("(plan.ts:15:9)"), "{}", real["missing"]);
    project.rehearse(&["cache", "import", "trace.jsonl"]);
    let report = project.assert_same_without_servers(&plan, &real);
    let duration = &report["estimated_duration_ms"];
    assert_eq!(duration["known"], duration["of"]);
    assert!(duration["p50"].as_f64().unwrap() >= 300.0, "a call takes 300 ms: {duration}");
    assert_eq!(report["confidence_reasons"].as_array().unwrap().len(), 1, "only that two calls fail");
    // A second import of the recording changes nothing.
    project.rehearse(&["cache", "import", "trace.jsonl"]);
    project.assert_same_without_servers(&plan, &real);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_over_http_is_found_as_well() {
    let project = Project::new();
    let server = server_everything::http("streamableHttp").await;
    project.configure(json!({ "everything": { "type": "http", "url": server.url } }));
    let recorder = Recorder::builder().trace(project.path("trace.jsonl")).build();
    let options = HttpProxyOptions::new("127.0.0.1:0".parse().unwrap(), &server.url).unwrap();
    let recording = HttpRecording::start(&recorder, options).await.unwrap();
    let client = Client::url(recording.url()).legacy(Revision::V2025_11_25).timeout(TIMEOUT).connect().await.unwrap();
    let real = real_run(OVER_HTTP, BTreeMap::from([("everything".to_owned(), client)])).await;
    recording.stop().await;
    // Without a cache of results the tools come from the server, over HTTP, and the answers from nothing better than schemas.
    let (status, report) = project.dry_run(OVER_HTTP, &[]);
    assert_eq!((status, &report["validation"]["cache_hits"]), (0, &json!(0)), "{report}");
    server.stop().await;
    project.rehearse(&["cache", "import", "trace.jsonl", "--server", "everything"]);
    project.assert_same_without_servers(OVER_HTTP, &real);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_either_era_is_found() {
    for revision in [Revision::V2025_11_25, Revision::LATEST_MODERN] {
        let project = Project::new();
        let plan = project.plan(BOTH_ERAS);
        project.rehearse(&["wrap", ".mcp.json", "-o", "today.jsonl"]);
        let protocol = |builder: ClientBuilder| match revision.has_handshake() {
            true => builder.legacy(revision),
            false => builder.modern(),
        };
        let real = project.real_run(&plan, &["git", "time"], protocol).await;
        assert_ne!(real[0], real[1], "{revision}");
        project.rehearse(&["cache", "import", "today.jsonl"]);
        project.assert_same_without_servers(&plan, &real);
    }
}

/// Every file below a folder with its time and contents.
fn files(folder: &Path) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => {
                let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
                found.insert(path.clone(), (modified, std::fs::read(&path).unwrap()));
            }
        }
    }
    found
}

/// The errors that a plan announces in its comments: line, column of the call, and message.
fn announced(plan: &str) -> Vec<(u64, u64, String)> {
    let mut errors = Vec::new();
    for (index, line) in plan.lines().enumerate() {
        let column = line.find("mcp.").unwrap_or_default() as u64 + 1;
        let messages = line.split(" // error: ").skip(1);
        errors.extend(messages.map(|message| (index as u64 + 1, column, message.to_owned())));
    }
    errors.sort();
    errors
}

#[tokio::test(flavor = "multi_thread")]
async fn planted_mistakes_are_found_at_their_lines_and_nothing_is_written() {
    let project = Project::new();
    let plan = project.plan(MISTAKES);
    let before = files(&project.work());
    let (status, live) = project.dry_run(&plan, &[]);
    assert_eq!(status, 1);
    let errors = live["findings"].as_array().unwrap().iter().filter(|finding| finding["severity"] == "error");
    let found = errors.map(|finding| {
        let place = &finding["place"];
        let number = |name: &str| place[name].as_u64().unwrap_or_default();
        (number("line"), number("column"), finding["message"].as_str().unwrap_or_default().to_owned())
    });
    let mut found: Vec<_> = found.collect();
    found.sort();
    assert_eq!(found, announced(&plan));
    assert_eq!(
        live["validation"]["missing_tools"],
        json!(["filesystem:remove_file", "clock:now", "everything:get_sum"])
    );
    assert_eq!(live["stops_at"], 1);
    let effects = live["side_effects"].as_array().unwrap().iter().map(|effect| effect["tool"].as_str().unwrap());
    let effects: Vec<_> = effects.collect();
    for tool in ["filesystem:write_file", "filesystem:move_file", "git:git_commit", "memory:create_entities"] {
        assert!(effects.contains(&tool), "{effects:?}");
    }
    // The same plan without servers: the tools were saved.
    project.break_servers();
    let (status, mut saved) = project.dry_run(&plan, &["--offline"]);
    assert_eq!(status, 1);
    let mut live = live;
    for report in [&mut live, &mut saved] {
        report["runs"] = Value::Null;
    }
    assert_eq!(saved, live);
    assert!(files(&project.work()) == before, "the folder has changed");
    assert!(!project.path("memory.jsonl").exists() && !project.path("started").exists());
    assert!(!is_in_a_command_line(project.folder.path()), "a server still runs");
}

/// Whether a process has a path in its command line.
fn is_in_a_command_line(path: &Path) -> bool {
    let path = path.to_str().unwrap();
    std::fs::read_dir("/proc").unwrap().any(|entry| {
        let command = std::fs::read(entry.unwrap().path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(path)
    })
}

/// Reads lines of `[schema, value]`, and prints those that are not valid.
const VALIDATE: &str = "
import json, sys
from jsonschema.validators import validator_for
for line in sys.stdin:
    name, schema, value = json.loads(line)
    validator = validator_for(schema)
    validator.check_schema(schema)
    for error in validator(schema, format_checker=validator.FORMAT_CHECKER).iter_errors(value):
        print(name, error.json_path, error.message)
";

#[tokio::test]
async fn the_examples_of_all_output_schemas_are_valid() {
    let project = Project::new();
    let mut catalogue = Catalogue::default();
    let (mut plan, mut schemas) = (String::new(), BTreeMap::new());
    for name in ["filesystem", "memory", "git", "time", "everything"] {
        let entry = read_config(&project.path(".mcp.json"), name, |_| None).unwrap();
        let client = ClientBuilder::from(entry).timeout(TIMEOUT).connect().await.unwrap();
        let listed = client.list_tools().await.unwrap();
        let tools: Vec<Value> = listed.iter().map(|tool| tool.raw.clone()).collect();
        for tool in &tools {
            let tool_name = tool["name"].as_str().unwrap();
            plan += &format!("await mcp.{name}[{:?}]({{}});\n", tool_name);
            if let Some(schema) = tool.get("outputSchema") {
                schemas.insert(format!("{name}:{tool_name}"), schema.clone());
            }
        }
        catalogue = catalogue.with_tools(name, tools);
        client.close().await;
    }
    assert!(schemas.len() >= 26, "{} tools have an output schema", schemas.len());
    let report = rehearsal::dry_run(&Plan::code("plan.ts", plan), &DryRunOptions::new(catalogue)).await.unwrap();
    let mut lines = String::new();
    for call in &report.tools_called {
        let expected =
            if schemas.contains_key(&call.tool) { AnswerOrigin::SchemaMock } else { AnswerOrigin::Placeholder };
        assert_eq!(call.answer.source, expected, "{}", call.tool);
        if let Some(schema) = schemas.remove(&call.tool) {
            lines += &format!("{}\n", json!([call.tool, schema, call.answer.value]));
        }
    }
    assert!(schemas.is_empty(), "these tools were not called: {:?}", schemas.keys());
    let examples = project.path("examples.jsonl");
    std::fs::write(&examples, lines).unwrap();
    let mut validate = Command::new(python("python"));
    let output = validate.args(["-c", VALIDATE]).stdin(std::fs::File::open(examples).unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}
