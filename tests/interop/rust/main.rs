//! Other people's servers and clients, and ours, talking to each other.
//!
//! What is talked to is installed, pinned, by `tests/interop/install` into a cache outside the repository.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod checked;
mod clients;
mod containers;
mod cut_streams;
mod everything;
mod faults;
mod forwarded;
mod generated;
mod generated_edited;
mod hooked;
mod initiated;
mod inspector;
mod installed;
mod mocked;
mod recorded;
mod recorded_http;
mod replayed;
mod retold;
mod rmcp_client;
mod servers;
mod spied;
mod tasks;
mod test_file;
mod told;
