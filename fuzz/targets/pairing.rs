//! Pairing loses nothing: every message is in the results exactly once.
//!
//! Each line is a message. Its first byte selects the sender and the channel, and whether the channel then ends.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use rehearsal_core::exchange::{Channel, Exchange, Outcome, Pairing, PairingEvent, Side, TimedMessage};
use rehearsal_core::message::{Body, Message};

fuzz_target!(|bytes: &[u8]| {
    let mut pairing = Pairing::<()>::default();
    let (mut sent, mut found) = (Vec::new(), Vec::new());
    for (number, line) in (0..).zip(bytes.split(|byte| *byte == b'\n')) {
        let [first, raw @ ..] = line else { continue };
        let side = if first & 1 == 0 { Side::Client } else { Side::Server };
        let channel = Channel(u64::from(first >> 1 & 3));
        let message = Message::parse(raw.to_vec());
        let at = Duration::from_nanos(number);
        match message.body() {
            Body::Batch(messages) => sent.extend(messages.iter().map(|message| (at, message.raw().clone()))),
            _ => sent.push((at, message.raw().clone())),
        }
        step(pairing.step(side, channel, at, message), &mut found);
        if first & 0x80 != 0 {
            pairing.abandon_channel(channel).into_iter().for_each(|(lost, ())| exchange(lost, &mut found));
        }
    }
    pairing.finish().into_iter().for_each(|(lost, ())| exchange(lost, &mut found));
    assert_eq!(pairing.open_count(), 0);
    let mut found: Vec<_> = found.into_iter().map(|stamped| (stamped.at, stamped.message.raw().clone())).collect();
    sent.sort();
    found.sort();
    assert_eq!(sent, found);
});

fn step(event: PairingEvent<()>, found: &mut Vec<TimedMessage>) {
    match event {
        PairingEvent::Opened { displaced: ended, .. } | PairingEvent::Cancelled { expired: ended, .. } => {
            ended.into_iter().for_each(|(ended, ())| exchange(ended, found));
        }
        PairingEvent::Completed { exchange: ended, tag: () } => exchange(ended, found),
        PairingEvent::Attached { .. } => {}
        PairingEvent::Unpaired { message, .. } => found.push(message),
        PairingEvent::Batch(events) => events.into_iter().for_each(|event| step(event, found)),
    }
}

fn exchange(ended: Box<Exchange>, found: &mut Vec<TimedMessage>) {
    assert!(ended.answer().is_none_or(|answer| answer.at >= ended.request.at));
    found.push(ended.request);
    found.extend(ended.notifications);
    match ended.outcome {
        Outcome::Replied(answer) => found.push(answer),
        Outcome::Cancelled { late, .. } => found.extend(late),
        Outcome::Unanswered => {}
    }
}
