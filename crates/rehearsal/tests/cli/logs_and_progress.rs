//! Log messages and progress during a call.

use crate::fixture::{Fixture, rehearse};

#[test]
fn log_messages_are_shown_with_their_level() {
    rehearse!(Fixture::new(), "rehearse call log level=warning message='almost full' -- tiny-server", @r"
exit: 0
----- stdout -----
logged
----- stderr -----
[warning] tiny-server: almost full
");
    rehearse!(Fixture::new(), "rehearse call log level=debug message=details --log-level debug -- tiny-server", @r"
exit: 0
----- stdout -----
logged
----- stderr -----
[debug] tiny-server: details
");
    let line = "rehearse call log level=info message=hello --log-level error --protocol legacy -- tiny-server";
    rehearse!(Fixture::new(), line, @r"
exit: 0
----- stdout -----
logged
");
}

#[test]
fn progress_is_shown_on_a_terminal_and_cleared() {
    let line = "rehearse call slow steps=2 delay_ms=1 -- tiny-server";
    rehearse!(Fixture::new(), line, @r"
exit: 0
----- stdout -----
done in 2 steps
");
    let on_a_terminal = format!("script -qec '{line}' /dev/null | cat -v");
    rehearse!(Fixture::new(), &on_a_terminal, @r"
exit: 0
----- stdout -----
50 % (1 of 2) step 1 of 2^M^[[K100 % (2 of 2) step 2 of 2^M^[[Kdone in 2 steps^M
");
}

#[test]
fn control_sequences_of_a_server_do_not_reach_the_terminal() {
    let line = r#"rehearse call echo "message=$(printf "a\033[2Jb")" -- tiny-server"#;
    rehearse!(Fixture::new(), &format!("{line} | cat -v"), @r"
exit: 0
----- stdout -----
a^[[2Jb
");
    let fixture = Fixture::new().file("line", line);
    rehearse!(fixture, "script -qec 'sh line' /dev/null | tr -d '\\r'", @r"
exit: 0
----- stdout -----
a�[2Jb
");
    let server = r#"printf '\033[31mout of \033]0;evil\007memory\033[0m\n' >&2; exit 1"#;
    let fixture = Fixture::new().file("server", server);
    rehearse!(fixture, "script -qec 'rehearse list -- sh server' /dev/null | cat -v | tr -d '\\r'", @r"
exit: 0
----- stdout -----
error: the server exited with status 1 before it answered initialize^M
  the server's process ended: exit status: 1^M
  last lines of its stderr:^M
    out of memory^M
");
}
