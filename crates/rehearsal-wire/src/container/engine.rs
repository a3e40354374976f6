//! The command line of a container engine, and the images that it builds.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use super::cleanup::{LABEL, is_orphan};
use crate::stdio::{ServerCommand, SpawnError};

/// The engines to look for in `PATH`, in this order; they share one command line.
const ENGINES: [&str; 3] = ["docker", "podman", "nerdctl"];
/// The time limit of an engine command that should complete at once.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);
/// The time limit of an engine command that pulls an image and runs it.
pub(super) const RUN_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// How long to wait for the engine's output after its exit. A process that the engine started may keep the pipe open
/// longer.
const OUTPUT_WAIT: Duration = Duration::from_secs(1);

/// A container engine, by its command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    program: OsString,
}

/// Why a command of the container engine failed.
#[derive(thiserror::Error)]
pub enum EngineError {
    /// No container engine was found.
    #[error("there is no container engine: looked for {} in PATH", looked_for.join(", "))]
    NoEngine {
        /// The names that were looked for.
        looked_for: Vec<String>,
    },
    /// The engine could not be started.
    #[error("{program} could not be run: {cause}")]
    SpawnFailed {
        /// The command of the engine.
        program: String,
        /// The error of the operating system.
        #[source]
        cause: std::io::Error,
    },
    /// The engine exited with an error.
    #[error("`{command}` failed: {stderr}")]
    Failed {
        /// The command line that was run.
        command: String,
        /// What the engine printed to stderr.
        stderr: String,
    },
    /// The engine did not exit in time.
    #[error("`{command}` did not exit within {} s: does the engine hang?", within.as_secs_f64())]
    TimedOut {
        /// The command line that was run.
        command: String,
        /// The time limit.
        within: Duration,
    },
}

debug_as_display!(EngineError);

impl EngineError {
    /// Converts the error of an engine that was started like a server.
    pub(super) fn from_spawn(error: SpawnError) -> EngineError {
        match error {
            SpawnError::NoProgram { program } => EngineError::NoEngine { looked_for: vec![program] },
            SpawnError::Refused { program, cause } => EngineError::SpawnFailed { program, cause },
            SpawnError::NoInterpreter { ref program } | SpawnError::NotExecutable { ref program } => {
                EngineError::SpawnFailed { program: program.clone(), cause: std::io::Error::other(error.to_string()) }
            }
            SpawnError::NoWorkingDir { ref path } => EngineError::SpawnFailed {
                program: path.display().to_string(),
                cause: std::io::Error::other(error.to_string()),
            },
        }
    }
}

impl Engine {
    /// Returns the named engine, or the first of `docker`, `podman` and `nerdctl` that is in `PATH`.
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

