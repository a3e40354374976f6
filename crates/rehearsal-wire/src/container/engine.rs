//! The engine's command line.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::stdio::{ServerCommand, SpawnError};

/// The engines that are looked for, in this order; they share one command line.
const ENGINES: [&str; 3] = ["docker", "podman", "nerdctl"];
/// On every container that we start; its value says whose it is.
const LABEL: &str = "rehearsal";

/// A container engine, by its command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    program: OsString,
}

/// Why an engine did not do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// There is none.
    #[error("there is no container engine: looked for {} in PATH", looked_for.join(", "))]
    NoEngine {
        /// What was looked for.
        looked_for: Vec<String>,
    },
    /// It could not be run.
    #[error("{program} could not be run: {cause}")]
    NotRun {
        /// The engine.
        program: String,
        /// Why not.
        #[source]
        cause: std::io::Error,
    },
    /// It said no.
    #[error("`{command}` failed: {said}")]
    Failed {
        /// What it was told.
        command: String,
        /// What it said.
        said: String,
    },
}

impl EngineError {
    /// The same as the reason for a server that could not be started.
    pub(super) fn into_spawn_error(self) -> SpawnError {
        match self {
            EngineError::NoEngine { looked_for } => SpawnError::NoProgram { program: looked_for.join(" or ") },
            EngineError::NotRun { program, cause } => SpawnError::Refused { program, cause },
            EngineError::Failed { command, said } => {
                SpawnError::Refused { program: command, cause: std::io::Error::other(said) }
            }
        }
    }
}

impl Engine {
    /// The one that is named, or the first of `docker`, `podman` and `nerdctl` that is in `PATH`.
    pub fn find(named: Option<&OsStr>) -> Result<Engine, EngineError> {
        if let Some(program) = named {
            return Ok(Engine { program: program.to_owned() });
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let found = |engine: &&str| folders.iter().any(|folder| folder.join(engine).is_file());
        let engine = ENGINES.into_iter().find(|engine| found(engine));
        let looked_for = || ENGINES.map(str::to_owned).to_vec();
        let program = engine.ok_or_else(|| EngineError::NoEngine { looked_for: looked_for() })?;
        Ok(Engine { program: program.into() })
    }

    /// Tells the engine something and waits until it is done; what it printed.
    ///
    /// Blocks: inside a runtime, give it to a blocking thread.
    pub fn tell<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Result<String, EngineError> {
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::null());
        let program = || self.program.to_string_lossy().into_owned();
        let output = command.output().map_err(|cause| match cause.kind() {
            std::io::ErrorKind::NotFound => EngineError::NoEngine { looked_for: vec![program()] },
            _ => EngineError::NotRun { program: program(), cause },
        })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(EngineError::Failed { command: words.join(" "), said })
    }

    /// Its command.
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// A command of the engine's that becomes a server.
    pub(super) fn server(&self) -> ServerCommand {
        ServerCommand::new(self.program.clone())
    }

    /// Removes a container, running or not, and waits until it is gone.
    pub(super) fn remove(&self, name: &str) {
        // An error means that it is gone, that the engine is, or that the engine is about to remove it by itself.
        if let Err(EngineError::Failed { said, .. }) = self.tell(["rm", "--force", name])
            && said.contains("in progress")
        {
            let filter = format!("name=^{name}$");
            let is_gone =
                || self.tell(["ps", "--all", "--quiet", "--filter", &filter]).is_ok_and(|list| list.is_empty());
            let mut patience = 50;
            while patience > 0 && !is_gone() {
                patience -= 1;
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }

    /// Removes what test runs left that were killed; once in the life of this process.
    pub(super) fn sweep(&self) {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| {
            let format = format!("{{{{.Names}}}} {{{{.Label \"{LABEL}\"}}}}");
            let filter = format!("label={LABEL}");
            let Ok(list) = self.tell(["ps", "--all", "--filter", &filter, "--format", &format]) else { return };
            for (name, owner) in list.lines().filter_map(|line| line.split_once(' ')) {
                if is_orphan(owner) {
                    self.remove(name);
                }
            }
        });
    }
}

/// `rehearsal=HOST/NAMESPACE/PID`: enough to know later whether we are still there.
pub(super) fn label() -> String {
    format!("{LABEL}={}/{}", home(), std::process::id())
}

/// Which host and which process namespace a process id is from: elsewhere the same id means somebody else.
fn home() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let inode: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    format!("{}/{inode}", host.trim())
}

fn is_orphan(owner: &str) -> bool {
    match owner.rsplit_once('/') {
        Some((there, process)) => there == home() && !std::path::Path::new("/proc").join(process).exists(),
        None => false,
    }
}

/// A name that no container has.
pub(super) fn unique_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    format!("rehearsal-{}-{}-{nanoseconds}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_containers_of_dead_processes_of_this_very_place_are_orphans() {
        assert!(!is_orphan(&format!("{}/{}", home(), std::process::id())), "we live");
        assert!(is_orphan(&format!("{}/4194305", home())), "beyond the largest process id");
        assert!(!is_orphan("elsewhere/1/4194305"));
        assert!(!is_orphan("17"));
    }

    #[test]
    fn an_engine_that_is_not_there_is_named() {
        let engine = Engine::find(Some(OsStr::new("no-such-engine"))).unwrap();
        let error = engine.tell(["version"]).unwrap_err();
        assert_eq!(error.to_string(), "there is no container engine: looked for no-such-engine in PATH");
    }

    #[test]
    fn what_an_engine_says_when_it_fails_is_passed_on() {
        let engine = Engine::find(Some(OsStr::new("sh"))).unwrap();
        let error = engine.tell(["-c", "echo no such image >&2; exit 125"]).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c echo no such image >&2; exit 125` failed: no such image");
    }
}
