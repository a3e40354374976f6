//! What the answers of common situations have in them, whatever the case of their letters.

use rehearsal::testing::ContentMatcher;

/// Something was finished: reflect on it.
pub const LEARNING_LOOP_MATCHER: ContentMatcher = ContentMatcher::all(&["learning loop", "retrospective"]);

/// Something should be written down.
pub const WORK_LOG_MATCHER: ContentMatcher = ContentMatcher::all(&["work log", "entry"]);

/// Something should be checked.
pub const CHECKLIST_MATCHER: ContentMatcher = ContentMatcher::all(&["checklist"]);
