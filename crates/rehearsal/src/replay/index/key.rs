//! Keys under which exchanges are found that are not the same.

use rehearsal_core::message::Method;
use rehearsal_core::trace::RequestKey;
use serde_json::json;

/// All that is about one tool, prompt or resource.
pub(in crate::replay) fn about_key(method: &Method, subject: Option<&str>) -> RequestKey {
    RequestKey::of(&json!({"about": method.as_str(), "subject": subject}))
}

/// The same request, where a server refused it because of its version.
pub(in crate::replay) fn refused_key(key: RequestKey) -> RequestKey {
    RequestKey::of(&json!({"refused": key.to_string()}))
}

/// All of one method.
pub(in crate::replay) fn method_key(method: &str) -> RequestKey {
    RequestKey::of(&json!({"any": method}))
}
