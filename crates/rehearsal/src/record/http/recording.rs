//! A server behind a URL, recorded.

use std::net::SocketAddr;
use std::sync::Arc;

use rehearsal_core::trace::{End, HttpHead};
use rehearsal_wire::MESSAGE_LIMIT;
use rehearsal_wire::http::proxy::{BindError, HttpProxy, Options, Tap, Watcher};

use super::exchange::Exchange;
use super::sessions::Sessions;
use crate::record::Recorder;

/// A server that clients talk to through us, and the tapes of their sessions.
///
/// ```no_run
/// use rehearsal::record::{HttpRecording, Recorder};
/// use rehearsal::wire::http::proxy::Options;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let recorder = Recorder::builder().trace("trace.jsonl").build();
/// let options = Options::new("127.0.0.1:0".parse()?, "https://mcp.example/mcp")?;
/// let recording = HttpRecording::start(&recorder, options).await?;
/// println!("listening on {}", recording.url());
/// tokio::signal::ctrl_c().await?;
/// recording.stop().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct HttpRecording {
    proxy: HttpProxy,
    tap: Arc<HttpTap>,
}

struct HttpTap {
    sessions: Arc<Sessions>,
}

impl HttpRecording {
    /// Begins to listen, and passes everything on.
    pub async fn start(recorder: &Recorder, options: Options) -> Result<HttpRecording, BindError> {
        let sessions = Arc::new(Sessions::new(recorder.clone(), options.upstream.clone()));
        let tap = Arc::new(HttpTap { sessions });
        let proxy = HttpProxy::bind(options, tap.clone()).await?;
        Ok(HttpRecording { proxy, tap })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.proxy.address()
    }

    /// The address that clients use in the place of the server's: only host and port are others.
    pub fn url(&self) -> String {
        self.proxy.url()
    }

    /// Stops listening, ends every stream, and puts every session into the trace.
    pub async fn stop(self) {
        let HttpRecording { proxy, tap } = self;
        proxy.shutdown().await;
        // Reading long journals takes a while, and others may have something to do meanwhile.
        let folded = tokio::task::spawn_blocking(move || tap.sessions.finish(&End::Stopped));
        // A panic there was shown where it happened.
        let _ = folded.await;
    }
}

impl Tap for HttpTap {
    fn begin(&self, socket: u64, head: HttpHead) -> Box<dyn Watcher> {
        Box::new(Exchange::new(self.sessions.clone(), socket, MESSAGE_LIMIT, head))
    }
}

impl std::fmt::Debug for HttpTap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpTap").finish_non_exhaustive()
    }
}
