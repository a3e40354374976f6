//! Builds an index while two readers go through the trace side by side: one sees the calls, the other everything else.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, Seek};
use std::rc::Rc;

use rehearsal_core::exchange::Side;
use rehearsal_core::trace::{Call, Entry, Inside, Likeness, Moment, Part, ReadError, Span, Timeline, TraceReader};

use super::collect::{Collection, Session};
use crate::store::Recording;

/// Everything that an index of this trace has.
pub(super) fn collect(recording: &Recording, likeness: &Likeness) -> Result<Collection, ReadError> {
    let spans = Spans::default();
    let calls = Spanned { reader: recording.trace_reader().only_calls(), spans: spans.clone() };
    let entries = Spanned { reader: recording.trace_reader().only_entries(), spans: spans.clone() };
    let mut all = Collection::default();
    let mut session: Option<Session> = None;
    for moment in Timeline::new(calls, entries) {
        match moment? {
            Moment::Start(start) => session = Some(all.start(start)),
            Moment::Call { call, inside } => {
                let Some(session) = &mut session else { continue };
                let span = spans.take_call(&call);
                let inside = inside.into_iter().map(|thing| {
                    let span = spans.take(&thing);
                    (thing, span)
                });
                let inside: Vec<_> = inside.collect();
                match call.asker {
                    Side::Client => session.exchange(&mut all, likeness, &call, span, inside),
                    Side::Server => session.loose(&Inside::Call(call), span),
                }
            }
            Moment::Entry(entry) => {
                let span = spans.take_entry(&entry);
                if let Some(session) = &mut session {
                    session.loose(&Inside::Entry(entry), span);
                }
            }
            Moment::Finish { .. } => {
                if let Some(session) = session.take() {
                    session.finish(&mut all);
                }
            }
        }
    }
    Ok(all)
}

/// Whether it is a call, its place, and that in its batch.
type Place = (bool, u64, Option<u32>);

/// Where the things stand that are on their way through the timeline.
#[derive(Clone, Debug, Default)]
struct Spans(Rc<RefCell<HashMap<Place, VecDeque<Span>>>>);

impl Spans {
    fn put(&self, place: Place, span: Span) {
        self.0.borrow_mut().entry(place).or_default().push_back(span);
    }

    fn take_place(&self, place: Place) -> Span {
        let mut spans = self.0.borrow_mut();
        let Some(found) = spans.get_mut(&place) else { return Span::default() };
        let span = found.pop_front().unwrap_or_default();
        if found.is_empty() {
            spans.remove(&place);
        }
        span
    }

    fn take_call(&self, call: &Call) -> Span {
        self.take_place((true, call.request.seq, call.request.item))
    }

    fn take_entry(&self, entry: &Entry) -> Span {
        self.take_place((false, entry.seq, entry.item))
    }

    fn take(&self, thing: &Inside) -> Span {
        match thing {
            Inside::Call(call) => self.take_call(call),
            Inside::Entry(entry) => self.take_entry(entry),
        }
    }
}

/// A reader that leaves behind where things stand.
struct Spanned<R> {
    reader: TraceReader<R>,
    spans: Spans,
}

impl<R: BufRead + Seek> Iterator for Spanned<R> {
    type Item = Result<Part, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let part = self.reader.next()?;
        match &part {
            Ok(Part::Call(call)) => {
                self.spans.put((true, call.request.seq, call.request.item), self.reader.span());
            }
            Ok(Part::Entry(entry)) => self.spans.put((false, entry.seq, entry.item), self.reader.span()),
            Ok(Part::Start(_) | Part::Finish { .. }) | Err(_) => {}
        }
        Some(part)
    }
}
