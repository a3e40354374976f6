//! Other people's servers and clients, and ours, talking to each other.
//!
//! What is talked to is installed, pinned, by `tests/interop/install` into a cache outside the repository.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod clients;
mod containers;
mod cut_streams;
mod dry_run;
mod faults;
mod forwarded;
mod generated;
mod generated_edited;
mod hooks;
mod init;
mod inspector;
mod installation;
mod mocked;
mod notifications;
mod recorded;
mod recorded_http;
mod replayed;
mod replayed_across_sdks;
mod rmcp_client;
mod schema_suite;
mod server_everything;
mod servers;
mod spy;
mod tasks;
mod test_file;
mod trace_check;
mod types;
