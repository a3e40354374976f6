//! A server in a container, over stdio or in the background.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use rehearsal_core::exchange::Channel;

use super::cleanup::{ContainerGuard, label, unique_name};
use super::engine::{Engine, EngineError, RUN_TIMEOUT};
use super::guest::ExecProcess;
use crate::stdio::{ServerCommand, StderrSink};
use crate::{BoxFuture, Connection, Event, Outgoing, Receiver, SendError, Sender, StopOutcome, stdio};

/// How to start a server in a container.
#[derive(Clone)]
pub struct Container {
    /// The container it runs in.
    pub place: ContainerTarget,
    /// The engine's command; by default the first of `docker`, `podman` and `nerdctl` in `PATH`.
    pub engine: Option<OsString>,
    /// Further options of `run` or `exec`, such as `--network none`.
    pub options: Vec<OsString>,
    /// The server's command inside, or arguments for the image's own.
    pub arguments: Vec<OsString>,
    /// Variables for the server.
    pub environment: BTreeMap<OsString, OsString>,
    /// Receives each line of the server's stderr as it arrives.
    pub stderr: Option<StderrSink>,
}

/// The container that a server runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerTarget {
    /// A new container of this image, removed when the server stops.
    Image(String),
    /// A container that already runs. Only this server is stopped in it.
    Running(String),
}

impl Container {
    /// Builds a server in a new container of an image.
    pub fn image(image: impl Into<String>) -> Container {
        Container::new(ContainerTarget::Image(image.into()))
    }

    /// Builds a server in a container that already runs.
    pub fn running(name: impl Into<String>) -> Container {
        Container::new(ContainerTarget::Running(name.into()))
    }

    fn new(place: ContainerTarget) -> Container {
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
pub async fn spawn(container: &Container) -> Result<Connection, EngineError> {
    let engine = Engine::find(container.engine.as_deref())?;
    let sweeping = engine.clone();
    let swept = tokio::task::spawn_blocking(move || sweeping.sweep()).await;
    swept.unwrap_or(Ok(()))?;
    let mut command = engine.server();
    command.stderr = container.stderr.clone();
    command.environment = container.environment.clone();
    let (behind, mut command) = match &container.place {
        ContainerTarget::Image(_) => {
            let removal = ContainerGuard::of(engine, unique_name());
            let words = ["run", "--interactive", "--rm", "--name", removal.name(), "--label", &label()];
            let command = command.args(words);
            (ContainerProcess::Container(removal), command)
        }
        ContainerTarget::Running(name) => {
            let guest = ExecProcess::new(engine, name, &container.options);
            let command = command.args(["exec", "--interactive", "--env", &guest.variable()]);
            (ContainerProcess::Guest(guest), command)
        }
    };
    for variable in container.environment.keys() {
        // By name only: other users of the host can read a value on the command line.
        command = command.args([OsStr::new("--env"), variable]);
    }
    let (ContainerTarget::Image(place) | ContainerTarget::Running(place)) = &container.place;
    let command = command.args(&container.options).args([place]).args(&container.arguments);
    connected(&command, Arc::new(behind)).await
}

async fn connected(command: &ServerCommand, behind: Arc<ContainerProcess>) -> Result<Connection, EngineError> {
    match stdio::spawn(command).await {
        Ok(Connection { sender, receiver }) => Ok(Connection {
            sender: Arc::new(ContainerSender { client: sender, behind: behind.clone() }),
            receiver: Box::new(ContainerReceiver { client: receiver, behind }),
        }),
        Err(error) => {
            behind.forget();
            Err(EngineError::of_spawn(error))
        }
    }
}

/// What keeps running after the engine's client has exited.
#[derive(Debug)]
enum ContainerProcess {
    /// A container that we started.
    Container(ContainerGuard),
    /// A server in a container that stays.
    Guest(ExecProcess),
}

impl ContainerProcess {
    /// Stops it after the engine's client has exited; `stopped` is how the client ended.
    fn end(&self, stopped: StopOutcome) -> StopOutcome {
        match self {
            ContainerProcess::Container(removal) => {
                removal.remove();
                stopped
            }
            ContainerProcess::Guest(guest) => guest.end(stopped),
        }
    }

    /// Kills it at once.
    fn kill(&self) {
        match self {
            ContainerProcess::Container(removal) => removal.remove(),
            ContainerProcess::Guest(guest) => guest.kill(),
        }
    }

    /// Cancels the cleanup, because it was never started.
    fn forget(&self) {
        match self {
            ContainerProcess::Container(removal) => removal.forget(),
            ContainerProcess::Guest(guest) => guest.forget(),
        }
    }
}

/// The engine's client and the container or server behind it. Fields are dropped in this order.
#[derive(Debug)]
struct ContainerSender {
    client: Arc<dyn Sender>,
    behind: Arc<ContainerProcess>,
}

/// Receives from the server, and notes for the cleanup that the server runs.
#[derive(Debug)]
struct ContainerReceiver {
    client: Box<dyn Receiver>,
    behind: Arc<ContainerProcess>,
}

impl Receiver for ContainerReceiver {
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        let event = std::task::ready!(self.client.poll_receive(context));
        if let ContainerProcess::Guest(guest) = &*self.behind {
            guest.mark_started();
        }
        Poll::Ready(event)
    }
}

impl Sender for ContainerSender {
    fn open_channel(&self) -> Channel {
        self.client.open_channel()
    }

    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<(), SendError>> {
        self.client.send(outgoing)
    }

