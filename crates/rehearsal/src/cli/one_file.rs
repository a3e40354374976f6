//! Whether two paths lead to one file.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether two paths lead to the same file, which need not be there yet.
pub(super) fn is_one_file(one: &Path, other: &Path) -> bool {
    let node = |path: &Path| path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
    match (node(one), node(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => std::path::absolute(one).ok() == std::path::absolute(other).ok(),
        (Some(_), None) | (None, Some(_)) => false,
    }
}
