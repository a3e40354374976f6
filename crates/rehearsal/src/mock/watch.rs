//! Files that are read again when they change.

use std::path::PathBuf;
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

/// Reads the files again whenever one of them changes, for ever, and tells what came of it.
///
/// # Why not the kernel's notifications
///
/// Editors replace files, folders are mounted from elsewhere, and five looks a second at a handful of files cost nothing.
pub async fn watch(files: Files, server: Server, mut tell: impl FnMut(Reload)) {
    let mut seen = stamps(&files.paths);
    loop {
        tokio::time::sleep(EVERY).await;
        let now = stamps(&files.paths);
        if now == seen {
            continue;
        }
        seen = now;
        match files.load() {
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

/// When each file last changed and how long it is; `None` for one that is not there.
fn stamps(paths: &[PathBuf]) -> Vec<Option<(SystemTime, u64)>> {
    let stamp = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    paths.iter().map(stamp).collect()
}
