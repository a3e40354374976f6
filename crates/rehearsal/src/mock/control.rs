//! Controls a mock over HTTP: queues of test cases, the request log, and a reset.
//!
//! ```text
//! GET    /control/queues            all test cases
//! GET    /control/queues/{id}       one, with the responses that are left
//! PUT    /control/queues/{id}       loads a list of responses
//! DELETE /control/queues/{id}       removes it
//! GET    /control/journal?after=N   the request log
//! POST   /control/verify            the expectations that are not met
//! POST   /control/reset             the initial state
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use rehearsal_core::answer::ExpectedCall;
use rehearsal_core::answer::harness::{Harness, QueueView, QueuedResponse as Prepared, ResponseBody};
use rehearsal_wire::BoxFuture;
use rehearsal_wire::http::server::CustomRoutes;
use serde_json::{Value, json};

use crate::serve::{Server, now_ms};

/// The path prefix.
const ROOT: &str = "/control";

/// The control interface of a mock.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) server: Server,
    pub(super) harness: Option<Arc<Harness>>,
}

/// Why a request is refused.
struct ControlError {
    status: StatusCode,
    why: String,
    allow: Option<&'static str>,
}

impl ControlError {
    fn new(status: StatusCode, why: impl Into<String>) -> ControlError {
        ControlError { status, why: why.into(), allow: None }
    }

    fn method(allow: &'static str) -> ControlError {
        let why = format!("here is only {allow}");
        ControlError { allow: Some(allow), ..ControlError::new(StatusCode::METHOD_NOT_ALLOWED, why) }
    }
}

impl CustomRoutes for Control {
    fn has(&self, path: &str) -> bool {
        path == ROOT || path.strip_prefix(ROOT).is_some_and(|rest| rest.starts_with('/'))
    }

    fn answer(&self, request: Request<Bytes>) -> BoxFuture<'_, Response<Bytes>> {
        let answered = self.find(&request);
        Box::pin(async move {
            let (status, body, allow) = match answered {
                Ok(body) => (StatusCode::OK, body, None),
                Err(refused) => (refused.status, json!({"error": refused.why}), refused.allow),
            };
            let mut response = Response::new(Bytes::from(format!("{body}\n")));
            *response.status_mut() = status;
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            if let Some(allow) = allow {
                response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
            }
            response
        })
    }
}

impl Control {
    fn find(&self, request: &Request<Bytes>) -> Result<Value, ControlError> {
        let path = request.uri().path();
        let rest = path.strip_prefix(ROOT).unwrap_or_default().trim_matches('/');
        let (what, id) = match rest.split_once('/') {
            Some((what, id)) => (what, Some(id)),
            None => (rest, None),
        };
        let method = request.method();
        match (what, id) {
            ("queues", None) => match *method {
                Method::GET => Ok(json!({"queues": self.queues()?})),
                _ => Err(ControlError::method("GET")),
            },
            ("queues", Some(id)) => self.queue(method, &decoded(id)?, request.body()),
            ("journal", None) => match *method {
                Method::GET => self.journal(request.uri().query().unwrap_or_default()),
                _ => Err(ControlError::method("GET")),
            },
            ("verify", None) => match *method {
                Method::POST => self.verify(request.body()),
                _ => Err(ControlError::method("POST")),
            },
            ("reset", None) => match *method {
                Method::POST => {
                    self.server.reset();
                    Ok(json!({"reset": true}))
                }
                _ => Err(ControlError::method("POST")),
            },
            _ => {
                let known = "queues, queues/{test_case_id}, journal, verify and reset";
                Err(ControlError::new(StatusCode::NOT_FOUND, format!("no {path}; under {ROOT} there are {known}")))
            }
        }
    }

    fn harness(&self) -> Result<Arc<Harness>, ControlError> {
        let why = "this mock has no queues; start it with --harness";
        self.harness.clone().ok_or_else(|| ControlError::new(StatusCode::NOT_FOUND, why))
    }

    fn queues(&self) -> Result<Vec<Value>, ControlError> {
        let harness = self.harness()?;
        Ok(harness.names().iter().filter_map(|name| harness.view(name)).map(|view| summary(&view)).collect())
    }

