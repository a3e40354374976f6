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
mod floods;
mod full_disk;
mod generate;
mod generate_oracle;
mod help;
mod http;
mod init;
mod list;
mod mock;
mod prompt;
mod read;
mod record;
mod record_http;
mod replay;
mod replay_choice;
mod replay_dialect;
mod replay_empty;
mod replay_kept;
mod request;
mod save;
mod secrets;
mod server_failures;
mod sessions_in_order;
mod signals;
mod spy;
mod stage;
mod told;
mod trace;
mod trace_check;
mod traced;
mod verify;
mod verify_again;
mod verify_drift;
mod verify_match;
mod verify_members;
mod verify_opening;
mod verify_secrets;
mod verify_words;
mod which_server;
mod wrap;
