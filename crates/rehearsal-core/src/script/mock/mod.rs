//! Mock files: a whole MCP server described in YAML.
//!
//! ```yaml
//! server: { name: weather, version: "1.0" }
//! tools:
//!   - name: get_forecast
//!     input_schema: { type: object, properties: { city: { type: string } }, required: [city] }
//!     answers:
//!       - when: { city: Oslo }
//!         text: Rain in Oslo
//!       - text: "Sun in {{ arguments.city }}"
//! ```
//!
//! Keys are in snake_case and become the camelCase of the wire. The user's data (arguments, structured content,
//! schemas, `meta`, text) is never changed.

mod answer;
mod check;
mod content;
mod fault;
mod file;
mod identifiers;
mod offers;
mod parse;
mod step;
mod unreachable;
pub mod write;

pub use answer::{AnswerRule, Conditions, Delay, ErrorAnswer};
pub use content::{Annotations, ContentBlock, ContentKind, EmbeddedResource, Icon, PromptMessage, Role};
pub use fault::{FaultKind, FaultRule, HttpFault};
pub use file::{Implementation, MethodError, MissingAnswers, MockFile, RequestEntry, Validate, json_schema};
pub use offers::{
    ArgumentEntry, ContentsEntry, PromptEntry, ResourceEntry, ResourceTemplateEntry, TaskSupport, ToolAnnotations,
    ToolEntry,
};
pub use parse::parse;
pub use step::{
    ChangedEntry, Elicitation, ElicitationMode, EmptyRound, InputRequestEntry, ProgressEntry, Sampling, Step,
    TaskAnswer,
};
