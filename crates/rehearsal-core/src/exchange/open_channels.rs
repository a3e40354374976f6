//! Finds the request of a response that was sent on another channel.

use std::collections::{BTreeSet, HashMap};

use super::{Channel, ExchangeKey, Side};
use crate::message::RequestId;

/// Maximum number of channels with requests that are kept.
const CHANNEL_LIMIT: usize = 100_000;

/// Tracks the channels of pending requests, to find the request of a response on another channel.
///
/// Over HTTP a client sends its responses in POSTs of their own, a broken stream is resumed as another one, and a
/// server sends all messages of HTTP+SSE on one stream.
#[derive(Debug, Default)]
pub struct OpenChannels {
    /// The channels on which a request with this id is pending.
    open: HashMap<(Side, RequestId), BTreeSet<Channel>>,
    /// The open channels that carried a request: a response there belongs to no other channel.
    with_requests: BTreeSet<(Channel, Side)>,
}

impl OpenChannels {
    /// Adds a pending request.
    pub fn opened(&mut self, key: &ExchangeKey) {
        self.open.entry((key.asker, key.id.clone())).or_default().insert(key.channel);
        if key.channel != Channel::MAIN {
            self.with_requests.insert((key.channel, key.asker));
            if self.with_requests.len() > CHANNEL_LIMIT {
                self.with_requests.pop_first();
            }
        }
    }

    /// Removes a request that is no longer pending.
    pub fn closed(&mut self, key: &ExchangeKey) {
        let slot = (key.asker, key.id.clone());
        if let Some(channels) = self.open.get_mut(&slot) {
            channels.remove(&key.channel);
            if channels.is_empty() {
                self.open.remove(&slot);
            }
        }
    }

    /// Removes a channel that ended.
    pub fn ended(&mut self, channel: Channel) {
        self.with_requests.remove(&(channel, Side::Client));
        self.with_requests.remove(&(channel, Side::Server));
    }

    /// The channel of the request that a response on `channel` belongs to.
    pub fn request_channel(&self, asker: Side, channel: Channel, id: Option<&RequestId>) -> Channel {
        let Some(id) = id else { return channel };
        let open = self.open.get(&(asker, id.clone()));
        if open.is_some_and(|channels| channels.contains(&channel)) || self.with_requests.contains(&(channel, asker)) {
            return channel;
        }
        let only = open.filter(|channels| channels.len() == 1);
        only.and_then(BTreeSet::first).copied().unwrap_or(channel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(asker: Side, channel: u64, id: i64) -> ExchangeKey {
        ExchangeKey { channel: Channel(channel), asker, id: RequestId::Number(id) }
    }

    #[test]
    fn a_response_belongs_to_the_only_open_request_with_its_id() {
        let mut channels = OpenChannels::default();
        let on = |channels: &OpenChannels, asker, channel, id| {
            channels.request_channel(asker, Channel(channel), Some(&RequestId::Number(id))).0
        };
        channels.opened(&key(Side::Server, 1, 7));
        assert_eq!(on(&channels, Side::Server, 9, 7), 1);
        assert_eq!(on(&channels, Side::Client, 9, 7), 9, "the other side with_requests nothing");
        assert_eq!(channels.request_channel(Side::Server, Channel(9), None), Channel(9));
        channels.opened(&key(Side::Server, 2, 7));
        assert_eq!(on(&channels, Side::Server, 9, 7), 9, "two requests: ambiguous");
        assert_eq!(on(&channels, Side::Server, 2, 7), 2, "unless one of them was sent on this channel");
        channels.closed(&key(Side::Server, 2, 7));
        assert_eq!(on(&channels, Side::Server, 2, 7), 2, "an open channel with a request keeps its responses");
        channels.ended(Channel(2));
        assert_eq!(on(&channels, Side::Server, 2, 7), 1);
    }
}
