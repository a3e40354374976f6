//! `rehearse wrap` and `rehearse unwrap`

use std::path::Path;

use crate::fixture::{Fixture, rehearse};
use crate::trace_contents::sessions;

const CONFIG: &str = r#"{
  // What I use.
  "mcpServers": {
    "tiny": {
      "command": "tiny-server",
      "args": [
        "--only", "legacy"
      ],
      "env": { "TOKEN": "${TOKEN:-none}" },
    },
    "bare": {"command": "tiny-server"},
    "remote": { "type": "http", "url": "https://example.com/mcp" }
  }
}
"#;

/// The program by its whole path, as it stands in what was wrapped.
fn shown(fixture: &Fixture, line: &str) -> String {
    fixture.run(line).replace(env!("CARGO_BIN_EXE_rehearse"), "[REHEARSE]")
}

#[test]
fn servers_are_wrapped_recorded_and_put_back_byte_by_byte() {
    let fixture = Fixture::new()
        .file(".mcp.json", &CONFIG.replace("  // What I use.\n", "").replace("\" },\n    },", "\" }\n    },"));
    let before = std::fs::read(fixture.path().join(".mcp.json")).unwrap();
    insta::assert_snapshot!(shown(&fixture, "rehearse wrap .mcp.json && sed -n 4,10p .mcp.json"), @r#"
    exit: 0
    ----- stdout -----
          "command": "[REHEARSE]",
          "args": ["record", "--quiet", "--output", "[DIR]/trace.jsonl", "--metadata", "server=tiny", "--", "tiny-server",
            "--only", "legacy"
          ],
          "env": { "TOKEN": "${TOKEN:-none}" }
        },
        "bare": {"command": "[REHEARSE]", "args": ["record", "--quiet", "--output", "[DIR]/trace.jsonl", "--metadata", "server=bare", "--", "tiny-server"]},
    ----- stderr -----
    tiny: wrapped; recorded in [DIR]/trace.jsonl
    bare: wrapped; recorded in [DIR]/trace.jsonl
    remote: NOT wrapped, it is at https://example.com/mcp; run `rehearse record --url https://example.com/mcp --listen 127.0.0.1:8808 -o [DIR]/trace.jsonl` and write the URL that it prints in its place
    "#);
    rehearse!(fixture, "rehearse wrap .mcp.json --server tiny", @"
    exit: 0
    ----- stderr -----
    tiny: was wrapped already
    ");
    rehearse!(fixture, "rehearse call echo message=hello --config .mcp.json --server tiny", @r"
exit: 0
----- stdout -----
hello
");
    let sessions = sessions(&fixture.path().join("trace.jsonl"));
    assert_eq!(sessions[0].start.metadata["server"], "tiny");
    rehearse!(fixture, "rehearse unwrap .mcp.json; ls -A", @r"
    exit: 0
    ----- stdout -----
    .mcp.json
    trace.jsonl
    ----- stderr -----
    unwrapped 2 servers: restored .mcp.json
    ");
    assert_eq!(std::fs::read(fixture.path().join(".mcp.json")).unwrap(), before);
}

#[test]
fn one_server_is_wrapped_in_a_file_with_comments() {
    let fixture = Fixture::new().file("mcp.json", CONFIG);
    insta::assert_snapshot!(shown(&fixture, "rehearse wrap mcp.json --server bare -o today.jsonl; diff mcp.json.rehearsal-backup mcp.json"), @r#"
    exit: 1
    ----- stdout -----
    11c11
    <     "bare": {"command": "tiny-server"},
    ---
    >     "bare": {"command": "[REHEARSE]", "args": ["record", "--quiet", "--output", "[DIR]/today.jsonl", "--metadata", "server=bare", "--", "tiny-server"]},
    ----- stderr -----
    bare: wrapped; recorded in [DIR]/today.jsonl
    "#);
    rehearse!(fixture, "rehearse wrap mcp.json --server remote", @"
    exit: 2
    ----- stderr -----
    remote: NOT wrapped, it is at https://example.com/mcp; run `rehearse record --url https://example.com/mcp --listen 127.0.0.1:8808 -o [DIR]/trace.jsonl` and write the URL that it prints in its place
    error: no server in mcp.json can be wrapped
    ");
    rehearse!(fixture, "rehearse unwrap mcp.json", @r"
    exit: 0
    ----- stderr -----
    unwrapped 1 server: restored mcp.json
    ");
    assert_eq!(std::fs::read_to_string(fixture.path().join("mcp.json")).unwrap(), CONFIG);
}

#[test]
fn edits_after_wrap_survive_unwrap() {
    let fixture = Fixture::new().file("mcp.json", CONFIG);
    fixture.run("rehearse wrap mcp.json");
    edit(&fixture.path().join("mcp.json"), "What I use", "What I like");
    rehearse!(fixture, "rehearse unwrap mcp.json; diff mcp.json.rehearsal-backup mcp.json", @r#"
    exit: 1
    ----- stdout -----
    2c2
    <   // What I use.
    ---
    >   // What I like.
    11c11
    <     "bare": {"command": "tiny-server"},
    ---
    >     "bare": {"command": "tiny-server", "args": []},
    ----- stderr -----
    unwrapped 2 servers in mcp.json; the file was edited since it was wrapped, and the edits stay; the original is in mcp.json.rehearsal-backup
    "#);
    rehearse!(fixture, "rehearse unwrap mcp.json", @"
    exit: 2
    ----- stderr -----
    error: nothing in mcp.json is wrapped
    ");
    rehearse!(fixture, "rehearse wrap mcp.json", @r"
    exit: 2
    ----- stderr -----
    error: mcp.json.rehearsal-backup is the backup of an earlier wrap, but nothing in mcp.json is wrapped
    hint: compare the two, then remove or rename mcp.json.rehearsal-backup
    ");
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn every_common_config_is_restored_byte_by_byte() {
    let shapes = [
        "\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": { \"command\": \"tiny-server\", \"args\": [\r\n\t\t\t\"--stdio\"\r\n\t\t] }\r\n\t}\r\n}",
        r#"{"inputs":[{"id":"k"}],"servers":{"a":{"type":"stdio","command":"${workspaceFolder}/x","args":["${input:k}"],"envFile":".env"}}}"#,
        "{ // settings.json\n  \"editor.fontSize\": 12, /* all\n of it */ \"mcp\": {\"servers\": {\"a\": {\"command\": \"x\",},},},\n}\n",
        r#"{"mcp":{"a":{"type":"local","command":["npx","-y","x"],"enabled":true},"b":{"type":"remote","url":"https://x.example"}}}"#,
        r#"{"context_servers":{"a":{"command":"x","args":null,"env":null}}}"#,
        r#"{"mcpServers":{"a":{"httpUrl":"https://x.example"},"b":{"command":"\u0078","args":[]}},"projects":{"/p":{"mcpServers":{"c":{"command":"y"}}}}}"#,
    ];
    for (number, shape) in shapes.iter().enumerate() {
        let fixture = Fixture::new().file("mcp.json", shape);
        let path = fixture.path().join("mcp.json");
        let output = fixture.run("rehearse wrap mcp.json");
        assert!(output.starts_with("exit: 0\n"), "{number}: {output}");
        let wrapped = std::fs::read_to_string(&path).unwrap();
        assert!(wrapped.contains("\"record\", \"--quiet\""), "{number}: {wrapped}");
        let output = fixture.run("rehearse wrap mcp.json && rehearse unwrap mcp.json");
        assert!(output.starts_with("exit: 0\n") && output.contains("restored mcp.json"), "{number}: {output}");
        assert_eq!(std::fs::read(&path).unwrap(), shape.as_bytes(), "{number}");
        assert_eq!(std::fs::read_dir(fixture.path()).unwrap().count(), 1, "{number}: the backup is gone");
    }
}

#[test]
fn a_file_that_cannot_be_wrapped_is_explained_and_left_alone() {
    let fixture = Fixture::new().file("bad.json", "{\n  \"mcpServers\": {,}\n}\n").file("none.json", "{}");
    rehearse!(fixture, "rehearse wrap bad.json", @"
    exit: 2
    ----- stderr -----
    error: bad.json:2:18: not JSON: expected a key in quotes or `}`
    ");
    rehearse!(fixture, "rehearse wrap none.json", @"
    exit: 2
    ----- stderr -----
    error: none.json: no servers: none of `mcpServers`, `servers`, `mcp.servers`, `context_servers`, `amp.mcpServers` or `mcp`
    ");
    rehearse!(fixture, "ls -A", @"
    exit: 0
    ----- stdout -----
    bad.json
    none.json
    ");
}
