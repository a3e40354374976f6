//! The directory, the shell and the HTTP servers of CLI tests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

/// A temporary directory for one test, with `rehearse` and `tiny-server` in `PATH` and nothing else from outside.
pub(crate) struct Fixture {
    directory: tempfile::TempDir,
    served: Option<Served>,
}

/// A server that listens for HTTP until the test ends.
struct Served {
    /// `None` for a server in this process.
    server: Option<Child>,
    address: String,
}

/// Runs a line of shell, and compares exit status, stdout and stderr.
///
/// ```text
/// rehearse!(fixture, "rehearse call echo message=hello -- tiny-server", @r"
/// exit: 0
/// ----- stdout -----
/// hello
/// ");
/// ```
macro_rules! rehearse {
    ($fixture:expr, $line:expr, @$expected:literal) => {
        insta::assert_snapshot!($fixture.run($line), @$expected)
    };
}
pub(crate) use rehearse;

/// A mock with one tool of each kind.
pub(crate) const MOCK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/interop/tiny.mock.yaml");

/// Texts that differ between versions, and their replacements.
const REDACTIONS: [(&str, &str); 1] = [(env!("CARGO_PKG_VERSION"), "[VERSION]")];

impl Fixture {
    pub(crate) fn new() -> Fixture {
        Fixture { directory: tempfile::tempdir().unwrap(), served: None }
    }

    /// A fixture with a mock that listens at `http://$ADDRESS/mcp`, and at `/sse` for HTTP+SSE.
    pub(crate) fn with_http_server() -> Fixture {
        let fixture = Fixture::new();
        let mut server = fixture.shell(&format!("exec rehearse mock {MOCK} --listen 0")).spawn().unwrap();
        let first = BufReader::new(server.stderr.take().unwrap()).lines().next().unwrap().unwrap();
        let address = first.strip_prefix("listening on http://").and_then(|url| url.strip_suffix("/mcp"));
        let address = address.expect("the server prints its URL").to_owned();
        Fixture { served: Some(Served { server: Some(server), address }), ..fixture }
    }

    /// A fixture with an HTTP server at `http://$ADDRESS` that answers every request with this status and body.
    pub(crate) fn with_http_answer(status: &'static str, content_type: &'static str, body: &'static str) -> Fixture {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), status, content_type, body);
            }
        });
        Fixture { served: Some(Served { server: None, address }), ..Fixture::new() }
    }

    /// Writes a file into the directory.
    pub(crate) fn file(self, name: &str, text: &str) -> Fixture {
        std::fs::write(self.directory.path().join(name), text).unwrap();
        self
    }

    /// The directory of the test.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The command that runs `line` in a shell.
    pub(crate) fn shell(&self, line: &str) -> Command {
        let mut shell = Command::new("/bin/sh");
        let path = format!("{}:/usr/bin:/bin", programs().display());
        shell.args(["-c", line]).current_dir(self.path()).env_clear().env("PATH", path);
        // A debug build needs more time for the runs of a dry run than the default allows.
        shell.env("REHEARSE_MAX_RUN_TIME", "60s");
        if let Some(Served { address, .. }) = &self.served {
            shell.env("ADDRESS", address);
        }
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        shell
    }

    /// Runs a line of shell; returns exit status, stdout and stderr.
    pub(crate) fn run(&self, line: &str) -> String {
        let Output { status, stdout, stderr } = self.shell(line).output().unwrap();
        let mut shown = match status.code() {
            Some(code) => format!("exit: {code}\n"),
            None => format!("{status}\n"),
        };
        for (title, bytes) in [("stdout", stdout), ("stderr", stderr)] {
            let text = self.redacted(&String::from_utf8_lossy(&bytes));
            if !text.is_empty() {
                shown.push_str(&format!("----- {title} -----\n{text}"));
            }
        }
        shown
    }

    fn redacted(&self, text: &str) -> String {
        let text = text.replace(&self.path().display().to_string(), "[DIR]");
        let text = match &self.served {
            Some(Served { address, .. }) => text.replace(address, "[ADDRESS]"),
            None => text,
        };
        REDACTIONS.iter().fold(text, |text, (found, shown)| text.replace(found, shown))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // An error means that the server has already exited.
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// Reads a request and answers it.
fn answer(stream: TcpStream, status: &str, content_type: &str, body: &str) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap_or_default() > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut request_body = vec![0; length];
    // A client that closes its connection early needs no answer.
    let _ = reader.read_exact(&mut request_body);
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n", body.len());
    let _ = write!(reader.into_inner(), "{head}Connection: close\r\n\r\n{body}");
}

/// The directory of our programs. Builds `tiny-server` if it is missing.
fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let programs = Path::new(env!("CARGO_BIN_EXE_rehearse")).parent().unwrap().to_owned();
        if !programs.join("tiny-server").exists() {
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--quiet", "--package", "tiny-server"]);
            if programs.ends_with("release") {
                build.arg("--release");
            }
            assert!(build.status().unwrap().success(), "tiny-server could not be built");
        }
        programs
    })
}
