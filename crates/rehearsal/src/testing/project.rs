//! A server in a temporary folder, which is removed when the test ends.

use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use super::blocking::BlockingClient;
use crate::client::{Client, ClientBuilder};

/// A temporary folder with the files of the server under test. Dropping it removes the folder, also after a panic.
///
/// # Panics
///
/// Every function panics with an explanation if the folder or a file cannot be written, because the test cannot continue.
#[derive(Debug)]
pub struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    /// Creates an empty folder.
    #[track_caller]
    #[expect(clippy::new_without_default, reason = "a default that touches the disk would surprise")]
    pub fn new() -> Project {
        let folder = tempfile::Builder::new().prefix("rehearsal-").tempdir();
        Project { folder: folder.unwrap_or_else(|error| panic!("cannot make a temporary folder: {error}")) }
    }

    /// Copies a file, or a folder with all that is in it, to this place in the project.
    #[track_caller]
    pub fn copy(self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Project {
        let (from, to) = (from.as_ref(), self.place(to.as_ref()));
        if let Err(error) = copy(from, &to) {
            panic!("cannot copy {} to the project: {error}", from.display());
        }
        self
    }

    /// Writes a file at this place in the project.
    #[track_caller]
    pub fn file(self, at: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Project {
        let to = self.place(at.as_ref());
        let written = to.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&to, content));
        if let Err(error) = written {
            panic!("cannot write {}: {error}", to.display());
        }
        self
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    #[track_caller]
    fn place(&self, inside: &Path) -> PathBuf {
        let leaves = inside.components().any(|part| matches!(part, std::path::Component::ParentDir));
        assert!(inside.is_relative() && !leaves, "{} is not inside of the project", inside.display());
        self.folder.path().join(inside)
    }

    /// Starts a server in the folder; `server` is given the folder's path.
    ///
    /// # Panics
    ///
    /// If the server cannot be started, with the evidence.
    pub async fn start(self, server: impl FnOnce(&Path) -> ClientBuilder) -> RunningServer {
        match server(self.path()).current_dir_of_process(self.path()).connect().await {
            Ok(client) => RunningServer { client, project: self },
            Err(error) => panic!("the server of this test cannot be used: {error}"),
        }
    }

    /// Starts a server in the folder, for a plain `#[test]`.
    ///
    /// # Panics
    ///
    /// If the server cannot be started, with the evidence.
    #[track_caller]
    pub fn start_blocking(self, server: impl FnOnce(&Path) -> ClientBuilder) -> RunningServer<BlockingClient> {
        match BlockingClient::connect(server(self.path()).current_dir_of_process(self.path())) {
            Ok(client) => RunningServer { client, project: self },
            Err(error) => panic!("the server of this test cannot be used: {error}"),
        }
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent)?;
    }
    if !from.is_dir() {
        return std::fs::copy(from, to).map(drop);
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// A client whose server runs in a [`Project`]. Dropping it stops the server and removes the folder.
#[derive(Debug)]
pub struct RunningServer<C = Client> {
    // Dropped first: the server must exit before its folder is removed.
    client: C,
    project: Project,
}

impl<C> RunningServer<C> {
    /// The folder that the server runs in.
    pub fn project(&self) -> &Project {
        &self.project
    }
}

impl<C> Deref for RunningServer<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.client
    }
}
