//! A server in a container, over stdio or in the background.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use rehearsal_core::exchange::Channel;

use super::cleanup::{ContainerGuard, owner_label, unique_name};
use super::engine::{Engine, EngineError, RUN_TIMEOUT};
use super::exec_process::ExecProcess;
use crate::stdio::{ServerCommand, StderrSink};
use crate::{BoxFuture, Connection, Event, Outgoing, Receiver, SendError, Sender, StopOutcome, stdio};

/// How to start a server in a container.
#[derive(Clone)]
pub struct Container {
    /// The container it runs in.
    pub target: ContainerTarget,
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

    fn new(target: ContainerTarget) -> Container {
        let (engine, options, arguments, environment, stderr) = Default::default();
        Container { target, engine, options, arguments, environment, stderr }
    }
}

impl fmt::Debug for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Container").field(&self.target).finish()
    }
}

/// Starts the server and connects to its stdin and stdout.
pub async fn spawn(container: &Container) -> Result<Connection, EngineError> {
    let engine = Engine::find(container.engine.as_deref())?;
    let sweeping = engine.clone();
    let swept = tokio::task::spawn_blocking(move || sweeping.sweep()).await;
    swept.unwrap_or(Ok(()))?;
    let mut command = engine.server_command();
    command.stderr = container.stderr.clone();
    command.environment = container.environment.clone();
    let (process, mut command) = match &container.target {
        ContainerTarget::Image(_) => {
            let guard = ContainerGuard::new(engine, unique_name());
            let arguments = ["run", "--interactive", "--rm", "--name", guard.name(), "--label", &owner_label()];
            let command = command.args(arguments);
            (ContainerProcess::Container(guard), command)
        }
        ContainerTarget::Running(name) => {
            let exec = ExecProcess::new(engine, name, &container.options);
            let command = command.args(["exec", "--interactive", "--env", &exec.environment_variable()]);
            (ContainerProcess::Exec(exec), command)
        }
    };
    for variable in container.environment.keys() {
        // By name only: other users of the host can read a value on the command line.
        command = command.args([OsStr::new("--env"), variable]);
    }
    let (ContainerTarget::Image(target) | ContainerTarget::Running(target)) = &container.target;
    let command = command.args(&container.options).args([target]).args(&container.arguments);
    connect(&command, Arc::new(process)).await
}

async fn connect(command: &ServerCommand, process: Arc<ContainerProcess>) -> Result<Connection, EngineError> {
    match stdio::spawn(command).await {
        Ok(Connection { sender, receiver }) => Ok(Connection {
            sender: Arc::new(ContainerSender { client: sender, process: process.clone() }),
            receiver: Box::new(ContainerReceiver { client: receiver, process }),
        }),
        Err(error) => {
            process.forget();
            Err(EngineError::from_spawn(error))
        }
    }
}

/// What keeps running after the engine's client has exited.
#[derive(Debug)]
enum ContainerProcess {
    /// A container that we started.
    Container(ContainerGuard),
    /// A server in a container that stays.
    Exec(ExecProcess),
}

impl ContainerProcess {
    /// Stops it after the engine's client has exited; `stopped` is how the client ended.
    fn end(&self, stopped: StopOutcome) -> StopOutcome {
        match self {
            ContainerProcess::Container(guard) => {
                guard.remove();
                stopped
            }
            ContainerProcess::Exec(exec) => exec.end(stopped),
        }
    }

    /// Kills it at once.
    fn kill(&self) {
        match self {
            ContainerProcess::Container(guard) => guard.remove(),
            ContainerProcess::Exec(exec) => exec.kill(),
        }
    }

    /// Cancels the cleanup, because it was never started.
    fn forget(&self) {
        match self {
            ContainerProcess::Container(guard) => guard.forget(),
            ContainerProcess::Exec(exec) => exec.forget(),
        }
    }
}

/// The engine's client and the container or server that it started. Fields are dropped in this order.
#[derive(Debug)]
struct ContainerSender {
    client: Arc<dyn Sender>,
    process: Arc<ContainerProcess>,
}

/// Receives from the server, and notes for the cleanup that the server runs.
#[derive(Debug)]
struct ContainerReceiver {
    client: Box<dyn Receiver>,
    process: Arc<ContainerProcess>,
}

impl Receiver for ContainerReceiver {
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        let event = std::task::ready!(self.client.poll_receive(context));
        if let ContainerProcess::Exec(exec) = &*self.process {
            exec.mark_started();
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
            let process = self.process.clone();
            tokio::task::spawn_blocking(move || process.end(stopped)).await.unwrap_or(stopped)
        })
    }

    fn takes_headers(&self) -> bool {
        self.client.takes_headers()
    }

    fn abort(&self) {
        self.client.abort();
        self.process.kill();
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
    guard: ContainerGuard,
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
        let guard = ContainerGuard::new(engine.clone(), unique_name());
        let name = guard.name();
        let command = ["run", "--detach", "--interactive", "--rm", "--name", name, "--label", &owner_label()];
        let command = command.iter().map(OsString::from).chain(options.iter().cloned());
        let command = command.chain([image.into()]).chain(arguments.iter().cloned());
        engine.run_with_timeout(RUN_TIMEOUT, command)?;
        Ok(BackgroundContainer { guard })
    }

    /// Returns the container's name.
    pub fn name(&self) -> &str {
        self.guard.name()
    }

    /// Builds a server in this container; `arguments` is its command.
    pub fn exec(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Container {
        let mut container = Container::running(self.name());
        container.engine = Some(self.guard.engine().program().to_owned());
        container.arguments = arguments.into_iter().map(Into::into).collect();
        container
    }
}
