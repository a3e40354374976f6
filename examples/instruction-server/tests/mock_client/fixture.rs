//! A client of a server that runs in a temporary project, or in a container; all are gone when the test is.
//!
//! ```text
//! project/                      the server's working directory
//!   .pongogo/instructions/      a copy of the samples, named to the server by INSTRUCTIONS_PATH
//! ```

use std::ffi::OsString;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rehearsal::Client;
use rehearsal::client::{ClientBuilder, Protocol};
use rehearsal::protocol::Revision;
use rehearsal::testing::{Project, RunningServer, SharedContainer};
use rehearsal::transport::{BackgroundContainer, Engine, build_image};

/// The program under test.
pub(crate) const SERVER: &str = env!("CARGO_BIN_EXE_instruction-server");

/// Where a project keeps its instructions.
pub(crate) const INSTRUCTIONS: &str = ".pongogo/instructions";

/// The transport and the era of a connection to the server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Setting {
    /// What the specification does: `initialize` with 2024-11-05 over stdin and stdout.
    Stdio,
    StdioWithoutHandshake,
    Http,
    HttpWithoutHandshake,
    Container,
    ContainerWithoutHandshake,
}

impl Setting {
    fn protocol(self) -> Protocol {
        match self {
            Setting::Stdio | Setting::Container => Protocol::Legacy(Revision::V2024_11_05),
            Setting::Http => Protocol::Legacy(Revision::LATEST_LEGACY),
            Setting::StdioWithoutHandshake | Setting::HttpWithoutHandshake | Setting::ContainerWithoutHandshake => {
                Protocol::Modern
            }
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

/// `pongogo_container`: one container for all tests, of an image that is built once, with the samples in it.
static CONTAINER: SharedContainer = SharedContainer::new(|| {
    // The script makes a folder with a static binary and a Dockerfile that puts it on nothing at all.
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop/image");
    let output = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "tests/interop/image failed");
    let folder = PathBuf::from(String::from_utf8(output.stdout).unwrap().lines().last().unwrap());
    // Which one is to be tested; any that is found if it is not set.
    let engine = Engine::find(std::env::var_os("CONTAINER_ENGINE").as_deref())?;
    let image = build_image(&engine, &folder.join("Dockerfile"), None)?;
    BackgroundContainer::start(&engine, &image, &["--network", "none"].map(OsString::from), &[])
});

/// A client of a fresh server, in a fresh project where there is one.
pub(crate) async fn mock_mcp_client(setting: Setting) -> Fixture {
    start(setting, initialized_project()).await
}

/// A client of a fresh server in this project; those in the container have their own.
pub(crate) async fn start(setting: Setting, project: Project) -> Fixture {
    let ready = |builder: ClientBuilder| builder.protocol(setting.protocol()).timeout(Duration::from_secs(30));
    let here = |builder: ClientBuilder, folder: &Path| builder.env("INSTRUCTIONS_PATH", folder.join(INSTRUCTIONS));
    match setting {
        Setting::Stdio | Setting::StdioWithoutHandshake => {
            let server = |folder: &Path| ready(here(Client::command(SERVER), folder));
            Fixture(project.start(server).await)
        }
        Setting::Http | Setting::HttpWithoutHandshake => {
            let server = |folder: &Path| ready(here(Client::listening(SERVER).args(["--http"]), folder));
            Fixture(project.start(server).await)
        }
        Setting::Container | Setting::ContainerWithoutHandshake => {
            let server = ready(CONTAINER.server(["/instruction-server"]).await);
            Fixture(project.start(|_| server).await)
        }
    }
}

/// A connected client; dereferences to it.
pub(crate) struct Fixture(RunningServer);

impl Deref for Fixture {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
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

            #[tokio::test]
            #[ignore = "needs a container engine: .ci/run containers"]
            async fn in_a_container() {
                test(mock_mcp_client(Setting::Container).await).await;
            }

            #[tokio::test]
            #[ignore = "needs a container engine: .ci/run containers"]
            async fn in_a_container_without_handshake() {
                test(mock_mcp_client(Setting::ContainerWithoutHandshake).await).await;
            }
        }
    )*};
}

pub(crate) use in_every_setting;
