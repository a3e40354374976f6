//! The answer source of mock files: compiled tools, resources and prompts, and their rules.
//!
//! ```text
//! MockFile ──compile──► Mock ──► ScriptSource: request ──► target ──► rule ──► CompiledAnswer
//! ```

mod answer_target;
mod compile;
mod compile_target;
mod conditions;
mod content;
mod mock;
mod rule;
mod source;
mod state;
mod template;
mod template_limits;
mod template_rewrite;
mod uri_template;
mod verbatim;

pub use mock::{Mock, MockSource, ReadSibling};
pub use source::ScriptSource;
pub use uri_template::UriTemplate;
pub use verbatim::{declaring, keep_listed_forms};

pub(super) use super::respond::TaskOptions;
pub(super) use answer_target::AnswerTarget;
pub(super) use conditions::{CompiledConditions, RuleInput, parsed_or_report};
pub(super) use content::{CompileContext, ObjectBuilder};
pub(super) use rule::{no_rule_fits, with_mismatches};
pub(super) use state::MockState;
pub(super) use template::{TemplateScope, TemplateValue, Templates};
