//! The real binary, run as people run it.
//!
//! Each scene is a line of shell and what came of it: exit status, stdout and stderr.

#![expect(clippy::unwrap_used, reason = "a scene that cannot be set up has failed")]

mod answers;
mod call;
mod check;
mod containers;
mod convert;
mod crash;
mod crash_http;
mod docs;
mod docs_words;
mod elicitation;
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
mod secrets;
mod server_failures;
mod server_selection;
mod sessions_in_order;
mod signals;
mod spy;
mod trace;
mod trace_check;
mod trace_contents;
mod verify;
mod verify_differences;
mod verify_handshake;
mod verify_match;
mod verify_members;
mod verify_messages;
mod verify_repeats;
mod verify_secrets;
mod wrap;
