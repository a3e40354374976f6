//! Mock files, written: what a server offers and said becomes a file that people go on editing.
//!
//! ```text
//! what was listed and said, as it was on the wire ──► Draft ──► YAML that `parse` reads
//! ```
//!
//! Texts of mock files are templates; what only looks like one is put in `{% raw %}`.

mod draft;
mod listed;
mod said;
mod step;

pub use draft::{Draft, DraftAnswer, Offer, Says};
pub use said::{literal, literal_value, with_expressions};
pub use step::{DraftQuestion, DraftStep};
