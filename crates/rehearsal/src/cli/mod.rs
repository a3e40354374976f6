//! The verbs of the command line.
//!
//! ```text
//! words ──► CommandLine ──► ServerArgs ──► Client ──► verb ──► stdout: data
//!                                                     │
//!                                                  Failure ──► stderr: error, evidence, hint ──► Exit
//! ```

mod answer_exit;
mod arguments;
mod cache;
mod call;
mod catalogue;
mod check;
mod command_line;
mod completions;
mod context;
mod dry_run;
mod exec;
mod exit;
mod file_name;
mod flag_values;
mod generate;
mod init;
mod input_request;
mod list;
mod logout;
mod man;
mod mock;
mod output;
mod plan_file;
mod prompt;
mod read;
mod record;
mod replay;
mod request;
mod run;
mod save;
mod schema;
mod serve;
mod server;
mod trace;
mod types;
mod usage_error;
mod verify;
mod wrap;
mod wrapped_config;

pub(crate) use context::Context;
pub(crate) use run::run;
