//! `rehearse prompt`

use crate::fixture::{Fixture, rehearse};

#[test]
fn each_prompt_message_is_printed_under_its_role() {
    rehearse!(Fixture::new(), "rehearse prompt greet who=Ada -- tiny-server", @r"
exit: 0
----- stdout -----
user:
Hello Ada
");
    rehearse!(Fixture::new(), "rehearse prompt greet who=5 --json --protocol legacy -- tiny-server", @r#"
exit: 0
----- stdout -----
{"description":"Says hello","messages":[{"role":"user","content":{"type":"text","text":"Hello 5"}}]}
"#);
}

#[test]
fn a_prompt_or_an_argument_that_is_misspelled_gets_a_suggestion() {
    rehearse!(Fixture::new(), "rehearse prompt gret who=Ada -- tiny-server", @r"
exit: 2
----- stderr -----
error: the server has no prompt `gret`
hint: did you mean `greet`?
");
}
