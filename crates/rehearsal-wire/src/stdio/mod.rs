//! One message a line, over pipes: a child process, or our own stdin and stdout.
//!
//! ```text
//! child: stdin  ◄── LineWriter ◄── Sender        own: stdin  ──► LineReader ──► Receiver
//!        stdout ──► LineReader ──► Receiver           stdout ◄── LineWriter ◄── Sender
//!        stderr ──► Tail (the last lines)
//! ```

mod child;
mod misbehave;
mod own;
mod process;
mod read;
mod relay;
pub(crate) mod watchdog;
mod write;

pub use child::{ServerCommand, SpawnError, StderrSink, StopMethod, spawn};
pub use own::own_stdio;
pub use relay::{ClientStreams, Relay, RelayEnd, RelayTap, StdioStream};
