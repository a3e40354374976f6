//! A server of ours, until its client is gone or somebody ends us.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::Args;
use rehearsal::mock::Server;
use rehearsal::wire::http::server::{Hosts, HttpServer, Options};
use rehearsal::wire::{MESSAGE_LIMIT, stdio};
use tokio::task::JoinSet;

use super::exit::Exit;
use super::run::Signals;

/// How long a server that was told to end may say its last words.
const FAREWELL: Duration = Duration::from_secs(3);

/// The address of a listener, and the names that its clients may use.
#[derive(Args, Debug)]
pub(super) struct ListenOptions {
    /// Serve HTTP at this address: a port, or HOST:PORT; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(super) listen: Option<SocketAddr>,

    /// Accept this name in `Host` and `Origin`, beside localhost and IP addresses; may be repeated
    #[arg(long, value_name = "HOST", requires = "listen")]
    allow_host: Vec<String>,
}

impl ListenOptions {
    /// Listens at an address, for clients that use an allowed name.
    pub(super) fn apply(&self, options: &mut Options, address: SocketAddr) {
        options.address = address;
        (options.hosts, options.origins) = allowed_hosts(&self.allow_host);
    }
}

/// What `--allow-host` allows in `Host` and in `Origin`.
pub(super) fn allowed_hosts(names: &[String]) -> (Hosts, Hosts) {
    (Hosts::Named(names.to_vec()), Hosts::Named(names.to_vec()))
}

/// Where a listener can be reached: `http://127.0.0.1:8080/mcp (and at every other address of this machine)`
pub(super) fn where_to_reach(listener: &HttpServer, address: Option<SocketAddr>) -> String {
    match address {
        Some(address) if address.ip().is_unspecified() => {
            format!("{} (and at every other address of this machine)", listener.url())
        }
        Some(_) | None => listener.url(),
    }
}

/// Serves the client on stdin and stdout.
pub(super) async fn on_stdio(server: &Server, signals: &mut Signals) -> io::Result<Exit> {
    let connection = stdio::own(MESSAGE_LIMIT)?;
    let serving = server.serve(connection);
    tokio::pin!(serving);
    let exit = tokio::select! {
        _ = &mut serving => return Ok(Exit::Ok),
        exit = signals.next() => exit,
    };
    server.stop();
    // Whoever does not read the last words does not hold us up.
    let _ = tokio::time::timeout(FAREWELL, serving).await;
    Ok(exit)
}

/// Serves every client of a listener.
pub(super) async fn on_http(server: &Server, mut listener: HttpServer, signals: &mut Signals) -> Exit {
    let mut conversations = JoinSet::new();
    let exit = loop {
        tokio::select! {
            connection = listener.accept() => match connection {
                Some(connection) => {
                    let server = server.clone();
                    conversations.spawn(async move { server.serve(connection).await });
                }
                None => return Exit::Ok,
            },
            Some(_) = conversations.join_next() => {}
            exit = signals.next() => break exit,
        }
    };
    server.stop();
    // Whoever does not read the last words does not hold us up.
    let _ = tokio::time::timeout(FAREWELL, listener.shutdown()).await;
    exit
}

/// A port on this machine, or an address.
pub(super) fn address(word: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = word.parse() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let word = word.strip_prefix("localhost").map_or(word.to_owned(), |rest| format!("127.0.0.1{rest}"));
    let address = word.parse().or_else(|_| word.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 0)));
    address.map_err(|_| "write a port such as 8080, or an address such as 127.0.0.1:8080".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_port_or_a_host_and_a_port() {
        for (word, expected) in [
            ("8080", Some("127.0.0.1:8080")),
            ("0", Some("127.0.0.1:0")),
            ("localhost:80", Some("127.0.0.1:80")),
            ("0.0.0.0:80", Some("0.0.0.0:80")),
            ("[::1]:80", Some("[::1]:80")),
            ("127.0.0.1", Some("127.0.0.1:0")),
            ("example.com:80", None),
            ("", None),
        ] {
            assert_eq!(address(word).ok().map(|it| it.to_string()).as_deref(), expected, "{word}");
        }
    }
}
