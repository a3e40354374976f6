//! A server in a container.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use rehearsal_core::exchange::Channel;

use super::engine::{Engine, EngineError, label, unique_name};
use crate::stdio::{self, SpawnError, StderrSink};
use crate::{BoxFuture, Connection, Outgoing, SendError, Sender, Stopped};

/// How to start a server in a container.
#[derive(Clone)]
pub struct Container {
    /// Where it runs.
    pub place: Place,
    /// The engine's command; the first of `docker`, `podman` and `nerdctl` in `PATH` unless given.
    pub engine: Option<OsString>,
    /// Further options of `run` or `exec`, such as `--network none`.
    pub options: Vec<OsString>,
    /// The server's command inside, or arguments for the image's own.
    pub arguments: Vec<OsString>,
    /// Variables for the server.
    pub environment: BTreeMap<OsString, OsString>,
    /// Sees every line of the server's stderr as it comes.
    pub stderr: Option<StderrSink>,
}

/// Where in the world of containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A new container of this image, removed afterwards.
    Image(String),
    /// A container that runs already; it stays.
    Running(String),
}

impl Container {
    /// A new container of an image.
    pub fn image(image: impl Into<String>) -> Container {
        Container::new(Place::Image(image.into()))
    }

    /// A container that runs already.
    pub fn running(name: impl Into<String>) -> Container {
        Container::new(Place::Running(name.into()))
    }

    fn new(place: Place) -> Container {
        let (engine, options, arguments, environment, stderr) = Default::default();
        Container { place, engine, options, arguments, environment, stderr }
    }
}

impl fmt::Debug for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Container").field(&self.place).finish()
    }
}

/// Starts the server and connects to its stdin and stdout.
pub async fn spawn(container: &Container) -> Result<Connection, SpawnError> {
    let engine = Engine::find(container.engine.as_deref()).map_err(EngineError::into_spawn_error)?;
    let name = unique_name();
    let mut command = engine.server();
    command.stderr = container.stderr.clone();
    command.environment = container.environment.clone();
    match &container.place {
        Place::Image(_) => {
            let sweeping = engine.clone();
            let swept = tokio::task::spawn_blocking(move || sweeping.sweep());
            let _ = tokio::time::timeout(REMOVAL_LIMIT, swept).await;
            command = command.arguments(["run", "--interactive", "--rm", "--name", &name, "--label", &label()]);
        }
        Place::Running(_) => command = command.arguments(["exec", "--interactive"]),
    }
    for variable in container.environment.keys() {
        // By name only: a value on the command line could be read by everybody on the machine.
        command = command.arguments([OsStr::new("--env"), variable]);
    }
    let (Place::Image(place) | Place::Running(place)) = &container.place;
    let command = command.arguments(&container.options).arguments([place]).arguments(&container.arguments);
    let connection = stdio::spawn(&command).await?;
    let Place::Image(_) = container.place else { return Ok(connection) };
    let removal = Arc::new(Removal { engine, name, done: AtomicBool::new(false) });
    let sender = Arc::new(ContainerSender { client: connection.sender, removal });
    Ok(Connection { sender, receiver: connection.receiver })
}

/// How long an engine may take to remove a container before we go on without it.
const REMOVAL_LIMIT: Duration = Duration::from_secs(20);

/// The engine's client, and the container behind it that does not end with it.
#[derive(Debug)]
struct ContainerSender {
    client: Arc<dyn Sender>,
    removal: Arc<Removal>,
}

/// Removes a container, at the latest when dropped.
#[derive(Debug)]
struct Removal {
    engine: Engine,
    name: String,
    done: AtomicBool,
}

impl Removal {
    /// Waits until the engine is done, but not for ever: an engine that hangs must not hang us, and a test that ends with
    /// a drop must not leave the container behind.
    fn remove(&self) {
        if self.done.swap(true, Ordering::Relaxed) {
            return;
        }
        let (engine, name) = (self.engine.clone(), self.name.clone());
        let (done, removed) = std::sync::mpsc::channel();
        let remove = move || {
            engine.remove(&name);
            let _ = done.send(());
        };
        if std::thread::Builder::new().spawn(remove).is_ok() {
            let _ = removed.recv_timeout(REMOVAL_LIMIT);
        }
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Sender for ContainerSender {
    fn open_channel(&self) -> Channel {
        self.client.open_channel()
    }

    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<(), SendError>> {
        self.client.send(outgoing)
    }

    fn send_bytes(&self, channel: Channel, bytes: Bytes) -> BoxFuture<'_, Result<(), SendError>> {
        self.client.send_bytes(channel, bytes)
    }

    fn close(&self) -> BoxFuture<'_, Stopped> {
        Box::pin(async {
            let stopped = self.client.close().await;
            let removal = self.removal.clone();
            let _ = tokio::task::spawn_blocking(move || removal.remove()).await;
            stopped
        })
    }

    fn takes_headers(&self) -> bool {
        self.client.takes_headers()
    }

    fn abort(&self) {
        self.client.abort();
        self.removal.remove();
    }

    fn last_stderr(&self) -> Vec<String> {
        self.client.last_stderr()
    }

    fn exit_status(&self) -> Option<ExitStatus> {
        self.client.exit_status()
    }
}
