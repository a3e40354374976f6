//! Measures Rehearsal and a minimal program with the same work, in one run.
//!
//! ```text
//! round:  ours ─ bare ─ ours ─ bare ─ …  ──► medians ──► what, ours, bare, ratio
//! ```
//!
//! Both ends of every connection share one CPU, because waking an idle CPU takes longer than the measured work.
//! Compare the ratios of two machines, not their times.

mod dry_run;
mod echo;
mod http;
mod messages;
mod mock;
mod peer_clients;
mod proxy;
mod record;
mod replay;
#[cfg(feature = "peers")]
mod rmcp_echo;
mod serve;
mod stdio;
mod table;

use std::error::Error;
use std::process::ExitCode;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use table::Table;

const USAGE: &str = "usage: bench [--json] [--rounds N] [--only PART_OF_A_NAME] [--any-cpu]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some(echo::ARGUMENT) => echo::echo().map_err(Into::into),
        Some(http::ARGUMENT) => http::echo().map_err(Into::into),
        Some(proxy::PUMP) => proxy::pump(&arguments[1..]),
        Some(proxy::RECORDER) => proxy::record(&arguments[1..]),
        Some(record::PUMP) => record::pump(),
        Some(record::RECORDER) => record::record(arguments.get(1).map_or("trace.jsonl", String::as_str)),
        Some(mock::ARGUMENT) => mock::serve(arguments.get(1)),
        Some(mock::OVER_HTTP) => mock::serve_http(arguments.get(1)),
        Some(dry_run::WORKER) => rehearsal_sandbox::worker_main(),
        Some(replay::ARGUMENT) => replay::serve(arguments.get(1)),
        Some(replay::OVER_HTTP) => replay::serve_http(arguments.get(1)),
        #[cfg(feature = "peers")]
        Some(rmcp_echo::ARGUMENT) => rmcp_echo::serve(),
        #[cfg(feature = "peers")]
        Some(rmcp_echo::OVER_HTTP) => rmcp_echo::serve_http(),
        _ => bench(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let mut json = false;
    let mut table = Table { cpu: None, rounds: 9, only: None, rows: Vec::new() };
    let mut any_cpu = false;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = true,
            "--any-cpu" => any_cpu = true,
            "--rounds" => table.rounds = arguments.next().ok_or(USAGE)?.parse().map_err(|_| USAGE)?,
            "--only" => table.only = Some(arguments.next().ok_or(USAGE)?.clone()),
            _ => return Err(USAGE.into()),
        }
    }
    if !any_cpu {
        table.cpu = Some(pin()?);
    }
    stdio::measure(&mut table)?;
    record::measure(&mut table)?;
    http::measure(&mut table)?;
    proxy::measure(&mut table)?;
    messages::measure_parsing(&mut table);
    messages::measure_pairing(&mut table);
    mock::measure(&mut table)?;
    replay::measure(&mut table)?;
    serve::measure(&mut table)?;
    dry_run::measure(&mut table)?;
    if json {
        println!("{}", table.json())
    } else {
        print!("{table}")
    }
    Ok(())
}

/// Stays on the last CPU that we may use, and with us every thread and process that we start.
fn pin() -> Result<usize, Box<dyn Error>> {
    let us = Pid::from_raw(0);
    let allowed = sched_getaffinity(us)?;
    let cpu = (0..CpuSet::count()).rev().find(|cpu| allowed.is_set(*cpu).unwrap_or(false)).ok_or("no CPU to run on")?;
    let mut only = CpuSet::new();
    only.set(cpu)?;
    sched_setaffinity(us, &only)?;
    Ok(cpu)
}
