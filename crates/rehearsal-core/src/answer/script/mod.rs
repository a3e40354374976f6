//! Mock files as a source: compiled tools, resources and prompts, and the rules that answer for them.
//!
//! ```text
//! MockFile ──compile──► Mock ──► ScriptSource: request ──► target ──► rule ──► CompiledAnswer
//! ```

mod compile;
mod compile_target;
mod content;
mod faithful;
mod given;
mod mock;
mod rule;
mod source;
mod state;
mod target;
mod template;
mod template_limits;
mod template_rewrite;
mod uri_template;

pub use faithful::{declaring, keep_listed_forms};
pub use mock::{Mock, MockSource, ReadSibling};
pub use source::ScriptSource;
pub use uri_template::UriTemplate;

pub(super) use super::respond::TaskOptions;
pub(super) use content::{CompileContext, ObjectBuilder};
pub(super) use given::{CompiledConditions, RuleInput, meant};
pub(super) use rule::{no_rule_fits, with_mismatches};
pub(super) use state::MockState;
pub(super) use target::AnswerTarget;
pub(super) use template::{TemplateScope, TemplateValue, Templates};
