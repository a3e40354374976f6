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
/// ```no_run
/// use rehearsal::Client;
/// use rehearsal::replay::ReplayServer;
/// use serde_json::json;
///
/// #[tokio::test]
/// async fn the_agent_gets_the_recorded_weather() -> Result<(), Box<dyn std::error::Error>> {
///     let weather = ReplayServer::start("tests/weather.jsonl")?;
///     let client = Client::url(weather.url()).connect().await?;
///     client.call_tool("get_forecast", json!({"city": "Oslo"})).await?;
///     assert!(weather.ledger()?.is_complete(), "every recorded call was made, and no other");
///     Ok(())
/// }
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
