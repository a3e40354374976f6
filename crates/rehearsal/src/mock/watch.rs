//! Files that are read again when they change.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{Files, LoadError, Server};

/// How often the files are looked at.
const EVERY: Duration = Duration::from_millis(200);

/// What came of reading the files again.
#[derive(Debug)]
pub enum Reload {
    /// The server answers from the new files.
    Done,
    /// The new files are broken, and the server goes on with the old ones.
    Kept(LoadError),
}

/// Reads the files again whenever one of them, or a file that they name, changes, for ever, and tells what came of it.
///
/// # Why not the kernel's notifications
///
/// Editors replace files, folders are mounted from elsewhere, and five looks a second at a handful of files cost nothing.
pub async fn watch(files: Files, server: Server, mut tell: impl FnMut(Reload)) {
    let mut paths = Vec::new();
    // Whether it can be read at all was said when it was read to be served.
    let _ = files.load_noting(&mut paths);
    let mut seen = stamps(&paths);
    loop {
        tokio::time::sleep(EVERY).await;
        if stamps(&paths) == seen {
            continue;
        }
        // Before it is read: what changes meanwhile is read again.
        let before = stamps(&paths);
        let mut noted = Vec::new();
        let loaded = files.load_noting(&mut noted);
        // A file that could not be understood names nothing, and what was named before may be what has to be mended.
        if loaded.is_err() {
            noted.extend(paths.iter().filter(|path| !noted.contains(path)).cloned().collect::<Vec<_>>());
        }
        seen = noted.iter().map(|path| known(&paths, &before, path).unwrap_or_else(|| stamp(path))).collect();
        paths = noted;
        match loaded {
            Ok(mock) => {
                server.replace(mock);
                tell(Reload::Done);
            }
            // Between two steps of an editor a file may be gone; the next look finds it.
            Err(LoadError::Unreadable { .. }) if seen.iter().any(Option::is_none) => {}
            Err(error) => tell(Reload::Kept(error)),
        }
    }
}

/// When a file last changed and how long it is; `None` for one that is not there.
type Stamp = Option<(SystemTime, u64)>;

fn stamps(paths: &[PathBuf]) -> Vec<Stamp> {
    paths.iter().map(|path| stamp(path)).collect()
}

fn stamp(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// The stamp of a path that was looked at.
fn known(paths: &[PathBuf], stamps: &[Stamp], path: &Path) -> Option<Stamp> {
    paths.iter().position(|other| other == path).map(|at| stamps[at])
}
