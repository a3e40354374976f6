//! What the proxy says itself.

/// A response of the proxy's own; the connection ends with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// `400 Bad Request`
    status: &'static str,
    /// Why, for people.
    pub(super) why: String,
}

impl Refusal {
    /// The request is not HTTP, or its length is ambiguous.
    pub(super) fn bad_request(why: impl Into<String>) -> Refusal {
        Refusal { status: "400 Bad Request", why: why.into() }
    }

    /// A web page of a stranger's, or what looks like one.
    pub(super) fn forbidden(what: &str) -> Refusal {
        Refusal { status: "403 Forbidden", why: format!("Forbidden: {what}") }
    }

    /// A method for other kinds of proxies.
    pub(super) fn method(method: &str) -> Refusal {
        Refusal { status: "405 Method Not Allowed", why: format!("{method} is for other kinds of proxies") }
    }

    /// A head that does not come to its end.
    pub(super) fn timeout() -> Refusal {
        Refusal { status: "408 Request Timeout", why: "the head of the request did not come to its end".to_owned() }
    }

    /// A head beyond the limit.
    pub(super) fn head_too_large(what: impl Into<String>) -> Refusal {
        Refusal { status: "431 Request Header Fields Too Large", why: what.into() }
    }

    /// The upstream is not there.
    pub(super) fn bad_gateway(why: impl Into<String>) -> Refusal {
        Refusal { status: "502 Bad Gateway", why: why.into() }
    }

    /// As it goes to the client: `rehearse: cannot connect to …` in plain text.
    pub(super) fn response(&self) -> Vec<u8> {
        let body = format!("rehearse: {}\n", self.why);
        let Refusal { status, .. } = self;
        let kind = "content-type: text/plain; charset=utf-8";
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\n{kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
        (head + &body).into_bytes()
    }
}
