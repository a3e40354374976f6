//! `rehearse read`

use crate::fixture::{Fixture, rehearse};

#[test]
fn read_prints_only_the_text_of_a_resource() {
    rehearse!(Fixture::new(), "rehearse read tiny://greeting -- tiny-server", @r"
exit: 0
----- stdout -----
Hello from tiny-server
");
}

#[test]
fn type_and_size_of_binary_contents_are_printed() {
    rehearse!(Fixture::new(), "rehearse read tiny://pixel -- tiny-server", @r"
    exit: 0
    ----- stdout -----
    [resource tiny://pixel, image/png, 69 bytes]
    ----- stderr -----
    hint: `--save DIR` writes images, audio and bytes to files
    ");
}

#[test]
fn a_uri_that_is_misspelled_gets_a_suggestion() {
    rehearse!(Fixture::new(), "rehearse read tiny://greting -- tiny-server", @r#"
exit: 1
----- stderr -----
error: -32602: there is no resource tiny://greting
  data: {"uri":"tiny://greting"}
hint: did you mean `tiny://greeting`?
"#);
    rehearse!(Fixture::new(), "rehearse read nothing-like-it -- tiny-server", @r#"
    exit: 1
    ----- stderr -----
    error: -32602: there is no resource nothing-like-it
      data: {"uri":"nothing-like-it"}
    hint: `rehearse list --resources --templates` lists the resources
    "#);
}
