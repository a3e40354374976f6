//! A recording as a server for one test.

use std::ops::Deref;
use std::path::Path;

use super::ledger::Ledger;
use super::options::ReplayOptions;
use super::replay::{Replay, ReplayError};
use crate::serve::{ServerFixture, StartError, http_options};
use crate::store::Input;

/// Serves a recording on a free port of this machine, for one test. Dropping it stops the server.
///
/// Here a proxy records a server, and the replay answers without that server:
///
/// ```
/// use rehearsal::mock::text;
/// use rehearsal::record::HttpRecording;
/// use rehearsal::transport::HttpProxyOptions;
/// use rehearsal::{Client, MockServer, Recorder, ReplayServer};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let trace = folder.path().join("weather.jsonl");
/// let live = MockServer::builder().tool("forecast").respond(text("Rain in Oslo")).start()?;
/// let recorder = Recorder::builder().trace(&trace).build();
/// let options = HttpProxyOptions::new("127.0.0.1:0".parse()?, &live.url())?;
/// let recording = HttpRecording::start(&recorder, options).await?;
/// let client = Client::url(recording.url()).connect().await?;
/// client.call_tool("forecast", json!({"city": "Oslo"})).await?;
/// client.close().await;
/// recording.stop().await;
///
/// let replay = ReplayServer::start(&trace)?;
/// let client = Client::url(replay.url()).connect().await?;
/// let response = client.call_tool("forecast", json!({"city": "Oslo"})).await?;
/// assert_eq!(response.content(), "Rain in Oslo");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ReplayServer {
    fixture: ServerFixture,
    replay: Replay,
}

/// Why a replay could not start.
#[derive(thiserror::Error)]
pub enum ReplayServerError {
    /// The recording cannot be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The server could not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

debug_as_display!(ReplayServerError);

impl ReplayServer {
    /// Serves a recording. When this returns, clients can connect.
    pub fn start(trace: impl AsRef<Path>) -> Result<ReplayServer, ReplayServerError> {
        let replay = Replay::open(&Input::from(trace.as_ref().to_owned()), ReplayOptions::default())?;
        Ok(ReplayServer::serve(replay)?)
    }

    /// Serves a recording that was opened with options of its own.
    pub fn serve(replay: Replay) -> Result<ReplayServer, StartError> {
        let server = replay.server();
        let options = http_options(&server);
        Ok(ReplayServer { fixture: ServerFixture::start(server, options)?, replay })
    }

    /// The requests so far that were recorded and those that were not, and the recordings that nothing requested.
    pub fn ledger(&self) -> std::io::Result<Ledger> {
        self.replay.ledger()
    }
}

/// The URLs, the connections in memory, and the server.
impl Deref for ReplayServer {
    type Target = ServerFixture;

    fn deref(&self) -> &ServerFixture {
        &self.fixture
    }
}

impl Drop for ReplayServer {
    fn drop(&mut self) {
        let replay = self.replay.clone();
        // A live server behind the replay is disconnected on the thread on which it was connected.
        self.fixture.block_on(async move { drop(replay.close().await) });
    }
}
