//! Tests with real processes at the other end of a pipe.

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{GarbledReason, Message, Method};
use rehearsal_wire::stdio::{ServerCommand, SpawnError, spawn};
use rehearsal_wire::{Connection, ConnectionEnd, Event, Outgoing, SendError, StopOutcome};

fn shell(script: &str) -> ServerCommand {
    ServerCommand { grace: Duration::from_millis(300), ..ServerCommand::new("sh").args(["-c", script]) }
}

async fn started(script: &str) -> Connection {
    spawn(&shell(script)).await.unwrap()
}

async fn message(connection: &mut Connection) -> Message {
    match connection.receiver.receive().await {
        Event::Message { message, .. } => message,
        other => panic!("expected a message, got {other:?}"),
    }
}

async fn ending(connection: &mut Connection) -> ConnectionEnd {
    loop {
        if let Event::Ended(ending) = connection.receiver.receive().await {
            return ending;
        }
    }
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

async fn has_exited(pid: &str) -> bool {
    let deadline = Instant::now() + Duration::from_secs(5);
    while is_alive(pid) && Instant::now() < deadline {
        tokio::task::yield_now().await;
    }
    !is_alive(pid)
}

#[tokio::test]
async fn messages_pass_a_child_process_byte_for_byte() {
    let mut cat = started("exec cat").await;
    let odd = Message::parse(r#"{"id":2 ,"jsonrpc":"2.0","method":"tools/list","x":1.00}"#);
    cat.sender.send(Outgoing::new(Channel::MAIN, odd.clone())).await.unwrap();
    cat.sender.send_bytes(Channel::MAIN, Bytes::from_static(b"half")).await.unwrap();
    cat.sender.send_bytes(Channel::MAIN, Bytes::from_static(b" and half\n\xff\n")).await.unwrap();
    assert_eq!(message(&mut cat).await, odd);
    assert_eq!(message(&mut cat).await.raw(), "half and half");
    assert_eq!(message(&mut cat).await.raw(), &b"\xff"[..]);
    assert_eq!(cat.sender.close().await, StopOutcome::Exited);
    assert!(matches!(ending(&mut cat).await, ConnectionEnd::Exited { status } if status.success()));
    assert!(matches!(cat.sender.send(Outgoing::new(Channel::MAIN, odd)).await, Err(SendError::Closed)));
}

#[tokio::test]
async fn a_large_message_passes_both_ways() {
    let mut cat = started("exec cat").await;
    let params = serde_json::json!({"text": "x".repeat(8 * 1024 * 1024)});
    let large = Message::request(1.into(), Method::PING, Some(&params)).unwrap();
    let sender = cat.sender.clone();
    let outgoing = Outgoing::new(Channel::MAIN, large.clone());
    let send = tokio::spawn(async move { sender.send(outgoing).await });
    assert_eq!(message(&mut cat).await, large);
    send.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_line_over_the_limit_is_reported_and_the_next_is_read() {
    let command = ServerCommand { message_limit: 1000, ..shell("head -c 5000 /dev/zero; echo; echo ok") };
    let mut server = spawn(&command).await.unwrap();
    assert_eq!(message(&mut server).await.as_garbled().unwrap().reason, GarbledReason::TooLong { limit: 1000 });
    assert_eq!(message(&mut server).await.raw(), "ok");
    let long = Message::parse("x".repeat(1001));
    let refused = server.sender.send(Outgoing::new(Channel::MAIN, long)).await.unwrap_err();
    assert_eq!(refused.to_string(), "the message has 1001 bytes, more than the limit of 1000");
}

#[tokio::test]
async fn an_early_exit_is_reported_with_its_status_and_stderr() {
    let mut server = started("echo 'Traceback: no such module' >&2; exit 3").await;
    assert_eq!(ending(&mut server).await.to_string(), "exited with status 3");
    assert_eq!(server.sender.last_stderr(), ["Traceback: no such module"]);
    assert_eq!(server.sender.close().await, StopOutcome::AlreadyExited);
}

#[tokio::test]
async fn an_exit_by_signal_is_reported() {
    let mut server = started("kill -11 $$").await;
    assert_eq!(ending(&mut server).await.to_string(), "was killed by signal 11");
}

#[tokio::test]
async fn a_flood_of_stderr_does_not_block_the_server() {
    let mut server = started("head -c 20000000 /dev/zero | tr '\\0' 'x' >&2; echo; exec cat").await;
    assert_eq!(message(&mut server).await.raw(), "");
    assert!(server.sender.last_stderr().len() <= 100);
}

#[tokio::test]
async fn a_server_that_ignores_sigterm_is_killed_with_its_children() {
    let script = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & \
                  echo $$; while :; do sleep 1; done";
    let mut server = started(script).await;
    let pids = [message(&mut server).await.text().into_owned(), message(&mut server).await.text().into_owned()];
    assert!(pids.iter().all(|pid| is_alive(pid)));
    assert_eq!(server.sender.close().await, StopOutcome::Killed);
    for pid in pids {
        assert!(has_exited(&pid).await, "{pid} is still there");
    }
}

#[tokio::test]
async fn a_server_that_ignores_a_closed_stdin_gets_sigterm() {
    let server = started("exec sleep 1000").await;
    assert_eq!(server.sender.close().await, StopOutcome::Terminated);
}

#[tokio::test]
async fn dropping_the_connection_leaves_no_process() {
    let mut server = started("sleep 1000 & echo $!; echo $$; wait").await;
    let pids = [message(&mut server).await.text().into_owned(), message(&mut server).await.text().into_owned()];
    drop(server);
    for pid in pids {
        assert!(has_exited(&pid).await, "{pid} is still there");
    }
}

#[tokio::test]
async fn a_server_that_reads_nothing_does_not_block_close() {
    let server = started("exec sleep 1000").await;
    let sender = server.sender.clone();
    let large = Outgoing::new(Channel::MAIN, Message::parse("x".repeat(1_000_000)));
    let stuck = tokio::spawn(async move { sender.send(large).await });
    assert_eq!(server.sender.close().await, StopOutcome::Terminated);
    assert!(stuck.await.unwrap().is_err());
}

#[tokio::test]
async fn a_closed_stdout_is_reported_separately_from_an_exit() {
    let mut server = started("exec >&-; exec sleep 1000").await;
    assert_eq!(ending(&mut server).await, ConnectionEnd::StdoutClosed);
}

#[tokio::test]
async fn the_server_gets_its_environment_and_working_directory() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = shell("echo $REHEARSAL_TEST; pwd");
    command.environment.insert("REHEARSAL_TEST".into(), "set".into());
    command.working_dir = Some(folder.path().to_owned());
    let mut server = spawn(&command).await.unwrap();
    assert_eq!(message(&mut server).await.raw(), "set");
    let printed = message(&mut server).await.text().into_owned();
    assert_eq!(std::fs::canonicalize(printed).unwrap(), std::fs::canonicalize(folder.path()).unwrap());
}

#[tokio::test]
async fn a_failed_start_reports_its_cause() {
    let error = spawn(&ServerCommand::new("no-such-program")).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no program \"no-such-program\" in PATH");
    let command = ServerCommand { working_dir: Some("/no/such/folder".into()), ..shell("true") };
    assert!(matches!(spawn(&command).await.unwrap_err(), SpawnError::NoWorkingDir { .. }));
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let error = spawn(&ServerCommand::new(&script)).await.unwrap_err();
    assert!(matches!(error, SpawnError::NoInterpreter { .. }), "{error}");
    let error = spawn(&ServerCommand::new("/etc/passwd")).await.unwrap_err();
    assert!(matches!(error, SpawnError::NotExecutable { .. }), "{error}");
}
