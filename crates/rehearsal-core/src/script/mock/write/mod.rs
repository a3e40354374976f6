//! Writes mock files from a server's offers and recorded responses, for users to edit.
//!
//! ```text
//! recorded items and responses in their wire form ──► MockDraft ──► YAML that `parse` reads
//! ```
//!
//! Texts of mock files are templates; literal text that looks like a template is put in `{% raw %}`.

mod draft;
mod items;
mod result;
mod step;

pub use draft::{DraftAnswer, DraftBody, DraftItem, MockDraft};
pub use result::{escape_template, escape_value, with_expressions};
pub use step::{DraftInputRequest, DraftStep};
