//! What a mock and a replay cost beside the bare loop that answers every line with the same text.

use std::error::Error;
use std::path::Path;

use crate::http::{self, Server};
use crate::mock::{self, Folder};
use crate::proxy::{Calls, SessionMode};
use crate::record::Peer;
use crate::table::{Contest, Table};
use crate::{echo, replay};

/// How many calls are in flight at once over stdio.
const WINDOWS: [u32; 2] = [1, 16];

pub(crate) fn measure(table: &mut Table) -> Result<(), Box<dyn Error>> {
    let folder = Folder::new("serve")?;
    let mock_file = folder.file("fixed", "  - { name: echo, answers: [{ text: hello }] }\n")?;
    let trace = replay::trace(&folder.path("fixed.jsonl"), 1)?;
    let servers: [(&str, &str, &str, &Path); 2] = [
        ("mock", mock::ARGUMENT, mock::OVER_HTTP, &mock_file),
        ("replay", replay::ARGUMENT, replay::OVER_HTTP, &trace),
    ];
    for (name, on_stdio, over_http, file) in servers {
        let file = file.to_string_lossy();
        for window in WINDOWS {
            let what = format!("{name}: a fixed answer over stdio, {window} in flight");
            if table.wants(&what) {
                let mut ours = Peer::after_handshake(&[on_stdio, &file], window)?;
                let mut bare = Peer::after_handshake(&[echo::ARGUMENT], window)?;
                let contest = Contest::new(what, "a loop that reads and writes");
                table.measure(contest, || ours.turn(), || bare.turn())?;
            }
        }
        let what = format!("{name}: a fixed answer over HTTP");
        if table.wants(&what) {
            let (ours, bare) = (Server::start(&[over_http, &file])?, Server::start(&[http::ARGUMENT])?);
            let mut ours = Calls::connect(ours.at, SessionMode::None, 1).map(|calls| (calls, ours))?;
            let mut bare = Calls::connect(bare.at, SessionMode::None, 1).map(|calls| (calls, bare))?;
            let contest = Contest::new(what, "hyper with the same text");
            table.measure(contest, || ours.0.turn(), || bare.0.turn())?;
        }
    }
    Ok(())
}
