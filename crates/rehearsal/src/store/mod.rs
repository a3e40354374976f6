//! Finds, recognizes and opens files of recordings.
//!
//! ```text
//! path or stdin ──► Recording ──► Part, Part, …      in the order of the file, whatever its format
//!                             ──► TimelineItem, …     in the order in which it happened
//! ```

mod read_at;
mod recording;

pub use recording::{BadLines, Input, OpenError, Parts, Recording, RecordingTimeline};
