//! Log levels, and who wants to hear which.

use rehearsal_core::answer::unknown_level;
use rehearsal_core::message::Method;
use rehearsal_core::script::mock::LogLevel;
use serde_json::{Value, json};

use crate::call::Call;
use crate::instead::Instead;

/// `logging/setLevel`, before 2026-07-28: the connection remembers.
pub(crate) fn set_level(call: &Call) -> Result<Value, Instead> {
    let level = call.text_param("level")?;
    let level = LogLevel::named(level).ok_or_else(|| Instead::invalid_params(unknown_level(level)))?;
    call.session.memory().log_level = Some(level);
    Ok(json!({}))
}

/// Sends `message` to the client if it wants to hear messages of that level.
pub(crate) async fn log(call: &Call, level: LogLevel, message: &str) {
    if call.terms.logs.include(Some(level)) {
        let params = json!({"level": level.name(), "logger": "tiny-server", "data": message});
        call.notify(Method::LOG_MESSAGE, params).await;
    }
}