    fn try_send(&self, channel: Channel, message: &[u8]) -> Option<Result<(), SendError>> {
        self.client.try_send(channel, message)
    }

    fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    fn current_problem(&self, channel: Channel) -> Option<String> {
        self.client.current_problem(channel)
    }

    fn send_bytes(&self, channel: Channel, bytes: Bytes) -> BoxFuture<'_, Result<(), SendError>> {
        self.client.send_bytes(channel, bytes)
    }

    fn close(&self) -> BoxFuture<'_, StopOutcome> {
        Box::pin(async {
            let stopped = self.client.close().await;
            let behind = self.behind.clone();
            tokio::task::spawn_blocking(move || behind.end(stopped)).await.unwrap_or(stopped)
        })
    }

    fn takes_headers(&self) -> bool {
        self.client.takes_headers()
    }

    fn abort(&self) {
        self.client.abort();
        self.behind.kill();
    }

    fn last_stderr(&self) -> Vec<String> {
        self.client.last_stderr()
    }

    fn exit_status(&self) -> Option<ExitStatus> {
        self.client.exit_status()
    }
}

/// A container that runs in the background until it is dropped, or until our process ends; servers are started in it
/// with `exec`.
///
/// Its own command must keep running, for example a server that reads its stdin, which stays open.
#[derive(Debug)]
pub struct BackgroundContainer {
    removal: ContainerGuard,
}

impl BackgroundContainer {
    /// Starts a container of `image`. `options` are options of the engine's `run`, `arguments` are the container's
    /// command.
    ///
    /// Blocks: inside a runtime, call it on a blocking thread.
    pub fn start(
        engine: &Engine,
        image: &str,
        options: &[OsString],
        arguments: &[OsString],
    ) -> Result<BackgroundContainer, EngineError> {
        engine.sweep()?;
        // Registered for removal before the start, so that every failure removes it.
        let removal = ContainerGuard::of(engine.clone(), unique_name());
        let name = removal.name();
        let words = ["run", "--detach", "--interactive", "--rm", "--name", name, "--label", &label()];
        let words = words.iter().map(OsString::from).chain(options.iter().cloned());
        let words = words.chain([image.into()]).chain(arguments.iter().cloned());
        engine.run_with_timeout(RUN_TIMEOUT, words)?;
        Ok(BackgroundContainer { removal })
    }

    /// Returns the container's name.
    pub fn name(&self) -> &str {
        self.removal.name()
    }

    /// Builds a server in this container; `arguments` is its command.
    pub fn exec(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Container {
        let mut container = Container::running(self.name());
        container.engine = Some(self.removal.engine().program().to_owned());
        container.arguments = arguments.into_iter().map(Into::into).collect();
        container
    }
}
