//! One container for many servers.

use std::ffi::OsString;

use super::engine::{Engine, EngineError, label, unique_name};
use super::server::Container;

/// A container that runs in the background until it is dropped; servers are started in it with `exec`.
///
/// Its own command must wait, such as a server that reads its stdin, which stays open.
#[derive(Debug)]
pub struct Detached {
    engine: Engine,
    name: String,
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
        engine.sweep();
        let name = unique_name();
        let words = ["run", "--detach", "--interactive", "--rm", "--name", &name, "--label", &label()];
        let words = words.iter().map(OsString::from).chain(options.iter().cloned());
        let words = words.chain([image.into()]).chain(arguments.iter().cloned());
        engine.tell(words)?;
        Ok(Detached { engine: engine.clone(), name })
    }

    /// What the engine calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A server in it, for the client; `arguments` is its command.
    pub fn exec(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Container {
        let mut container = Container::running(&self.name);
        container.engine = Some(self.engine.program().to_owned());
        container.arguments = arguments.into_iter().map(Into::into).collect();
        container
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        self.engine.remove(&self.name);
    }
}
