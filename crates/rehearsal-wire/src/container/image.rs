//! Images for tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::engine::{Engine, EngineError};

/// How long a build may take, which may have to fetch a lot.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// What was built in the life of this process, by its Dockerfile and target.
static BUILT: Mutex<BTreeMap<Recipe, String>> = Mutex::new(BTreeMap::new());

/// A Dockerfile and a stage of it.
type Recipe = (PathBuf, Option<String>);

/// Builds the image of a Dockerfile, once per test run, and gives its tag; `target` is a stage of it.
///
/// The folder of the Dockerfile is the context. Tests that ask for the same image at the same time wait for one build.
/// Blocks: inside a runtime, give it to a blocking thread.
pub fn build(engine: &Engine, dockerfile: &Path, target: Option<&str>) -> Result<String, EngineError> {
    let dockerfile = dockerfile.canonicalize().unwrap_or_else(|_| dockerfile.to_owned());
    let key = (dockerfile.clone(), target.map(str::to_owned));
    // Held while building: that is the waiting.
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(tag) = built.get(&key) {
        return Ok(tag.clone());
    }
    let tag = tag_of(&dockerfile, target);
    let context = dockerfile.parent().unwrap_or(Path::new("."));
    let mut arguments = vec!["build".into(), "--quiet".into(), "--tag".into(), tag.clone().into(), "--file".into()];
    arguments.push(dockerfile.clone().into_os_string());
    if let Some(target) = target {
        arguments.extend(["--target".into(), target.into()]);
    }
    arguments.push(context.into());
    engine.tell_within(LIMIT, arguments)?;
    built.insert(key, tag.clone());
    Ok(tag)
}

/// The same Dockerfile gives the same tag in every run, so that images do not pile up.
fn tag_of(dockerfile: &Path, target: Option<&str>) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (dockerfile, target).hash(&mut hasher);
    format!("rehearsal-test:{:016x}", hasher.finish())
}
