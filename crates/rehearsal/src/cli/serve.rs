//! Serves a chain until the client disconnects or a signal arrives.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::Args;
use rehearsal::Client;
use rehearsal::client::ClientBuilder;
use rehearsal::serve::{Server, serve_http};
use rehearsal::wire::http::server::{AllowedHosts, HttpServer, HttpServerOptions};
use rehearsal::wire::{MESSAGE_LIMIT, stdio};
use serde_json::{Map, Value};

use super::context::Context;
use super::exit::{Exit, Failure};
use super::run::Signals;

/// After a signal: how long to wait until the last answers are written.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// The address of a listener, and the names that its clients may use.
#[derive(Args, Debug)]
pub(super) struct ListenArgs {
    /// Serve HTTP at this address: a port, or HOST:PORT; port 0 is any free port
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(super) listen: Option<SocketAddr>,

    /// Accept this name in `Host` and `Origin`, in addition to localhost and IP addresses; may be repeated
    #[arg(long, value_name = "HOST", requires = "listen")]
    allow_host: Vec<String>,
}

impl ListenArgs {
    /// Adds the address and the allowed host names to `options`.
    pub(super) fn applied(&self, options: HttpServerOptions, address: SocketAddr) -> HttpServerOptions {
        let (hosts, origins) = allowed_hosts(&self.allow_host);
        HttpServerOptions { address, hosts, origins, ..options }
    }
}

/// The values of `--allow-host` as allowed values of `Host` and `Origin`.
pub(super) fn allowed_hosts(names: &[String]) -> (AllowedHosts, AllowedHosts) {
    (AllowedHosts::Named(names.to_vec()), AllowedHosts::Named(names.to_vec()))
}

/// The URL of a listener: `http://127.0.0.1:8080/mcp (and at every other address of this machine)`
fn listening_on(listener: &HttpServer, address: SocketAddr) -> String {
    let everywhere = if address.ip().is_unspecified() { " (and at every other address of this machine)" } else { "" };
    format!("{}{everywhere}", listener.url())
}

/// Serves the client on stdin and stdout, or every client of a listener.
pub(super) async fn serve(
    server: &Server,
    listen: Option<HttpServerOptions>,
    signals: &mut Signals,
    context: &Context,
) -> Result<Exit, Failure> {
    let Some(options) = listen else { return on_stdio(server, signals).await.map_err(Failure::begin) };
    let address = options.address;
    let listener = HttpServer::bind(options).await?;
    context.stderr.note(format_args!("listening on {}", listening_on(&listener, address)));
    Ok(serve_http(server, listener, signals.next()).await.unwrap_or(Exit::Ok))
}

async fn on_stdio(server: &Server, signals: &mut Signals) -> io::Result<Exit> {
    let connection = stdio::own_stdio(MESSAGE_LIMIT)?;
    let serving = server.serve(connection);
    tokio::pin!(serving);
    let exit = tokio::select! {
        _ = &mut serving => return Ok(Exit::Ok),
        exit = signals.next() => exit,
    };
    server.stop();
    // A client that does not read its last answers must not block the exit.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, serving).await;
    Ok(exit)
}

/// Starts a client of a live server.
type Connect = Box<dyn Fn() -> ClientBuilder + Send + Sync>;

/// How to connect to a live server, and its `server_info` in a recording; `None` if the user named none.
pub(super) fn live_server(url: Option<&str>, command: &[OsString]) -> Option<(Connect, Map<String, Value>)> {
    let mut info = Map::new();
    if let Some(url) = url {
        info.insert("url".to_owned(), url.into());
        let url = url.to_owned();
        return Some((Box::new(move || Client::url(url.as_str())), info));
    }
    let (program, arguments) = command.split_first()?;
    let words = arguments.iter().map(|word| Value::from(word.to_string_lossy()));
    info.insert("command".to_owned(), program.to_string_lossy().into());
    info.insert("arguments".to_owned(), words.collect());
    let (program, arguments) = (program.clone(), arguments.to_vec());
    Some((Box::new(move || Client::command(&program).args(&arguments)), info))
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
            assert_eq!(address(word).ok().map(|address| address.to_string()).as_deref(), expected, "{word}");
        }
    }
}
