//! What people may write after `instruction-server`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Parser;

/// An MCP server over a folder of Markdown instructions with YAML front matter.
///
/// It speaks MCP on stdin and stdout until stdin ends. A file that cannot be read is named on stderr and left out.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct CommandLine {
    /// The folder of the instructions
    #[arg(long, value_name = "DIR", env = "INSTRUCTIONS_PATH", default_value = "./instructions")]
    pub(crate) instructions: PathBuf,

    /// Serves Streamable HTTP instead and prints the URL on stderr; a port, or IP:PORT, or a free port of 127.0.0.1
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "0", value_parser = address)]
    pub(crate) http: Option<SocketAddr>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(|port: u16| (Ipv4Addr::LOCALHOST, port).into());
    let bad = |_| "must be a port or IP:PORT".to_owned();
    port.or_else(|_| text.replace("localhost:", "127.0.0.1:").parse()).map_err(bad)
}
