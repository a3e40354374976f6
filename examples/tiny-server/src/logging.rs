//! Log levels, and who wants to hear which.

use rehearsal_core::message::Method;
use serde_json::{Value, json};

use crate::call::Call;
use crate::instead::Instead;

/// The levels of syslog, the least urgent first.
pub(crate) const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// How urgent a log message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Level(usize);

impl Level {
    /// What every message reaches.
    pub(crate) const LOWEST: Level = Level(0);

    /// The level of that name.
    pub(crate) fn named(name: &str) -> Option<Level> {
        LEVELS.iter().position(|level| *level == name).map(Level)
    }

    /// Its name on the wire.
    pub(crate) fn name(self) -> &'static str {
        LEVELS[self.0]
    }
}

/// `logging/setLevel`, before 2026-07-28: the connection remembers.
pub(crate) fn set_level(call: &Call) -> Result<Value, Instead> {
    let level = call.text_param("level")?;
    let level = Level::named(level).ok_or_else(|| Instead::invalid_params(unknown(level)))?;
    call.session.memory().log_level = Some(level);
    Ok(json!({}))
}

/// Sends `message` to the client if it wants to hear messages of that level.
pub(crate) async fn log(call: &Call, level: Level, message: &str) {
    if call.terms.log_from.is_some_and(|from| level >= from) {
        let params = json!({"level": level.name(), "logger": "tiny-server", "data": message});
        call.notify(Method::LOG_MESSAGE, params).await;
    }
}

/// `unknown level "loud"; there are debug, info, …`
pub(crate) fn unknown(level: &str) -> String {
    format!("unknown level {level:?}; there are {}", LEVELS.join(", "))
}
