//! `subscriptions/listen`, as it was recorded: refused, or promised in part.

use std::io;

use rehearsal_core::answer::{Answer, Asked, Begun, RecordedPlay};
use rehearsal_core::trace::RequestKey;
use serde_json::Value;

use super::index::about_key;
use super::options::Repeat;
use super::progress::Taken;
use super::replay::{CANDIDATES, Shared};
use super::tape::request;

impl Shared {
    /// Begins to tell of changes, unless the recorded server did not.
    pub(super) fn listen(&self, asked: Asked) -> io::Result<Begun> {
        let wanted = match self.opening.wanted(&asked) {
            Ok(wanted) => wanted,
            Err(error) => return Ok(self.refuse(&asked, error)),
        };
        let key = self.options.likeness.key(&asked.method, Some(&asked.params));
        if let Some((number, answer)) = self.refused_to_listen(&asked, key)? {
            self.progress().note(number);
            self.ledger().matched += 1;
            return Ok(Begun::Answered(answer));
        }
        let wanted = match self.suiting(key, 1)?.first() {
            Some(number) => {
                let promised = &self.tape.facts(self.tape.index.exchange(*number)?.session)?.acknowledged;
                promised.as_ref().map_or(wanted.clone(), |promised| wanted.promised(promised))
            }
            None => wanted,
        };
        // Clients word what they listen to in different ways, so the nth subscription gets what followed the nth recorded one.
        let first = match self.take(about_key(&asked.method, None), &asked, Repeat::Error)? {
            Some(Taken::Fresh(number)) => {
                let (recorded, info) = (self.tape.recorded(number)?, self.opening.info.clone());
                Some(Box::new(RecordedPlay::new(vec![recorded], asked, key, info, self.options.pace)))
            }
            Some(Taken::Again(_) | Taken::UsedUp(_) | Taken::None) | None => None,
        };
        Ok(Begun::Listens(wanted, self.opening.info.clone(), first))
    }

    /// The refusal where nobody who asked for the same was let in, and nobody at all where nobody asked for the same.
    fn refused_to_listen(&self, asked: &Asked, key: RequestKey) -> io::Result<Option<(u32, Answer)>> {
        let (mut same, mut others) = (Vec::new(), Vec::new());
        let about = about_key(&asked.method, None);
        for number in self.suiting(about, CANDIDATES as usize)? {
            let recorded = self.tape.recorded(number)?;
            let params = request(&recorded).params().and_then(|params| params.value().ok());
            let is_same = self.options.likeness.key(&asked.method, params.as_ref().or(Some(&Value::Null))) == key;
            let is_let_in = self.tape.index.exchange(number)?.flags.is_let_in();
            let refusal = recorded.reply().filter(|_| !is_let_in);
            let refusal = refusal.map(|reply| (number, Answer::protocol(reply.clone())));
            if is_same { same.push(refusal) } else { others.push(refusal) }
        }
        let asked_like_this = if same.is_empty() { others } else { same };
        let all: Option<Vec<_>> = asked_like_this.into_iter().collect();
        Ok(all.and_then(|refusals| refusals.into_iter().next()))
    }
}