    fn queue(&self, method: &Method, id: &str, body: &Bytes) -> Result<Value, ControlError> {
        let harness = self.harness()?;
        let unknown = || ControlError::new(StatusCode::NOT_FOUND, format!("no test case {id:?}"));
        match *method {
            Method::GET => harness.view(id).map(|view| details(&view)).ok_or_else(unknown),
            Method::PUT => {
                let loaded = harness.load(id, body, now_ms());
                loaded
                    .map(|view| summary(&view))
                    .map_err(|error| ControlError::new(StatusCode::BAD_REQUEST, error.to_string()))
            }
            Method::DELETE if harness.remove(id) => Ok(json!({"deleted": id})),
            Method::DELETE => Err(unknown()),
            _ => Err(ControlError::method("GET, PUT, DELETE")),
        }
    }

    fn journal(&self, query: &str) -> Result<Value, ControlError> {
        let mut after = 0;
        for field in query.split('&').filter(|field| !field.is_empty()) {
            match field.split_once('=') {
                Some(("after", number)) => {
                    let bad = || ControlError::new(StatusCode::BAD_REQUEST, "`after` is the number of a call");
                    after = number.parse().map_err(|_| bad())?;
                }
                _ => {
                    let why = format!("{field:?} is not known here; ?after=N shows what came after call N");
                    return Err(ControlError::new(StatusCode::BAD_REQUEST, why));
                }
            }
        }
        let journal = self.server.log();
        let calls: Vec<_> = journal.after(after).iter().map(|call| call.to_json()).collect();
        Ok(json!({"count": journal.count(), "calls": calls}))
    }

    fn verify(&self, body: &Bytes) -> Result<Value, ControlError> {
        let bad = |why: String| ControlError::new(StatusCode::BAD_REQUEST, why);
        let written: Value = serde_json::from_slice(body).map_err(|error| bad(format!("not JSON: {error}")))?;
        let Value::Array(written) = written else {
            return Err(bad("expected a list such as [{\"tool\": \"echo\", \"times\": 2}]".to_owned()));
        };
        let read = |(at, written): (usize, &Value)| {
            ExpectedCall::read(written).map_err(|why| bad(format!("expectation {}: {why}", at + 1)))
        };
        let expected: Vec<_> = written.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let unmet: Vec<_> = self.server.log().verify(&expected).iter().map(ToString::to_string).collect();
        Ok(json!({"ok": unmet.is_empty(), "unmet": unmet}))
    }
}

fn summary(view: &QueueView) -> Value {
    json!({"test_case_id": &*view.test_case, "given": view.given, "left": view.left, "calls": view.calls})
}

fn details(view: &QueueView) -> Value {
    let mut details = summary(view);
    details["responses"] = view.responses.iter().map(|response| prepared(response)).collect();
    details
}

/// A response in its wire form.
fn prepared(response: &Prepared) -> Value {
    let mut shown = match &response.body {
        ResponseBody::Result(result) => json!({"result": result}),
        ResponseBody::Error(error) => {
            let data = error.data.as_ref().and_then(|data| data.value().ok());
            json!({"error": {"code": error.code, "message": error.message, "data": data}})
        }
    };
    if let Some(fault) = &response.fault {
        shown["fault"] = fault.name().into();
    }
    shown
}

/// The name of a test case in a path.
fn decoded(id: &str) -> Result<Cow<'_, str>, ControlError> {
    if !id.contains('%') {
        return Ok(Cow::Borrowed(id));
    }
    let bad = || ControlError::new(StatusCode::BAD_REQUEST, format!("{id:?} is not percent-encoded text"));
    let mut bytes = Vec::with_capacity(id.len());
    let mut rest = id.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
                let (high, low) = digit(rest.next()).zip(digit(rest.next())).ok_or_else(bad)?;
                u8::try_from(high * 16 + low).map_err(|_| bad())?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_paths_are_decoded() {
        let read = |id| decoded(id).ok().map(Cow::into_owned);
        assert_eq!(read("plain").as_deref(), Some("plain"));
        assert_eq!(read("a%20b%2Fc%C3%A9").as_deref(), Some("a b/cé"));
        for broken in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(read(broken), None, "{broken}");
        }
    }
}
