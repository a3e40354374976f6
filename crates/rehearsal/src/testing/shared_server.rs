//! A server that several tests share, as a process or in a container.

use std::ffi::OsString;
use std::sync::OnceLock;

use rehearsal_wire::container::{BackgroundContainer, EngineError};
use tokio::runtime::{Builder, Runtime};

use crate::client::{Client, ClientBuilder};

/// A server that is started by the first test that uses it, and shared by all tests.
///
/// ```no_run
/// use rehearsal::Client;
/// use rehearsal::testing::SharedServer;
///
/// static SERVER: SharedServer = SharedServer::new(|| Client::command("my-server"));
///
/// #[tokio::test]
/// async fn it_lists_its_tools() {
///     assert!(!SERVER.client().await.list_tools().await.unwrap().is_empty());
/// }
/// ```
///
/// It may also be in a container, or listen on a port. It has its own runtime, because that of a `#[tokio::test]`
/// ends with its test. It ends with the test program: a `static` is never dropped, but the operating system closes the
/// server's stdin and kills it, and a container is removed.
#[derive(Debug)]
pub struct SharedServer {
    server: fn() -> ClientBuilder,
    started: OnceLock<Result<Started, String>>,
}

#[derive(Debug)]
struct Started {
    client: Client,
    _runtime: Runtime,
}

impl SharedServer {
    /// Declares a server, which is not started yet.
    pub const fn new(server: fn() -> ClientBuilder) -> SharedServer {
        SharedServer { server, started: OnceLock::new() }
    }

    /// Returns a client; clones share the one connection.
    ///
    /// # Panics
    ///
    /// In every test that uses the server, if it cannot be started, with the evidence.
    pub async fn client(&'static self) -> Client {
        // Starting takes a while, and a test that waits for it must not block its runtime.
        let started = match self.started.get() {
            Some(started) => started,
            None => {
                let start = tokio::task::spawn_blocking(|| self.started.get_or_init(|| self.start()));
                start.await.unwrap_or_else(|error| panic!("the shared server could not be started: {error}"))
            }
        };
        match started {
            Ok(started) => started.client.clone(),
            Err(error) => panic!("the server of these tests cannot be used: {error}"),
        }
    }

    /// Returns a client for a plain `#[test]`; its futures run on any runtime.
    ///
    /// # Panics
    ///
    /// In every test that uses the server, if it cannot be started, with the evidence.
    #[track_caller]
    pub fn client_blocking(&'static self) -> Client {
        match self.started.get_or_init(|| self.start()) {
            Ok(started) => started.client.clone(),
            Err(error) => panic!("the server of these tests cannot be used: {error}"),
        }
    }

    fn start(&self) -> Result<Started, String> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
        let connecting = runtime.spawn((self.server)().connect());
        // Not `block_on`, which panics in the runtime of a test.
        let (done, connected) = std::sync::mpsc::channel();
        runtime.spawn(async move { done.send(connecting.await) });
        match connected.recv() {
            Ok(Ok(Ok(client))) => Ok(Started { client, _runtime: runtime }),
            Ok(Ok(Err(error))) => Err(error.to_string()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A container that is started by the first test that uses it, and in which every test starts its own server.
///
/// ```no_run
/// use std::path::Path;
///
/// use rehearsal::testing::SharedContainer;
/// use rehearsal::transport::{BackgroundContainer, Engine, build_image};
///
/// static CONTAINER: SharedContainer = SharedContainer::new(|| {
///     let engine = Engine::find(None)?;
///     let image = build_image(&engine, Path::new("tests/Dockerfile"), None)?;
///     BackgroundContainer::start(&engine, &image, &[], &[])
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
    start: fn() -> Result<BackgroundContainer, EngineError>,
    started: OnceLock<Result<BackgroundContainer, String>>,
}

impl SharedContainer {
    /// Declares a container, which is not started yet.
    pub const fn new(start: fn() -> Result<BackgroundContainer, EngineError>) -> SharedContainer {
        SharedContainer { start, started: OnceLock::new() }
    }

    /// Starts a server in the container; `command` is the server's.
    ///
    /// # Panics
    ///
    /// In every test that uses the container, if it cannot be started, with the reason.
    pub async fn server(&'static self, command: impl IntoIterator<Item = impl Into<OsString>>) -> ClientBuilder {
        // Starting takes a while, and must not block other tasks of this runtime.
        let start = tokio::task::spawn_blocking(|| self.container());
        match start.await {
            Ok(container) => Client::container(container.exec(command)),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(error) => panic!("the container of these tests could not be started: {error}"),
        }
    }

    /// Starts a server in the container, for a plain `#[test]`.
    ///
    /// # Panics
    ///
    /// In every test that uses the container, if it cannot be started, with the reason.
    #[track_caller]
    pub fn server_blocking(&'static self, command: impl IntoIterator<Item = impl Into<OsString>>) -> ClientBuilder {
        Client::container(self.container().exec(command))
    }

    /// Returns the container itself.
    ///
    /// Blocks while it is started.
    ///
    /// # Panics
    ///
    /// In every test that uses the container, if it cannot be started, with the reason.
    #[track_caller]
    pub fn container(&'static self) -> &'static BackgroundContainer {
        let start = || (self.start)().map_err(|error| error.to_string());
        match self.started.get_or_init(start) {
            Ok(container) => container,
            Err(error) => panic!("the container of these tests cannot be used: {error}"),
        }
    }
}
