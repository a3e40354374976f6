//! `rehearse … --login`.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::clients::browse;
use super::oauth_server::House;

fn rehearse(state: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rehearse"));
    command.args(arguments).env_clear().env("XDG_STATE_HOME", state).current_dir(state);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a run that needs nobody comes to.
async fn output(mut command: Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// Starts a run, and is the person who opens the address that it prints.
async fn with_browser(mut command: Command) -> (Child, BufReader<ChildStderr>, String) {
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let (stderr, said, url) = tokio::task::spawn_blocking(move || {
        let mut said = String::new();
        while !said.contains("waiting for the browser") {
            assert!(stderr.read_line(&mut said).unwrap() > 0, "{said}");
        }
        let url = said.lines().find_map(|line| line.strip_prefix("  http://")).unwrap_or_else(|| panic!("{said}"));
        let url = format!("http://{url}");
        (stderr, said, url)
    })
    .await
    .unwrap();
    let back = browse(url).await.unwrap();
    assert!(back.starts_with("http://127.0.0.1:") && back.contains("/callback?code="), "{back}");
    let visited = rehearsal::wire::http::client::HttpClientOptions::new(&back).unwrap();
    let request = http::Request::get(&back).body(bytes::Bytes::new()).unwrap();
    let limit = std::time::Duration::from_secs(20);
    let page = rehearsal::wire::http::client::fetch(&visited, request, limit).await.unwrap();
    assert_eq!(page.status(), 200);
    (child, stderr, said)
}

fn ended(child: Child, mut stderr: BufReader<ChildStderr>) -> (Option<i32>, String, String) {
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    let Output { status, stdout, .. } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), said)
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_once_and_out_again() {
    let (house, state) = (House::open().await, tempfile::tempdir().unwrap());
    let url = house.url();
    let call = ["call", "read", "--url", &url, "--protocol", "modern", "-v"];
    let login = [&call[..], &["--login"]].concat();

    let (status, _, said) = output(rehearse(state.path(), &call)).await;
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains("401 Unauthorized") && said.contains("hint: log in with --login"), "{said}");

    let (child, stderr, first) = with_browser(rehearse(state.path(), &login)).await;
    let (status, stdout, rest) = tokio::task::spawn_blocking(|| ended(child, stderr)).await.unwrap();
    assert_eq!((status, stdout.as_str()), (Some(0), "read done\n"), "{first}{rest}");
    let tokens = state.path().join("rehearsal/tokens");
    let files: Vec<_> = std::fs::read_dir(&tokens).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(mode(&tokens), 0o700);
    assert!(!files.is_empty() && files.iter().all(|file| mode(file) == 0o600), "{files:?}");
    let secrets: Vec<String> = {
        let books = house.books();
        books.tokens.keys().chain(books.refresh_tokens.keys()).cloned().collect()
    };
    for secret in &secrets {
        assert!(!format!("{first}{rest}").contains(secret), "{secret} is shown");
    }

    let (status, stdout, said) = output(rehearse(state.path(), &login)).await;
    assert_eq!((status, stdout.as_str()), (Some(0), "read done\n"), "nobody is asked again: {said}");
    assert_eq!(house.books().asked.len(), 1);

    let (status, _, said) = output(rehearse(state.path(), &["logout", &url])).await;
    assert_eq!((status, said.starts_with("removed the token of http")), (Some(0), true), "{said}");
    assert!(!files.iter().any(|file| file.extension().is_some_and(|end| end == "json") && file.exists()));
    let (_, _, said) = output(rehearse(state.path(), &["logout", &url])).await;
    assert!(said.starts_with("there is no token of http"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_waited_for_for_ever() {
    let (house, state) = (House::open().await, tempfile::tempdir().unwrap());
    let url = house.url();
    let line = ["list", "--url", &url, "--protocol", "modern", "--login", "--login-timeout", "0.2", "--timeout", "0.1"];
    let (status, _, said) = output(rehearse(state.path(), &line)).await;
    assert_eq!(status, Some(3), "{said}");
    assert!(said.ends_with("error: server/discover needs a login: no login within 0.2 s\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_we_are_is_said_once() {
    let state = tempfile::tempdir().unwrap();
    let twice = ["list", "--url", "http://127.0.0.1:1/mcp", "--login", "--header", "Authorization: Bearer x"];
    let (status, _, said) = output(rehearse(state.path(), &twice)).await;
    assert_eq!(status, Some(2), "{said}");
    assert!(said.starts_with("error: --login and --header Authorization both authorize"), "{said}");
    let (status, _, said) = output(rehearse(state.path(), &["list", "--login", "--", "true"])).await;
    assert_eq!(status, Some(2), "{said}");
    assert!(said.starts_with("error: --login has no effect: it is for servers that are reached by a URL"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorder_logs_in_for_its_clients_and_keeps_that_to_itself() {
    let (house, state) = (House::open().await, tempfile::tempdir().unwrap());
    let url = house.url();
    let record = rehearse(state.path(), &["record", "--url", &url, "--login", "--no-redact", "-o", "trace.jsonl"]);
    let (child, mut stderr, _) = with_browser(record).await;
    let (stderr, proxy) = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let proxy = line.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
        (stderr, proxy)
    })
    .await
    .unwrap();
    let (status, stdout, said) =
        output(rehearse(state.path(), &["call", "read", "--url", &proxy, "--protocol", "modern"])).await;
    assert_eq!((status, stdout.as_str()), (Some(0), "read done\n"), "{said}");
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
    let (status, _, said) = tokio::task::spawn_blocking(|| ended(child, stderr)).await.unwrap();
    assert_eq!(status, Some(143), "{said}");
    let trace = std::fs::read_to_string(state.path().join("trace.jsonl")).unwrap();
    assert!(trace.contains("read done"));
    for token in house.books().tokens.keys() {
        assert!(!trace.contains(token), "{token} is in the trace though nothing was redacted");
    }
}
