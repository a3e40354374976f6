//! What can be wrong with what was said about the server.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use rehearsal::config::ConfigError;
use rehearsal::core::redact::shown_url;
use rehearsal::oauth::StoreError;
use rehearsal::wire::http::client::ConnectError;

use super::which::Reached;
use crate::cli::json_input::JsonInputError;

/// What is wrong with what was said about the server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    /// No server was named.
    #[error("which server?")]
    NoServer {
        /// How the command line begins.
        typed: String,
    },
    /// No server was named, where only a command or a URL will do.
    #[error("which server should be recorded?")]
    NothingToRecord,
    /// What is written in two ways would be one file.
    #[error("-o and --log both name {}", path.display())]
    OneFile {
        /// Which.
        path: PathBuf,
    },
    /// More than one server was named.
    #[error("{one} and {other} both name a server; which one is meant?")]
    TwoServers {
        /// One of them.
        one: &'static str,
        /// Another one.
        other: &'static str,
    },
    /// A container was named, but not what to run in it.
    #[error("--exec {container}: which command is the server?")]
    NoCommand {
        /// The container.
        container: String,
    },
    /// The URL is none.
    #[error("--url {:?}: {why}", shown_url(.url))]
    BadUrl {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The URL cannot be reached at all.
    #[error("--url: {0}")]
    Url(#[from] ConnectError),
    /// The address to listen on is none.
    #[error("--listen {address:?}: {why}")]
    BadListen {
        /// What was given.
        address: String,
        /// What is wrong with it.
        why: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        cause: io::Error,
    },
    /// There is no such directory.
    #[error("{option} {}: there is no such directory", path.display())]
    NoDirectory {
        /// What it was given for.
        option: &'static str,
        /// What was given.
        path: PathBuf,
    },
    /// An option is of no use here.
    #[error("{option} is of no use: it is for servers {}", wanted.phrase())]
    NoUse {
        /// The option.
        option: &'static str,
        /// The servers that it is for.
        wanted: Reached,
    },
    /// Who we are is said twice.
    #[error("--login and --header Authorization both say who you are; which one is meant?")]
    TwoLogins,
    /// There is no place for tokens.
    #[error("--login: no place to keep the token: neither XDG_STATE_HOME nor HOME is set")]
    NoHome,
    /// A token could not be removed.
    #[error(transparent)]
    Tokens(StoreError),
    /// The file with servers is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An answer is not one.
    #[error("--answer {word}: not METHOD=JSON")]
    NotAnswer {
        /// What was given.
        word: String,
    },
    /// No server asks that.
    #[error("--answer {method}: servers do not ask that")]
    UnknownQuestion {
        /// What was given.
        method: String,
        /// What is most likely meant.
        close: &'static str,
    },
    /// What the client has as roots is said twice.
    #[error("--roots and --answer roots/list both say what the roots are")]
    TwoRoots,
    /// An answer is not JSON.
    #[error(transparent)]
    Json(#[from] JsonInputError),
}

impl ServerError {
    /// What to do about it.
    pub(crate) fn hints(&self) -> Vec<String> {
        match self {
            ServerError::NoServer { typed } => vec![
                format!("start one:    {typed} -- npx -y @modelcontextprotocol/server-everything"),
                format!("reach one:    {typed} --url http://127.0.0.1:3000/mcp"),
                format!("run an image: {typed} --container my-server:latest"),
                format!("look one up:  {typed} --config .mcp.json --server NAME"),
            ],
            ServerError::NothingToRecord => {
                vec![
                    "start one: rehearse record -- npx -y some-server".to_owned(),
                    "reach one: rehearse record --url http://127.0.0.1:3000/mcp --listen 127.0.0.1:8080".to_owned(),
                ]
            }
            ServerError::OneFile { .. } => {
                vec!["a trace has a session a line, a log a message a line; give each a file of its own".to_owned()]
            }
            ServerError::BadListen { .. } => {
                vec!["write it like 127.0.0.1:8080, or 127.0.0.1:0 for a free port".to_owned()]
            }
            ServerError::Listen { cause, .. } => listen_hints(cause),
            ServerError::BadUrl { .. } | ServerError::Url(ConnectError::BadUrl { .. }) => {
                vec!["write it like http://127.0.0.1:3000/mcp".to_owned()]
            }
            ServerError::NoCommand { container } => {
                vec![format!("name it after `--`: --exec {container} -- my-server")]
            }
            ServerError::NotAnswer { .. } => {
                vec!["write it like --answer elicitation/create='{\"action\": \"decline\"}'".to_owned()]
            }
            ServerError::UnknownQuestion { close, .. } => vec![format!("did you mean `{close}`?")],
            ServerError::Json(error) => error.hints(),
            ServerError::TwoServers { .. }
            | ServerError::NoDirectory { .. }
            | ServerError::NoUse { .. }
            | ServerError::Url(_)
            | ServerError::TwoRoots
            | ServerError::TwoLogins
            | ServerError::NoHome
            | ServerError::Tokens(_)
            | ServerError::Config(_) => Vec::new(),
        }
    }
}

/// What to do about an address that cannot be listened on.
pub(in crate::cli) fn listen_hints(cause: &io::Error) -> Vec<String> {
    match cause.kind() {
        io::ErrorKind::AddrInUse => {
            vec!["end the program that listens there, or write port 0 for any free port".to_owned()]
        }
        io::ErrorKind::PermissionDenied => {
            vec!["ports below 1024 are not for everybody; choose a higher one".to_owned()]
        }
        io::ErrorKind::AddrNotAvailable => {
            vec!["this machine has no such address; 127.0.0.1 is for itself, 0.0.0.0 for all that it has".to_owned()]
        }
        _ => Vec::new(),
    }
}
