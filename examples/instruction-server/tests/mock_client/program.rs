//! The program: its folder, its stderr and its exit.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

use instruction_server::InstructionClient;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rehearsal::Client;
use rehearsal::testing::{Project, assert_contains, assert_success};
use rehearsal::transport::StopOutcome;
use serde_json::json;

use crate::fixture::{INSTRUCTIONS, SERVER, Setting, initialized_project, sample_instructions, start};

/// Runs the server on an empty stdin.
fn run(project: &Project, arguments: &[&str]) -> (Output, String) {
    let mut command = Command::new(SERVER);
    command.args(arguments).current_dir(project.path()).env_remove("INSTRUCTIONS_PATH").stdin(Stdio::null());
    let output = command.output().unwrap();
    let talk = String::from_utf8(output.stderr.clone()).unwrap();
    (output, talk)
}

#[tokio::test]
async fn a_file_with_bad_front_matter_is_reported_and_skipped() {
    let project = initialized_project()
        .file(format!("{INSTRUCTIONS}/broken.md"), "---\ntitle: Broken\ncategory: test\ntag: [x]\n---\nbroken words\n")
        .file(format!("{INSTRUCTIONS}/binary.md"), b"\xff\xfe")
        .file(format!("{INSTRUCTIONS}/plain.md"), "# No front matter\n");
    let (output, talk) = run(&project, &["--instructions", INSTRUCTIONS]);
    assert!(output.status.success() && output.stdout.is_empty());
    let expected = format!(
        "{INSTRUCTIONS}/binary.md: not UTF-8 from byte 0 on; the file is left out\n\
         {INSTRUCTIONS}/broken.md:4: unknown field `tag`, expected one of title, category, description, tags, triggers, \
         commands; the file is left out\n\
         {INSTRUCTIONS}/plain.md:1: no front matter: the first line must be `---`; the file is left out\n\
         10 instructions in {INSTRUCTIONS}\n"
    );
    assert_eq!(talk, expected);

    let client = start(Setting::Stdio, project).await;
    assert_success(&client.route_instructions("broken words").await.unwrap());
    let all = client.get_instructions().await.unwrap();
    assert!(!all.content().contains("broken words"));
}

#[tokio::test]
async fn an_empty_folder_is_served_and_reported_as_empty() {
    let project = Project::new().file(format!("{INSTRUCTIONS}/README.txt"), "no Markdown");
    let (output, talk) = run(&project, &["--instructions", INSTRUCTIONS]);
    assert!(output.status.success());
    assert_eq!(talk, format!("no instructions in {INSTRUCTIONS}\n"));

    let client = start(Setting::Stdio, project).await;
    let response = client.route_instructions("anything").await.unwrap();
    assert_contains(&response, "No instruction has to do with that.");
    assert_contains(&client.get_instructions().await.unwrap(), "There are no instructions.");
}

#[test]
fn a_folder_that_does_not_exist_is_bad_input() {
    let (output, talk) = run(&Project::new(), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(talk.starts_with("instruction-server: cannot read the folder ./instructions: "), "{talk}");
    assert!(talk.ends_with("hint: name it with --instructions DIR or INSTRUCTIONS_PATH\n"), "{talk}");
}

#[tokio::test]
async fn the_folder_is_the_option_else_the_variable_else_the_one_beside() {
    let one = |name: &str| format!("---\ntitle: {name}\ncategory: test\n---\n{name}\n");
    let project = Project::new()
        .file("instructions/default.md", one("default"))
        .file("variable/nested/variable.md", one("variable"))
        .file("option/option.md", one("option"));
    let results = async |arguments: &[&str], variable: Option<&str>| {
        let builder = Client::command(SERVER).args(arguments.iter().copied()).current_dir(project.path());
        let builder = variable.into_iter().fold(builder, |builder, value| builder.env("INSTRUCTIONS_PATH", value));
        let client = builder.connect().await.unwrap();
        client.get_instructions().await.unwrap().content()
    };
    assert_eq!(results(&[], None).await, "1. default (default, test)\n\ndefault");
    assert_eq!(results(&[], Some("variable")).await, "1. variable (nested/variable, test)\n\nvariable");
    assert_eq!(results(&["--instructions", "option"], Some("variable")).await, "1. option (option, test)\n\noption");
}

#[tokio::test]
async fn a_listening_server_exits_cleanly_at_sigterm_with_a_connected_client() {
    let client = start(Setting::Http, initialized_project()).await;
    assert_success(&client.route_instructions("/pongogo-retro").await.unwrap());
    assert_eq!(client.close().await, StopOutcome::Terminated);
}

#[test]
fn a_server_on_stdio_ends_cleanly_at_sigterm() {
    let mut command = Command::new(SERVER);
    command.arg("--instructions").arg(sample_instructions()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.stderr(Stdio::null()).spawn().unwrap();
    // Its first answer shows that it handles signals, too.
    let client_info = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let mut stdin = process.stdin.take().unwrap();
    writeln!(stdin, "{initialize}").unwrap();
    let mut answer = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut answer).unwrap();
    assert!(answer.contains("instruction-server"), "{answer}");
    kill(Pid::from_raw(process.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert!(process.wait().unwrap().success());
}
