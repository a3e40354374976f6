//! A server behind a URL, recorded between its clients and itself.

use std::net::{SocketAddr, ToSocketAddrs};

use nix::sys::signal::Signal;
use rehearsal::core::redact::shown_url;
use rehearsal::oauth::{OAuth, Token};
use rehearsal::record::{HttpRecording, Recorder};
use rehearsal::wire::http::client::ConnectError;
use rehearsal::wire::http::proxy::{BindError, Options};
use rehearsal::wire::http::server::Hosts;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::context::Context;
use crate::cli::failure::{Failure, listen_hint};
use crate::cli::run::{Signals, runtime};

/// Where to listen, and for whom.
pub(super) struct Listen<'a> {
    /// `127.0.0.1:8080`, `localhost:0`
    pub(super) address: &'a str,
    /// Names beside those of this machine by which clients may know us.
    pub(super) hosts: &'a [String],
}

/// Records a server until a signal ends us; that is how it is meant to end.
pub(super) fn record(
    recorder: &Recorder,
    url: &str,
    listen: &Listen,
    oauth: Option<OAuth>,
    context: &Context,
) -> Result<u8, Failure> {
    let mut options = Options::new(address(listen.address)?, url).map_err(bad_url)?;
    if !listen.hosts.is_empty() {
        let also = |hosts: Hosts| match hosts {
            Hosts::Loopback => Hosts::LoopbackAnd(listen.hosts.to_vec()),
            Hosts::LoopbackAnd(own) => Hosts::LoopbackAnd([own.as_slice(), listen.hosts].concat()),
            Hosts::Any => Hosts::Any,
        };
        (options.hosts, options.origins) = (also(options.hosts), also(options.origins));
    }
    // One thread: whoever records two clients at once is limited by the disk, and one thread is the shortest way there.
    let runtime = runtime()?;
    let code = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        // A file that may not grow is an error like a full disk, not the death of the conversation.
        let _grown = signal(SignalKind::from_raw(Signal::SIGXFSZ as i32)).map_err(Failure::begin)?;
        let token = match oauth {
            Some(oauth) => tokio::select! {
                token = Token::get(url, oauth) => Some(token?),
                exit = signals.next() => return Ok(exit.code()),
            },
            None => None,
        };
        options.authorization = token.as_ref().map(Token::header);
        let listening = HttpRecording::start(recorder, options).await;
        let recording = listening.map_err(not_started)?;
        context.talk.say(format!("listening on {}", shown_url(&recording.url())));
        let exit = signals.next().await;
        tokio::select! {
            () = recording.stop() => {}
            // Whoever insists gets out at once; what was recorded is in the journals.
            exit = signals.next() => return Ok(exit.code()),
        }
        Ok(exit.code())
    });
    runtime.shutdown_background();
    code
}

fn not_started(error: BindError) -> Failure {
    match error {
        BindError::Address { address, source } => {
            Failure::bad_input(format_args!("cannot listen on {address}: {source}")).hints(listen_hint(&source))
        }
        BindError::Upstream(error) => bad_url(error),
    }
}

fn bad_url(error: ConnectError) -> Failure {
    let hint = matches!(error, ConnectError::BadUrl { .. }).then_some("write it like http://127.0.0.1:3000/mcp");
    Failure::bad_input(format_args!("--url: {error}")).hints(hint)
}

fn address(word: &str) -> Result<SocketAddr, Failure> {
    let bad = |why: String| {
        Failure::bad_input(format_args!("--listen {word:?}: {why}"))
            .hint("write it like 127.0.0.1:8080, or 127.0.0.1:0 for a free port")
    };
    let mut addresses = word.to_socket_addrs().map_err(|error| bad(error.to_string()))?;
    addresses.next().ok_or_else(|| bad("the name has no address".to_owned()))
}
