//! A client of a server that runs in a temporary project; both are gone when the test is.
//!
//! ```text
//! project/                      the server's working directory
//!   .pongogo/instructions/      a copy of the samples, named to the server by INSTRUCTIONS_PATH
//! ```

use std::io::{BufRead, BufReader};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rehearsal::Client;
use rehearsal::client::{ClientBuilder, Protocol};
use rehearsal::core::protocol::Revision;
use rehearsal::testing::{Project, RunningServer};

/// The program under test.
pub(crate) const SERVER: &str = env!("CARGO_BIN_EXE_instruction-server");

/// Where a project keeps its instructions.
pub(crate) const INSTRUCTIONS: &str = ".pongogo/instructions";

/// How the server is reached, and in which era it is spoken to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Setting {
    /// What the specification does: `initialize` with 2024-11-05 over stdin and stdout.
    Stdio,
    StdioWithoutHandshake,
    Http,
    HttpWithoutHandshake,
}

impl Setting {
    fn protocol(self) -> Protocol {
        match self {
            Setting::Stdio => Protocol::Legacy(Revision::V2024_11_05),
            Setting::Http => Protocol::Legacy(Revision::LATEST_LEGACY),
            Setting::StdioWithoutHandshake | Setting::HttpWithoutHandshake => Protocol::Modern,
        }
    }
}

/// The samples that are copied into a project.
pub(crate) fn sample_instructions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions")
}

/// A project with the samples in it.
pub(crate) fn initialized_project() -> Project {
    Project::new().copy(sample_instructions(), INSTRUCTIONS)
}

/// A client of a fresh server in a fresh project.
pub(crate) async fn mock_mcp_client(setting: Setting) -> Fixture {
    start(setting, initialized_project()).await
}

/// A client of a fresh server in this project.
pub(crate) async fn start(setting: Setting, project: Project) -> Fixture {
    let timeout = Duration::from_secs(30);
    let ready = |builder: ClientBuilder| builder.protocol(setting.protocol()).timeout(timeout);
    match setting {
        Setting::Stdio | Setting::StdioWithoutHandshake => {
            let command =
                |folder: &Path| ready(Client::command(SERVER).env("INSTRUCTIONS_PATH", folder.join(INSTRUCTIONS)));
            Fixture { client: project.start(command).await, listening: None }
        }
        Setting::Http | Setting::HttpWithoutHandshake => {
            let listening = Listening::start(project.path());
            let client = project.start(|_| ready(Client::url(&listening.url))).await;
            Fixture { client, listening: Some(listening) }
        }
    }
}

/// A connected client; dereferences to it.
pub(crate) struct Fixture {
    client: RunningServer,
    /// The server's process, where the client did not start it.
    pub(crate) listening: Option<Listening>,
}

impl Deref for Fixture {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// A server that listens on a port of its own choice until it is dropped.
pub(crate) struct Listening {
    pub(crate) url: String,
    pub(crate) process: Child,
}

impl Listening {
    pub(crate) fn start(folder: &Path) -> Listening {
        let mut process = Command::new(SERVER)
            .arg("--http")
            .current_dir(folder)
            .env("INSTRUCTIONS_PATH", folder.join(INSTRUCTIONS))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        let url = lines.find_map(|line| line.strip_prefix("listening on ").map(str::to_owned));
        // Nobody reads the rest, and a server must not wait for that.
        std::thread::spawn(move || lines.for_each(drop));
        Listening { url: url.expect("the server ended before it listened"), process }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Makes a module of each test, with one test of the same body in it for each [`Setting`].
macro_rules! in_every_setting {
    ($($(#[$attribute:meta])* async fn $name:ident($client:ident) $body:block)*) => {$(
        mod $name {
            #[allow(clippy::allow_attributes, unused_imports, reason = "not every test needs all of its file's imports")]
            use super::*;
            use $crate::fixture::{Fixture, Setting, mock_mcp_client};

            $(#[$attribute])*
            async fn test($client: Fixture) $body

            #[tokio::test]
            async fn over_stdio() {
                test(mock_mcp_client(Setting::Stdio).await).await;
            }

            #[tokio::test]
            async fn over_stdio_without_handshake() {
                test(mock_mcp_client(Setting::StdioWithoutHandshake).await).await;
            }

            #[tokio::test]
            async fn over_http() {
                test(mock_mcp_client(Setting::Http).await).await;
            }

            #[tokio::test]
            async fn over_http_without_handshake() {
                test(mock_mcp_client(Setting::HttpWithoutHandshake).await).await;
            }
        }
    )*};
}

pub(crate) use in_every_setting;
