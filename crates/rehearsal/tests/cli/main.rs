//! CLI tests: the `rehearse` binary in a shell.
//!
//! Each test compares the exit status, stdout and stderr of a line of shell.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue panics")]

mod answers;
mod cache;
mod call;
mod check;
mod containers;
mod convert;
mod crash;
mod crash_http;
mod docs;
mod dry_run;
mod elicitation;
mod exec;
mod fixture;
mod floods;
mod full_disk;
mod generate;
mod generate_oracle;
mod help;
mod http;
mod init;
mod list;
mod logs_and_progress;
mod mock;
mod prompt;
mod read;
mod record;
mod record_http;
mod replay;
mod replay_choice;
mod replay_dialect;
mod replay_empty;
mod replay_sidecars;
mod request;
mod save;
mod saved_plans;
mod secrets;
mod server_failures;
mod server_selection;
mod sessions_in_order;
mod signals;
mod spy;
mod trace;
mod trace_check;
mod trace_contents;
mod types;
mod verify;
mod verify_differences;
mod verify_handshake;
mod verify_match;
mod verify_members;
mod verify_messages;
mod verify_repeats;
mod verify_secrets;
mod wrap;
