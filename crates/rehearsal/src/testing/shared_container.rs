//! One container for many tests.

use std::ffi::OsString;
use std::sync::OnceLock;

use rehearsal_wire::container::{Detached, EngineError};

use crate::client::{Client, ClientBuilder};

/// A container that is started by the first test that wants it, and in which every test has a server of its own.
///
/// ```no_run
/// use std::path::Path;
///
/// use rehearsal::testing::SharedContainer;
/// use rehearsal::wire::container::{Detached, Engine, build};
///
/// static CONTAINER: SharedContainer = SharedContainer::new(|| {
///     let engine = Engine::find(None)?;
///     let image = build(&engine, Path::new("tests/Dockerfile"), None)?;
///     Detached::start(&engine, &image, &[], &[])
/// });
///
/// #[tokio::test]
/// async fn it_lists_its_tools() {
///     let client = CONTAINER.server(["/my-server"]).await.connect().await.unwrap();
///     assert!(!client.list_tools().await.unwrap().is_empty());
/// }
/// ```
///
/// Each server ends with its client. The container ends with the test program, however that ends.
#[derive(Debug)]
pub struct SharedContainer {
    start: fn() -> Result<Detached, EngineError>,
    started: OnceLock<Result<Detached, String>>,
}

impl SharedContainer {
    /// A container that nobody has wanted yet.
    pub const fn new(start: fn() -> Result<Detached, EngineError>) -> SharedContainer {
        SharedContainer { start, started: OnceLock::new() }
    }

    /// A server in it; `command` is the server's.
    ///
    /// # Panics
    ///
    /// In every test that wants it, if the container cannot be started, with the reason.
    pub async fn server(&'static self, command: impl IntoIterator<Item = impl Into<OsString>>) -> ClientBuilder {
        // Starting takes a while, and must not hold up what else runs here.
        let start = tokio::task::spawn_blocking(|| self.container());
        match start.await {
            Ok(container) => Client::container(container.exec(command)),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(error) => panic!("the container of these tests could not be started: {error}"),
        }
    }

    /// A server in it, for a plain `#[test]`.
    ///
    /// # Panics
    ///
    /// In every test that wants it, if the container cannot be started, with the reason.
    #[track_caller]
    pub fn server_blocking(&'static self, command: impl IntoIterator<Item = impl Into<OsString>>) -> ClientBuilder {
        Client::container(self.container().exec(command))
    }

    /// The container itself.
    ///
    /// Blocks while it is started.
    ///
    /// # Panics
    ///
    /// In every test that wants it, if it cannot be started, with the reason.
    #[track_caller]
    pub fn container(&'static self) -> &'static Detached {
        let start = || (self.start)().map_err(|error| error.to_string());
        match self.started.get_or_init(start) {
            Ok(container) => container,
            Err(error) => panic!("the container of these tests cannot be used: {error}"),
        }
    }
}