    /// Runs an engine command, waits for its exit, and returns what it printed.
    ///
    /// Blocks, at most 20 seconds: inside a runtime, call it on a blocking thread.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Result<String, EngineError> {
        self.run_with_timeout(COMMAND_TIMEOUT, arguments)
    }

    /// Runs an engine command with a time limit of its own.
    pub fn run_with_timeout<A: AsRef<OsStr>>(
        &self,
        limit: Duration,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<String, EngineError> {
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let command_line = std::iter::once(command.get_program()).chain(command.get_args());
        let command_line = command_line.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ");
        let program = || self.program.to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(|cause| match cause.kind() {
            std::io::ErrorKind::NotFound => EngineError::NoEngine { looked_for: vec![program()] },
            _ => EngineError::SpawnFailed { program: program(), cause },
        })?;
        let (printed, stderr) = (read_in_background(child.stdout.take()), read_in_background(child.stderr.take()));
        let status = match wait_for_exit(&mut child, limit) {
            Ok(Some(status)) => status,
            Ok(None) => {
                // The kill cannot fail. If the wait fails, there is no process left to wait for.
                let _ = child.kill().and_then(|()| child.wait());
                return Err(EngineError::TimedOut { command: command_line, within: limit });
            }
            Err(cause) => return Err(EngineError::SpawnFailed { program: program(), cause }),
        };
        let text = |stream: mpsc::Receiver<Vec<u8>>| {
            let bytes = stream.recv_timeout(OUTPUT_WAIT).unwrap_or_default();
            String::from_utf8_lossy(&bytes).trim().to_owned()
        };
        if status.success() {
            return Ok(text(printed));
        }
        Err(EngineError::Failed { command: command_line, stderr: text(stderr) })
    }

    /// Returns the engine's command.
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// Builds an engine command that runs as a server.
    pub(super) fn server_command(&self) -> ServerCommand {
        ServerCommand::new(self.program.clone())
    }

    /// Removes a container, running or stopped, and waits until the engine no longer lists it.
    pub(super) fn remove(&self, name: &str) {
        // An error means that the container does not exist, that the engine does not run, or that the engine is already
        // removing the container.
        if let Err(EngineError::Failed { stderr, .. }) = self.run(["rm", "--force", name])
            && stderr.contains("in progress")
        {
            let filter = format!("name=^{name}$");
            let is_gone =
                || self.run(["ps", "--all", "--quiet", "--filter", &filter]).is_ok_and(|list| list.is_empty());
            let mut attempts = 50;
            while attempts > 0 && !is_gone() {
                attempts -= 1;
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }

    /// Removes containers left by test runs that were killed together with their watchdog. Runs once per process and
    /// engine.
    ///
    /// This is the first command that an engine gets, so an engine that hangs is detected here.
    pub(super) fn sweep(&self) -> Result<(), EngineError> {
        static SWEPT: Mutex<Vec<OsString>> = Mutex::new(Vec::new());
        let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.contains(&self.program) {
            return Ok(());
        }
        match self.list_labelled() {
            Ok(labelled) => {
                let orphans = labelled.iter().filter(|(_, owner)| is_orphan(owner));
                orphans.for_each(|(name, _)| self.remove(name));
            }
            Err(error @ EngineError::TimedOut { .. }) => return Err(error),
            // Not reported here: the command that follows fails with a better error.
            Err(EngineError::NoEngine { .. } | EngineError::SpawnFailed { .. } | EngineError::Failed { .. }) => {}
        }
        swept.push(self.program.clone());
        Ok(())
    }

    /// Returns the name and the owner of each container with our label.
    fn list_labelled(&self) -> Result<Vec<(String, String)>, EngineError> {
        let ids = self.run(["ps", "--all", "--quiet", "--filter", &format!("label={LABEL}")])?;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        // The only template for a label that every engine supports.
        let format = format!("{{{{.Name}}}} {{{{index .Config.Labels \"{LABEL}\"}}}}");
        let list = self.run(["container", "inspect", "--format", &format].into_iter().chain(ids.lines()))?;
        let pairs = list.lines().filter_map(|line| line.trim_start_matches('/').split_once(' '));
        Ok(pairs.map(|(name, owner)| (name.to_owned(), owner.to_owned())).collect())
    }
}

/// Reads a stream to its end on a separate thread, so that neither the child nor the caller blocks on it.
fn read_in_background(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (done, text) = mpsc::channel();
    if let Some(mut stream) = stream {
        let read = move || {
            let mut bytes = Vec::new();
            let _ = stream.read_to_end(&mut bytes);
            let _ = done.send(bytes);
        };
        // If no thread can be started, there is no text, only the exit status.
        let _ = std::thread::Builder::new().spawn(read);
    }
    text
}

/// Waits for a child up to `limit`.
fn wait_for_exit(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let begin = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begin.elapsed() >= limit {
            return Ok(None);
        }
        std::thread::sleep(pause.min(limit.saturating_sub(begin.elapsed())));
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// The time limit of a build, which may have to download base images.
const BUILD_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The tags of the images that this process built, by Dockerfile and target.
static BUILT: Mutex<BTreeMap<Recipe, String>> = Mutex::new(BTreeMap::new());

/// A Dockerfile and a stage of it.
type Recipe = (PathBuf, Option<String>);

/// Builds the image of a Dockerfile, once per test run, and returns its tag; `target` is a stage of it.
///
/// The folder of the Dockerfile is the context. Tests that request the same image concurrently wait for one build.
/// Blocks: inside a runtime, call it on a blocking thread.
pub fn build(engine: &Engine, dockerfile: &Path, target: Option<&str>) -> Result<String, EngineError> {
    let dockerfile = dockerfile.canonicalize().unwrap_or_else(|_| dockerfile.to_owned());
    let key = (dockerfile.clone(), target.map(str::to_owned));
    // The lock is held while building, so that concurrent callers wait for the result.
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(tag) = built.get(&key) {
        return Ok(tag.clone());
    }
    let tag = image_tag(&dockerfile, target);
    let context = dockerfile.parent().unwrap_or(Path::new("."));
    let mut arguments = vec!["build".into(), "--quiet".into(), "--tag".into(), tag.clone().into(), "--file".into()];
    arguments.push(dockerfile.clone().into_os_string());
    if let Some(target) = target {
        arguments.extend(["--target".into(), target.into()]);
    }
    arguments.push(context.into());
    engine.run_with_timeout(BUILD_TIMEOUT, arguments)?;
    built.insert(key, tag.clone());
    Ok(tag)
}

/// Builds the tag. The same Dockerfile has the same tag in every run, so that old images are replaced.
fn image_tag(dockerfile: &Path, target: Option<&str>) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (dockerfile, target).hash(&mut hasher);
    format!("rehearsal-test:{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_engine_is_named_in_the_error() {
        let engine = Engine::find(Some(OsStr::new("no-such-engine"))).unwrap();
        let error = engine.run(["version"]).unwrap_err();
        assert_eq!(error.to_string(), "there is no container engine: looked for no-such-engine in PATH");
    }

    #[test]
    fn the_error_of_a_failed_engine_contains_its_stderr() {
        let engine = Engine::find(Some(OsStr::new("sh"))).unwrap();
        let error = engine.run(["-c", "echo no such image >&2; exit 125"]).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c echo no such image >&2; exit 125` failed: no such image");
    }

    #[test]
    fn an_engine_that_hangs_times_out() {
        let engine = Engine::find(Some(OsStr::new("sh"))).unwrap();
        let error = engine.run_with_timeout(Duration::from_millis(20), ["-c", "read -r line < /dev/zero"]).unwrap_err();
        let expected = "`sh -c read -r line < /dev/zero` did not exit within 0.02 s: does the engine hang?";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn an_engine_child_that_keeps_the_pipes_open_does_not_block() {
        let engine = Engine::find(Some(OsStr::new("sh"))).unwrap();
        assert_eq!(engine.run(["-c", "sleep 3 & echo done >&2"]).unwrap(), "");
    }
}
