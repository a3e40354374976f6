//! What people may write after `tiny-server`.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;

/// What `--help` prints.
pub(crate) const HELP: &str = r#"tiny-server: a small MCP server to try things on

Usage: tiny-server [--http [ADDRESS]] [--page-size N]

It speaks MCP on stdin and stdout, one message a line, until stdin ends. Every version of the protocol is spoken:
2024-11-05, 2025-03-26, 2025-06-18 and 2025-11-25 after `initialize`, 2026-07-28 where a request names it in `_meta`.

Options:
  --http [ADDRESS]  Listens for HTTP instead, and prints the URL on stderr. ADDRESS is a port or HOST:PORT with an IP as
                    the host; without it a free port of 127.0.0.1 is taken.
                    Streamable HTTP is at /mcp, the older HTTP+SSE at /sse.
  --page-size N     Lists N elements at a time, so that clients must follow `nextCursor`.
  -h, --help        Prints this.
  -V, --version     Prints the version.

Tools:
  echo {message}           says what you say
  add {a, b}               adds two numbers, with structured content
  slow {steps, delay_ms?}  takes its time, tells how far it is, can be cancelled
  log {level, message}     sends a log message
  fail {message}           fails, with your words
  ask {question}           asks the person at your end for a name (elicitation)
  sample {prompt}          asks the model at your end (sampling)
  roots {}                 asks which folders it may see (roots)
  picture {}               an image, a link to a resource and an embedded resource
  touch {}                 tells subscribers that tiny://greeting was updated and that the tools changed
Resources: tiny://greeting, tiny://pixel and tiny://greeting/{name}
Prompt:    greet {who}

Try it:
  echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}' | tiny-server
  tiny-server --http 8000
"#;

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Print [`HELP`].
    Help,
    /// Print the version.
    Version,
    /// Serve.
    Serve {
        /// Where to listen; stdin and stdout if nowhere.
        http: Option<SocketAddr>,
        /// How many elements a list has on one page.
        page_size: Option<NonZeroUsize>,
    },
}

/// Why a command line makes no sense.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Misuse {
    /// There is no such argument.
    Unknown(String),
    /// An option came without its value.
    NoValue(&'static str),
    /// The value of an option is not what it must be.
    Bad { option: &'static str, found: String, expected: &'static str },
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misuse::Unknown(argument) => write!(f, "unknown argument {argument:?}"),
            Misuse::NoValue(option) => write!(f, "{option} needs a value"),
            Misuse::Bad { option, found, expected } => write!(f, "{option} must be {expected}, not {found:?}"),
        }
    }
}

/// Reads the arguments, without the name of the program.
pub(crate) fn read(arguments: impl IntoIterator<Item = String>) -> Result<Command, Misuse> {
    let (mut http, mut page_size) = (None, None);
    let mut arguments = arguments.into_iter().peekable();
    while let Some(argument) = arguments.next() {
        let (name, attached) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (argument.as_str(), None),
        };
        match name {
            "-h" | "--help" => return Ok(Command::Help),
            "-V" | "--version" => return Ok(Command::Version),
            "--http" => {
                let value = attached.or_else(|| arguments.next_if(|next| !next.starts_with('-')));
                http = Some(value.map_or(Ok((Ipv4Addr::LOCALHOST, 0).into()), address)?);
            }
            "--page-size" => {
                let value = attached.or_else(|| arguments.next()).ok_or(Misuse::NoValue("--page-size"))?;
                let bad =
                    |_| Misuse::Bad { option: "--page-size", found: value.clone(), expected: "a number from 1 on" };
                page_size = Some(value.parse().map_err(bad)?);
            }
            _ => return Err(Misuse::Unknown(argument)),
        }
    }
    Ok(Command::Serve { http, page_size })
}

fn address(text: String) -> Result<SocketAddr, Misuse> {
    let port = text.parse().map(|port: u16| (Ipv4Addr::LOCALHOST, port).into());
    port.or_else(|_| text.replace("localhost:", "127.0.0.1:").parse()).map_err(|_| Misuse::Bad {
        option: "--http",
        found: text,
        expected: "a port or IP:PORT",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_words(words: &str) -> Result<Command, Misuse> {
        read(words.split_whitespace().map(str::to_owned))
    }

    fn http(address: &str) -> Result<Command, Misuse> {
        Ok(Command::Serve { http: Some(address.parse().unwrap()), page_size: None })
    }

    #[test]
    fn an_address_may_be_left_out_in_part_or_whole() {
        assert_eq!(read_words("--http"), http("127.0.0.1:0"));
        assert_eq!(read_words("--http 8000"), http("127.0.0.1:8000"));
        assert_eq!(read_words("--http=0.0.0.0:8000"), http("0.0.0.0:8000"));
        assert_eq!(read_words("--http localhost:8000"), http("127.0.0.1:8000"));
        assert_eq!(read_words("--http [::1]:8000"), http("[::1]:8000"));
        let both = Command::Serve { http: Some(([127, 0, 0, 1], 0).into()), page_size: NonZeroUsize::new(3) };
        assert_eq!(read_words("--http --page-size 3"), Ok(both));
    }

    #[test]
    fn misuse_is_explained() {
        let why = |words| read_words(words).unwrap_err().to_string();
        assert_eq!(why("--htp"), r#"unknown argument "--htp""#);
        assert_eq!(why("--http example"), r#"--http must be a port or IP:PORT, not "example""#);
        assert_eq!(why("--page-size 0"), r#"--page-size must be a number from 1 on, not "0""#);
        assert_eq!(why("--page-size"), "--page-size needs a value");
    }
}
