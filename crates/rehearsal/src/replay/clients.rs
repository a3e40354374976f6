//! Clients that were recorded under their name, where names count.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use super::answers::LOOKED_AT;
use super::replay::Shared;

/// How many are kept in memory.
const KEPT: usize = 1024;

/// Which names are known to be recorded, and which not to be.
#[derive(Debug, Default)]
pub(super) struct Clients(Mutex<HashMap<String, bool>>);

impl Shared {
    /// Whether a client hears what the others did: one of a name that was never recorded.
    pub(super) fn hears_others(&self, client: Option<&str>) -> io::Result<bool> {
        let Some(client) = client else { return Ok(false) };
        let kept = || self.clients.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(is_recorded) = kept().get(client) {
            return Ok(!is_recorded);
        }
        let is_recorded = self.is_recorded(client)?;
        let mut kept = kept();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(client.to_owned(), is_recorded);
        Ok(!is_recorded)
    }

    fn is_recorded(&self, client: &str) -> io::Result<bool> {
        for session in (0..self.tape.index.sessions()).filter(|session| self.is_selected(*session)) {
            if self.tape.facts(session)?.client.as_deref() == Some(client) {
                return Ok(true);
            }
        }
        // Since 2026-07-28 several clients may share a session.
        for number in (0..self.tape.index.exchanges()).take(LOOKED_AT as usize) {
            if self.suits(Some(client), number)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
