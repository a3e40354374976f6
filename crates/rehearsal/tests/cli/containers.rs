//! Servers in containers.

use crate::fixture::{Fixture, rehearse};

/// A fixture with a container engine that always runs `tiny-server` on this machine.
fn stage_with_engine() -> Fixture {
    let fixture = Fixture::new().file(
        "engine",
        "#!/bin/sh\ncase $1 in\nrun | exec) eval last=\\$$#; echo \"$1 ... $last\" >&2; exec tiny-server ;;\nesac\n",
    );
    assert!(fixture.shell("chmod +x engine").status().unwrap().success());
    fixture
}

#[test]
fn a_missing_container_engine_is_reported_with_the_searched_names() {
    let line = r#"PATH=$(dirname "$(command -v rehearse)") rehearse list --container my-server"#;
    rehearse!(Fixture::new(), line, @r"
    exit: 3
    ----- stderr -----
    error: there is no container engine: looked for docker, podman, nerdctl in PATH
    hint: install one of them, or name another engine: --engine NAME
    ");
}

#[test]
fn an_image_is_run_and_a_command_is_run_in_a_container() {
    let fixture = stage_with_engine();
    let line = "rehearse call echo message=hello --env KEY=1 --container my-server --engine ./engine";
    rehearse!(fixture, line, @r"
exit: 0
----- stdout -----
hello
");
    let line = "rehearse list --prompts --protocol legacy --exec my-container --engine ./engine -v -- my-server 2>&1 | grep '^!'";
    rehearse!(fixture, line, @r"
exit: 0
----- stdout -----
! exec ... my-server
");
}

#[test]
fn contradictory_container_flags_are_refused() {
    rehearse!(Fixture::new(), "rehearse list --exec my-container", @r"
    exit: 2
    ----- stderr -----
    error: --exec my-container needs the command of the server
    hint: write it after `--`: --exec my-container -- my-server
    ");
    rehearse!(Fixture::new(), "rehearse list --container my-server --exec my-container -- my-server", @r"
    exit: 2
    ----- stderr -----
    error: --container and --exec both name a server; use one of them
    ");
}
