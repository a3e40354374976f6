//! `rehearse`: everything that Rehearsal does, from the command line.

mod cli;
mod print;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run(&cli::Context::read())
}
