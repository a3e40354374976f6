//! `rehearse request`

use crate::fixture::{Fixture, rehearse};

#[test]
fn the_result_is_printed_as_json() {
    rehearse!(Fixture::new(), "rehearse request resources/templates/list --protocol legacy -- tiny-server", @r#"
exit: 0
----- stdout -----
{
  "resourceTemplates": [
    {
      "uriTemplate": "tiny://greeting/{name}",
      "name": "greeting for a name",
      "title": "Greeting for a name",
      "description": "A line of text for a name",
      "mimeType": "text/plain"
    }
  ]
}
"#);
    rehearse!(Fixture::new(), "rehearse request ping --json --protocol legacy -- tiny-server", @r"
exit: 0
----- stdout -----
{}
");
}

#[test]
fn a_method_that_is_misspelled_gets_a_suggestion() {
    rehearse!(Fixture::new(), "rehearse request tool/list -- tiny-server", @r"
exit: 1
----- stderr -----
error: -32601: tool/list
hint: did you mean `tools/list`?
");
    rehearse!(Fixture::new(), "rehearse request acme/approve --json -- tiny-server", @r#"
exit: 1
----- stdout -----
{"code":-32601,"message":"acme/approve"}
----- stderr -----
error: -32601: acme/approve
"#);
}
