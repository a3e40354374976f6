//! One container for many servers.

use std::ffi::OsString;

use super::engine::{Engine, EngineError, RUN_LIMIT};
use super::owner::{label, unique_name};
use super::removal::Removal;
use super::server::Container;

/// A container that runs in the background until it is dropped, or until we are gone; servers are started in it with
/// `exec`.
///
/// Its own command must wait, such as a server that reads its stdin, which stays open.
#[derive(Debug)]
pub struct Detached {
    removal: Removal,
}

impl Detached {
    /// Starts a container of `image`; `options` are of `run`, `arguments` are the container's command.
    ///
    /// Blocks: inside a runtime, give it to a blocking thread.
    pub fn start(
        engine: &Engine,
        image: &str,
        options: &[OsString],
        arguments: &[OsString],
    ) -> Result<Detached, EngineError> {
        engine.sweep()?;
        // From here on it is removed, whatever happens.
        let removal = Removal::of(engine.clone(), unique_name());
        let name = removal.name();
        let words = ["run", "--detach", "--interactive", "--rm", "--name", name, "--label", &label()];
        let words = words.iter().map(OsString::from).chain(options.iter().cloned());
        let words = words.chain([image.into()]).chain(arguments.iter().cloned());
        engine.tell_within(RUN_LIMIT, words)?;
        Ok(Detached { removal })
    }

    /// What the engine calls it.
    pub fn name(&self) -> &str {
        self.removal.name()
    }

    /// A server in it, for the client; `arguments` is its command.
    pub fn exec(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Container {
        let mut container = Container::running(self.name());
        container.engine = Some(self.removal.engine().program().to_owned());
        container.arguments = arguments.into_iter().map(Into::into).collect();
        container
    }
}
