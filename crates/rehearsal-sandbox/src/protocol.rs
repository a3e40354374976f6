//! t
/// t
pub(crate) const PLAN_FILE: &str = "plan.ts";
