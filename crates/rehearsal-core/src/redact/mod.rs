//! Removes secrets from recorded data before it is written anywhere.
//!
//! ```text
//! EntryBody ──► Redaction ──► EntryBody, with [redacted:3f9a2c1b] in place of every secret    + RedactedSecret: type and place
//!                  │
//!                  ├─ one linear scan for anything suspicious; most messages end here, unchanged and not copied
//!                  └─ walk of the JSON: secret keys, secret values, JSON text inside strings, URLs ──► edits of the exact bytes
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
mod json_walk;
mod lines;
mod prefilter;
mod pseudonym;
mod pseudonym_map;
mod redacted;
mod redaction;
mod rule;
mod secret_key;
mod secret_scan;
mod text;
mod token;
mod url;

pub use lines::LineRun;
pub use lines::{Edge, PRIVATE_KEY, last_edge};
pub use pseudonym::{has_pseudonym, pseudonym};
pub use pseudonym_map::{PseudonymMap, RedactedValue};
pub use redacted::{RedactedSecret, RedactionSummary, SecretKind};
pub use redaction::Redaction;
pub use rule::{RedactionRule, RuleError};
pub use url::shown_url;
