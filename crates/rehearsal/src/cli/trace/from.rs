//! Whose messages somebody wants to see.

use clap::ValueEnum;
use rehearsal::core::exchange::Side;

/// `--from`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum From {
    Client,
    Server,
}

impl From {
    pub(super) fn side(self) -> Side {
        match self {
            From::Client => Side::Client,
            From::Server => Side::Server,
        }
    }
}
