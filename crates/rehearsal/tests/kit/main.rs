//! Tests of the library's public API.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue panics")]

mod assertions;
mod client;
mod dry_run;
mod exact_numbers;
mod example_mocks;
mod fixtures;
mod forwards;
mod handlers;
mod listening_servers;
mod login;
mod mock_limits;
mod mock_transcripts;
mod mocks;
mod recorder;
mod replayed_clients;
mod replayed_damage;
mod replayed_garbled;
mod replayed_handshakes;
mod replayed_in_flight;
mod replayed_lists;
mod replayed_refusals;
mod replayed_rounds;
mod replayed_server_requests;
mod replayed_subscriptions;
mod replayed_tasks;
mod replayed_unanswered;
mod replays;
mod saved_plans;
mod snapshots;
mod traced_plans;
mod transcript;
mod versions;

use rehearsal::Client;
use rehearsal::client::ClientBuilder;
use rehearsal::mock::MockFiles;
use rehearsal::serve::Server;
use rehearsal::wire::memory;

/// A mock with all kinds of offers.
const MOCK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/interop/tiny.mock.yaml");

/// A client of that mock, in memory.
fn mock_client() -> ClientBuilder {
    let server = Server::new(MockFiles::new([MOCK]).load().unwrap());
    let (near, far) = memory::pair();
    tokio::spawn(async move { server.serve(far).await });
    Client::connection(near)
}
