//! `rehearse … --login`.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::clients::browse;
use super::oauth_server::OAuthServer;

fn rehearse(state: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rehearse"));
    command.args(arguments).env_clear().env("XDG_STATE_HOME", state).current_dir(state);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command without a browser; returns status, stdout and stderr.
async fn output(mut command: Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// Starts a command, and opens the address that it prints like a user with a browser.
async fn with_browser(mut command: Command) -> (Child, BufReader<ChildStderr>, String) {
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let (stderr, text, url) = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        while !text.contains("waiting for the browser") {
            assert!(stderr.read_line(&mut text).unwrap() > 0, "{text}");
        }
        let url = text.lines().find_map(|line| line.strip_prefix("  http://")).unwrap_or_else(|| panic!("{text}"));
        let url = format!("http://{url}");
        (stderr, text, url)
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
    (child, stderr, text)
}

fn wait(child: Child, mut stderr: BufReader<ChildStderr>) -> (Option<i32>, String, String) {
    let mut text = String::new();
    stderr.read_to_string(&mut text).unwrap();
    let Output { status, stdout, .. } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), text)
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_logs_in_once_and_logs_out() {
    let (server, folder) = (OAuthServer::start().await, tempfile::tempdir().unwrap());
    let url = server.url();
    let call = ["call", "read", "--url", &url, "--protocol", "modern", "-v"];
    let login = [&call[..], &["--login"]].concat();

    let (status, _, stderr) = output(rehearse(folder.path(), &call)).await;
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.contains("401 Unauthorized") && stderr.contains("hint: log in with --login"), "{stderr}");

    let (child, stderr, first) = with_browser(rehearse(folder.path(), &login)).await;
    let (status, stdout, rest) = tokio::task::spawn_blocking(|| wait(child, stderr)).await.unwrap();
    assert_eq!((status, stdout.as_str()), (Some(0), "read done\n"), "{first}{rest}");
    let tokens = folder.path().join("rehearsal/tokens");
    let files: Vec<_> = std::fs::read_dir(&tokens).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(mode(&tokens), 0o700);
    assert!(!files.is_empty() && files.iter().all(|file| mode(file) == 0o600), "{files:?}");
    let secrets: Vec<String> = {
        let oauth_state = server.state();
        oauth_state.tokens.keys().chain(oauth_state.refresh_tokens.keys()).cloned().collect()
    };
    for secret in &secrets {
        assert!(!format!("{first}{rest}").contains(secret), "{secret} is shown");
    }

    let (status, stdout, stderr) = output(rehearse(folder.path(), &login)).await;
    assert_eq!((status, stdout.as_str()), (Some(0), "read done\n"), "the login is stored: {stderr}");
    assert_eq!(server.state().scopes.len(), 1);

    let (status, _, stderr) = output(rehearse(folder.path(), &["logout", &url])).await;
    assert_eq!((status, stderr.starts_with("removed the token of http")), (Some(0), true), "{stderr}");
    assert!(!files.iter().any(|file| file.extension().is_some_and(|end| end == "json") && file.exists()));
    let (_, _, stderr) = output(rehearse(folder.path(), &["logout", &url])).await;
    assert!(stderr.starts_with("there is no token of http"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_times_out_if_the_user_does_not_log_in() {
    let (server, folder) = (OAuthServer::start().await, tempfile::tempdir().unwrap());
    let url = server.url();
    let line = ["list", "--url", &url, "--protocol", "modern", "--login", "--login-timeout", "0.2", "--timeout", "0.1"];
    let (status, _, stderr) = output(rehearse(folder.path(), &line)).await;
    assert_eq!(status, Some(3), "{stderr}");
    assert!(stderr.ends_with("error: server/discover needs a login: no login within 0.2 s\n"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn login_and_an_authorization_header_are_refused_together() {
    let folder = tempfile::tempdir().unwrap();
    let twice = ["list", "--url", "http://127.0.0.1:1/mcp", "--login", "--header", "Authorization: Bearer x"];
    let (status, _, stderr) = output(rehearse(folder.path(), &twice)).await;
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.starts_with("error: --login and --header Authorization both authorize"), "{stderr}");
    let (status, _, stderr) = output(rehearse(folder.path(), &["list", "--login", "--", "true"])).await;
    assert_eq!(status, Some(2), "{stderr}");
    assert!(
        stderr.starts_with("error: --login has no effect: it is for servers that are reached by a URL"),
        "{stderr}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorder_logs_in_for_its_clients_and_records_no_token() {
    let (server, folder) = (OAuthServer::start().await, tempfile::tempdir().unwrap());
    let url = server.url();
    let record = rehearse(folder.path(), &["record", "--url", &url, "--login", "--no-redact", "-o", "trace.jsonl"]);
    let (child, mut stderr, _) = with_browser(record).await;
    let (running_stderr, proxy) = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let proxy = line.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
        (stderr, proxy)
    })
    .await
    .unwrap();
    let (status, stdout, stderr) =
        output(rehearse(folder.path(), &["call", "read", "--url", &proxy, "--protocol", "modern"])).await;
    assert_eq!((status, stdout.as_str()), (Some(0), "read done\n"), "{stderr}");
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
    let (status, _, stderr) = tokio::task::spawn_blocking(|| wait(child, running_stderr)).await.unwrap();
    assert_eq!(status, Some(143), "{stderr}");
    let trace = std::fs::read_to_string(folder.path().join("trace.jsonl")).unwrap();
    assert!(trace.contains("read done"));
    for token in server.state().tokens.keys() {
        assert!(!trace.contains(token), "{token} is in the trace though nothing was redacted");
    }
}
