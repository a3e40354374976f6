//! An MCP server over a folder of Markdown instructions; see `--help`.
//!
//! ```text
//! folder ──► instructions ──► engines (BM25) ──► library ──► four tools ──► stdio or HTTP
//! ```

mod command_line;
mod engine;
mod folder;
mod instruction;
mod library;
mod results;
mod serve;
mod server;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use command_line::CommandLine;
use folder::Folder;
use library::Library;
use server::InstructionServer;

fn main() -> ExitCode {
    let CommandLine { instructions: path, http } = CommandLine::parse();
    let folder = match Folder::read(&path) {
        Ok(folder) => folder,
        Err(error) => {
            eprintln!("instruction-server: cannot read the folder {}: {error}", path.display());
            eprintln!("hint: name it with --instructions DIR or INSTRUCTIONS_PATH");
            return ExitCode::from(2);
        }
    };
    report(&path, &folder);
    let server = InstructionServer::new(Library::new(folder.instructions));
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let served = runtime.block_on(async {
        match http {
            Some(address) => serve::http(server, address).await,
            None => serve::stdio(server).await,
        }
    });
    // A thread that reads from a terminal cannot be stopped, and must not be waited for.
    runtime.shutdown_background();
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

/// ```text
/// instructions/broken.md:4: unknown field `tag`; the file is left out
/// 9 instructions in ./instructions
/// ```
fn report(path: &Path, folder: &Folder) {
    for file in &folder.left_out {
        eprintln!("{file}; the file is left out");
    }
    match folder.instructions.len() {
        0 => eprintln!("no instructions in {}", path.display()),
        1 => eprintln!("1 instruction in {}", path.display()),
        count => eprintln!("{count} instructions in {}", path.display()),
    }
}

fn failed(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("instruction-server: {error}");
    ExitCode::FAILURE
}
