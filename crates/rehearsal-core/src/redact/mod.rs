//! Removes secrets from recorded data before it is written anywhere.
//!
//! ```text
//! What ──► Redaction ──► What, with [redacted:3f9a2c1b] in place of every secret    + Hits: types and places
//!             │
//!             ├─ one linear scan for anything suspicious; most messages end here, unchanged and not copied
//!             └─ walk of the JSON: secret keys, secret values, JSON text inside strings, URLs ──► edits of the exact bytes
//! ```
//!
//! Equal secrets become equal pseudonyms, in every run and at every place, so a request that is redacted the same way
//! still matches its recording. Everything else keeps its bytes: keys, order, spacing, number digits. A string stays a
//! string and a number stays a number.
//!
//! Data of the protocol is never changed: ids, methods, progress tokens, cursors, `requestState`, the names of tools
//! and prompts, the reserved keys of `_meta`, schemas, event ids and `Mcp-Session-Id`.

mod command;
mod header;
mod hit;
mod key;
mod lines;
mod needle;
mod pseudonym;
mod redaction;
mod rule;
mod scan;
mod stand_in;
mod text;
mod token;
mod url;
mod walk;

pub use hit::{RedactedSecret, RedactionSummary, SecretKind};
pub use lines::LineRun;
pub use lines::{Edge, PRIVATE_KEY, last_edge};
pub use pseudonym::{has_pseudonym, pseudonym};
pub use redaction::Redaction;
pub use rule::{RedactionRule, RuleError};
pub use stand_in::{PseudonymMap, RedactedValue};
pub use url::shown_url;
