//! Answers that break the rules, and say what they mean all the same.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::envelope::Envelope;
use super::{ErrorReply, Message, Others, Reply, RequestId};
use crate::json::RawJson;

/// The code of an error that has none: an internal error, of which nobody knows more.
const UNKNOWN: i64 = -32603;

impl Message {
    /// What a garbled answer means, as a client would take it that looks less closely: a result beside an error that is
    /// `null`, an error without a code or a message or that is just a text, any answer without `jsonrpc`.
    pub fn meant(&self) -> Option<Reply> {
        self.as_garbled()?;
        let envelope: Envelope<'_> = serde_json::from_slice(&self.raw).ok()?;
        let present = |value: &&[u8]| *value != b"null";
        match (envelope.result, envelope.error.filter(present)) {
            _ if envelope.method.is_some() || envelope.duplicate.is_some() => None,
            (Some(result), None) => Some(Reply::Result(RawJson::slice(&self.raw, result))),
            (result, Some(error)) if result.filter(present).is_none() => Some(Reply::Error(self.error_meant(error))),
            (_, _) => None,
        }
    }

    fn error_meant(&self, error: &[u8]) -> ErrorReply {
        let Ok(members) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(error) else {
            let whole = RawJson::slice(&self.raw, error);
            return ErrorReply::new(UNKNOWN, whole.text().unwrap_or_else(|| whole.to_string()));
        };
        let piece = |value: &RawValue| RawJson::slice(&self.raw, value.get().as_bytes());
        let member = |key: &str| members.get(key).map(|value| piece(value));
        let code = member("code").and_then(|code| whole(code.as_str())).unwrap_or(UNKNOWN);
        let message = member("message").and_then(|message| message.text());
        let more = members.iter().filter(|(key, _)| !["code", "message", "data"].contains(&key.as_str()));
        let more = more.map(|(key, value)| (key.clone(), piece(value)));
        ErrorReply {
            code,
            message: message.unwrap_or_default(),
            data: member("data"),
            more: Others::of(more.collect()),
        }
    }

    /// The same bytes with another id; `None` where there is none to take the place of.
    #[must_use]
    pub fn readdressed(&self, id: &RequestId) -> Option<Message> {
        let envelope: Envelope<'_> = serde_json::from_slice(&self.raw).ok()?;
        let old = self.raw.slice_ref(envelope.id?);
        let start = old.as_ptr() as usize - self.raw.as_ptr() as usize;
        let mut text = self.raw[..start].to_vec();
        text.extend(serde_json::to_vec(id).ok()?);
        text.extend_from_slice(&self.raw[start + old.len()..]);
        Some(Message::parse(text))
    }
}

/// The whole number that is written like this, such as `1.0`.
fn whole(number: &str) -> Option<i64> {
    number.parse().ok().or_else(|| number.strip_suffix(".0")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(text: &str) -> Option<String> {
        let message = Message::parse(text.to_owned());
        message.meant().map(|reply| String::from_utf8_lossy(Message::reply(7.into(), &reply).raw()).into_owned())
    }

    #[test]
    fn an_answer_that_breaks_a_rule_still_says_something() {
        for (text, says) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{"a":1.50},"error":null}"#, r#""result":{"a":1.50}"#),
            (r#"{"id":1,"result":{}}"#, r#""result":{}"#),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-5}}"#, r#""error":{"code":-5,"message":""}"#),
            (
                r#"{"id":1,"result":null,"error":{"code":-5,"message":"x","data":[]}}"#,
                r#""error":{"code":-5,"message":"x","data":[]}"#,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.0,"message":"x"}}"#, r#""error":{"code":1,"message":"x"}"#),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"message":"x"}}"#, r#""error":{"code":-32603,"message":"x"}"#),
            (r#"{"jsonrpc":"2.0","id":1,"error":"oops"}"#, r#""error":{"code":-32603,"message":"oops"}"#),
            (r#"{"jsonrpc":"2.0","id":1,"error":[1]}"#, r#""error":{"code":-32603,"message":"[1]"}"#),
        ] {
            assert_eq!(meant(text), Some(format!(r#"{{"jsonrpc":"2.0","id":7,{says}}}"#)), "{text}");
        }
    }

    #[test]
    fn what_says_two_things_or_none_says_nothing() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#,
            "noise",
        ] {
            assert_eq!(meant(text), None, "{text}");
        }
    }

    #[test]
    fn an_id_is_replaced_and_nothing_else() {
        let message = Message::parse(r#"{ "result": {"id":1}, "error":null, "id" : 1 }"#);
        let again = message.readdressed(&"b".into()).unwrap();
        assert_eq!(again.raw(), r#"{ "result": {"id":1}, "error":null, "id" : "b" }"#.as_bytes());
        assert_eq!(Message::parse(r#"{"result":{}}"#).readdressed(&1.into()), None);
    }
}
