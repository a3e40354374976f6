//! One message a line, over pipes: a child process, or our own stdin and stdout.
//!
//! ```text
//! child: stdin  ◄── LineWriter ◄── Sender        own: stdin  ──► LineReader ──► Receiver
//!        stdout ──► LineReader ──► Receiver           stdout ◄── LineWriter ◄── Sender
//!        stderr ──► StderrTail (the last lines)
//! ```

mod child;
mod fault;
mod line_reader;
mod line_writer;
mod own_stdio;
mod process_group;
mod relay;
pub(crate) mod watchdog;

pub use child::{ServerCommand, SpawnError, StderrSink, StopMethod, spawn};
pub use own_stdio::own_stdio;
pub use relay::{ClientStreams, Relay, RelayEnd, RelayTap, StdioStream};
