//! `rehearse request`

use crate::stage::{Stage, rehearse};

#[test]
fn the_result_is_printed_as_json() {
    rehearse!(Stage::new(), "rehearse request resources/templates/list --protocol legacy -- tiny-server", @r#"
exit: 0
----- stdout -----
{
  "resourceTemplates": [
    {
      "uriTemplate": "tiny://greeting/{name}",
      "name": "greeting for a name",
      "title": "Greeting for a name",
      "description": "A line of text for somebody",
      "mimeType": "text/plain"
    }
  ]
}
"#);
    rehearse!(Stage::new(), "rehearse request ping --json --protocol legacy -- tiny-server", @r"
exit: 0
----- stdout -----
{}
");
}

#[test]
fn params_come_from_the_line_a_file_or_stdin() {
    let stage = Stage::new().file("params.json", r#"{"uri": "tiny://greeting"}"#);
    let line = r#"rehearse request resources/read --json --protocol legacy --params '{"uri": "tiny://greeting"}' -- tiny-server"#;
    rehearse!(stage, line, @r#"
exit: 0
----- stdout -----
{"contents":[{"uri":"tiny://greeting","mimeType":"text/plain","text":"Hello from tiny-server"}]}
"#);
    let line = "rehearse request resources/read --json --protocol legacy --params @params.json -- tiny-server";
    rehearse!(stage, line, @r#"
exit: 0
----- stdout -----
{"contents":[{"uri":"tiny://greeting","mimeType":"text/plain","text":"Hello from tiny-server"}]}
"#);
    let line = "rehearse request resources/read --json --protocol legacy --params - -- tiny-server < params.json";
    rehearse!(stage, line, @r#"
exit: 0
----- stdout -----
{"contents":[{"uri":"tiny://greeting","mimeType":"text/plain","text":"Hello from tiny-server"}]}
"#);
}

#[test]
fn params_that_are_not_json_are_told_with_their_place() {
    rehearse!(Stage::new(), "rehearse request tools/list --params '{cursor: 1}' -- tiny-server", @r#"
exit: 2
----- stderr -----
error: --params, line 1, column 2: not JSON: key must be a string
hint: quote it for the shell: --params '{"key": "value"}'; --params @FILE reads a file
"#);
    rehearse!(Stage::new(), "rehearse request tools/list --params @nowhere.json -- tiny-server", @r"
exit: 2
----- stderr -----
error: cannot read nowhere.json: No such file or directory (os error 2)
");
}

#[test]
fn a_method_that_is_misspelled_gets_a_suggestion() {
    rehearse!(Stage::new(), "rehearse request tool/list -- tiny-server", @r"
exit: 1
----- stderr -----
error: -32601: tool/list
hint: did you mean `tools/list`?
");
    rehearse!(Stage::new(), "rehearse request acme/approve --json -- tiny-server", @r#"
exit: 1
----- stdout -----
{"code":-32601,"message":"acme/approve"}
----- stderr -----
error: -32601: acme/approve
"#);
}
