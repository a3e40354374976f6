//! Naming a server.

use crate::fixture::{Fixture, rehearse};

#[test]
fn without_a_server_the_ways_to_name_one_are_shown() {
    rehearse!(Fixture::new(), "rehearse list", @r"
    exit: 2
    ----- stderr -----
    error: no server
    hint: start a server: rehearse list -- npx -y @modelcontextprotocol/server-everything
    hint: use a URL:      rehearse list --url http://127.0.0.1:3000/mcp
    hint: run an image:   rehearse list --container my-server:latest
    hint: from a file:    rehearse list --config .mcp.json --server NAME
    ");
}

#[test]
fn a_command_without_dashes_gets_a_hint() {
    rehearse!(Fixture::new(), "rehearse list tiny-server", @r"
    exit: 2
    ----- stderr -----
    error: there is no argument `tiny-server` here
    hint: usage: rehearse list [OPTIONS] [-- <COMMAND>...]
    hint: the command of a server comes after `--`: rehearse list -- npx -y some-server
    ");
}

#[test]
fn a_server_can_be_looked_up_in_a_file() {
    let config = r#"{"mcpServers": {"tiny": {"command": "tiny-server", "args": ["--only", "${ERA:-legacy}"]}}}"#;
    let fixture = Fixture::new().file(".mcp.json", config);
    rehearse!(fixture, "rehearse call echo message=hello --config .mcp.json --server tiny", @r"
exit: 0
----- stdout -----
hello
");
    rehearse!(fixture, "ERA=none rehearse call echo message=hello --config .mcp.json --server tiny", @r#"
exit: 3
----- stderr -----
error: the server exited with status 2 before it answered initialize
  the server's process ended: exit status: 2
  last lines of its stderr:
    tiny-server: --only must be legacy or modern
    hint: tiny-server --help
"#);
    rehearse!(fixture, "rehearse list --config .mcp.json --server tny", @r#"
exit: 2
----- stderr -----
error: .mcp.json has no server "tny"; did you mean "tiny"?
"#);
}

#[test]
fn options_that_would_change_nothing_are_refused() {
    rehearse!(Fixture::new(), "rehearse list --header 'X-Key: 1' -- tiny-server", @r"
    exit: 2
    ----- stderr -----
    error: --header has no effect: it is for servers that are reached by a URL
    ");
}

#[test]
fn the_servers_variables_and_directory_can_be_set() {
    let fixture = Fixture::new().file("server", "echo $GREETING from $(basename $PWD) >&2; exit 1");
    std::fs::create_dir(fixture.path().join("home")).unwrap();
    rehearse!(fixture, "rehearse list --protocol legacy --env GREETING=hello --cwd home -- sh ../server", @r"
exit: 3
----- stderr -----
error: the server exited with status 1 before it answered initialize
  the server's process ended: exit status: 1
  last lines of its stderr:
    hello from home
");
}

#[test]
fn the_files_of_all_clients_are_read_as_wrap_reads_them() {
    let settings = "{ // settings.json\n  \"mcp\": {\"servers\": {\"tiny\": {\"command\": \"tiny-server\",},},},\n}\n";
    let opencode = r#"{"mcp":{"tiny":{"type":"local","command":["tiny-server"],"enabled":true}}}"#;
    let fixture = Fixture::new().file("settings.json", settings).file("opencode.json", opencode);
    for file in ["settings.json", "opencode.json"] {
        let output = fixture.run(&format!("rehearse call add a=1 b=2 --config {file} --server tiny"));
        assert_eq!(output, "exit: 0\n----- stdout -----\n3\n", "{file}");
    }
    let latin = fixture.run("printf '{\n \\351}' > latin.json; rehearse list --config latin.json --server a");
    assert!(latin.contains("error: latin.json:2:2: not UTF-8: invalid byte 0xE9; save"), "{latin}");
}
