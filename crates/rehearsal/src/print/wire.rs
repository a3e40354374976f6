//! The wire, one message a line.

use rehearsal::core::exchange::Side;
use rehearsal::core::message::Message;

/// The mark and the text of a message: `>` goes to the server, `<` comes from it.
pub(crate) fn wire_line(from: Side, message: &Message) -> (&'static str, String) {
    let mark = match from {
        Side::Client => ">",
        Side::Server => "<",
    };
    // Over HTTP a message may have line ends between its tokens.
    let text = message.text().trim_end().replace(['\r', '\n'], " ");
    (mark, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_several_lines_is_shown_on_one() {
        let message = Message::parse("{\"jsonrpc\": \"2.0\",\r\n\"method\": \"ping\", \"id\": 1}\n");
        let (mark, line) = wire_line(Side::Server, &message);
        assert_eq!((mark, line.as_str()), ("<", r#"{"jsonrpc": "2.0",  "method": "ping", "id": 1}"#));
    }
}
