//! The nth list request of a conversation gets the nth recorded list, then the last; the pages of one list stay together.

use std::io;

use rehearsal_core::answer::Asked;
use rehearsal_core::trace::RequestKey;
use serde_json::Value;

use super::options::Repeat;
use super::progress::Taken;
use super::replay::Shared;

impl Shared {
    /// The recording that answers a request for a list. A list is never used up.
    pub(super) fn take_list(&self, key: RequestKey, asked: &Asked) -> io::Result<Option<Taken>> {
        let number = match self.next_page(key, asked)? {
            Some(page) => page,
            None => match self.take(key, asked, Repeat::Last)? {
                Some(Taken::Fresh(number) | Taken::Again(number)) => number,
                other => return Ok(other),
            },
        };
        let mut progress = self.progress();
        if is_first_page(asked) {
            progress.begin_list(asked.conversation, &asked.method, number);
        }
        Ok(Some(progress.list(asked.conversation, number)))
    }

    /// The recording of a later page, of the list of which a conversation was given the first page.
    fn next_page(&self, key: RequestKey, asked: &Asked) -> io::Result<Option<u32>> {
        if is_first_page(asked) {
            return Ok(None);
        }
        let Some(first) = self.progress().first_page(asked.conversation, &asked.method) else { return Ok(None) };
        let Some(pages) = self.tape.index.group(key)? else { return Ok(None) };
        for at in self.tape.place_of(pages, first)?..pages.count {
            let number = self.tape.index.member(pages, at)?;
            if self.suits(number)? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}

fn is_first_page(asked: &Asked) -> bool {
    asked.params.get("cursor").is_none_or(Value::is_null)
}
