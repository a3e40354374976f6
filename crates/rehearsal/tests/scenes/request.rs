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
