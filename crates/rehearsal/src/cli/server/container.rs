//! A server in a container.

use std::ffi::OsString;

use clap::Args;
use rehearsal::wire::container::Container;

use super::error::ServerError;
use super::which::WHICH;

/// What names a server in a container.
#[derive(Args, Debug)]
pub(super) struct ContainerOptions {
    /// Run an image; what comes after `--` are arguments for it
    #[arg(long, value_name = "IMAGE", help_heading = WHICH)]
    container: Option<String>,

    /// Run the command after `--` in a container that is running
    #[arg(long, value_name = "CONTAINER", help_heading = WHICH)]
    exec: Option<String>,

    /// The engine of the container [default: docker, podman or nerdctl, whichever is found]
    #[arg(long, value_name = "NAME", help_heading = WHICH, value_hint = clap::ValueHint::CommandName)]
    engine: Option<OsString>,

    /// One more option for the engine's `run` or `exec`, such as --volume=DIR:DIR; may be repeated
    #[arg(long, value_name = "OPTION", help_heading = WHICH, allow_hyphen_values = true)]
    engine_option: Vec<OsString>,
}

impl ContainerOptions {
    /// The container that was named, with the words after `--`.
    pub(super) fn container(&self, words: &[OsString]) -> Result<Option<Container>, ServerError> {
        let mut container = match (&self.container, &self.exec) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => return Err(ServerError::TwoServers { one: "--container", other: "--exec" }),
            (Some(image), None) => Container::image(image),
            (None, Some(name)) if words.is_empty() => return Err(ServerError::NoCommand { container: name.clone() }),
            (None, Some(name)) => Container::running(name),
        };
        container.engine.clone_from(&self.engine);
        container.options.clone_from(&self.engine_option);
        container.arguments = words.to_vec();
        Ok(Some(container))
    }

    /// The option that names the container.
    pub(super) fn option(&self) -> &'static str {
        if self.exec.is_some() { "--exec" } else { "--container" }
    }

    /// An option that is of use for a container only, if one was given.
    pub(super) fn extra(&self) -> Option<&'static str> {
        let engine = self.engine.as_ref().map(|_| "--engine");
        engine.or_else(|| (!self.engine_option.is_empty()).then_some("--engine-option"))
    }
}
