//! A server that lets in whoever has a token, and the authorization server that gives them out, behind one port.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::authorization::{Books, authorize, register, token};

/// A server and its authorization server; they end with this.
pub(crate) struct House {
    address: SocketAddr,
    books: Arc<Mutex<Books>>,
    task: tokio::task::JoinHandle<()>,
}

pub(crate) type Answer = Response<Full<Bytes>>;

impl House {
    pub(crate) async fn open() -> House {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let books = Arc::new(Mutex::new(Books::new(format!("http://{address}"))));
        let shared = books.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let books = shared.clone();
                let service = service_fn(move |request| {
                    let books = books.clone();
                    async move { Ok::<_, Infallible>(answer(request, &books).await) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        House { address, books, task }
    }

    /// Where the server is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// What the authorization server knows and has seen.
    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The names and values of a query or a form.
pub(crate) fn pairs(text: &str) -> BTreeMap<String, String> {
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        let mut parts = text.split('%');
        let mut plain = parts.next().unwrap_or_default().as_bytes().to_vec();
        for part in parts {
            plain.push(u8::from_str_radix(&part[..2], 16).unwrap());
            plain.extend_from_slice(&part.as_bytes()[2..]);
        }
        String::from_utf8(plain).unwrap()
    };
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decode(name), decode(value))).collect()
}

pub(crate) fn as_json(status: StatusCode, body: &Value) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body.to_string())));
    *answer.status_mut() = status;
    answer.headers_mut().insert("content-type", "application/json".parse().unwrap());
    answer
}

async fn answer(request: Request<Incoming>, books: &Mutex<Books>) -> Answer {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, 1 << 20).collect().await.unwrap().to_bytes();
    let mut books = books.lock().unwrap();
    let query = head.uri.query().unwrap_or_default();
    let said = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match (&head.method, head.uri.path()) {
        (&Method::GET, "/.well-known/oauth-protected-resource/mcp") => {
            let origin = &books.origin;
            let resource = json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin]});
            as_json(StatusCode::OK, &resource)
        }
        (&Method::GET, "/.well-known/oauth-authorization-server") => as_json(StatusCode::OK, &books.metadata()),
        (&Method::POST, "/register") => register(&mut books, &serde_json::from_slice(&body).unwrap()),
        (&Method::GET, "/authorize") => authorize(&mut books, &pairs(query)),
        (&Method::POST, "/token") => {
            let form = pairs(std::str::from_utf8(&body).unwrap());
            token(&mut books, &form, said("authorization"))
        }
        (&Method::POST, "/mcp") => serve(&mut books, said("authorization"), &body),
        _ => as_json(StatusCode::NOT_FOUND, &json!({})),
    }
}

/// MCP of 2026-07-28: one tool for everybody who is logged in, and one for those who may write.
fn serve(books: &mut Books, authorization: &str, body: &[u8]) -> Answer {
    let request: Value = serde_json::from_slice(body).unwrap();
    let needed = if request["params"]["name"] == "write" { "write" } else { "read" };
    books.knocked.push(authorization.to_owned());
    let challenge =
        format!(r#"resource_metadata="{}/.well-known/oauth-protected-resource/mcp", scope="{needed}""#, books.origin);
    let refused = |status, challenge: String| {
        let mut answer = as_json(status, &json!({}));
        answer.headers_mut().insert("www-authenticate", challenge.parse().unwrap());
        answer
    };
    match books.scopes_of(authorization) {
        None => return refused(StatusCode::UNAUTHORIZED, format!("Bearer {challenge}")),
        Some(scopes) if !scopes.iter().any(|scope| scope == needed) => {
            return refused(StatusCode::FORBIDDEN, format!(r#"Bearer error="insufficient_scope", {challenge}"#));
        }
        Some(_) => {}
    }
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let result = match request["method"].as_str().unwrap() {
        "server/discover" => json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
        "tools/list" => json!({"tools": [tool("read"), tool("write")]}),
        "tools/call" => json!({"content": [{"type": "text", "text": format!("{needed} done")}]}),
        other => panic!("{other}"),
    };
    let mut result = result;
    result["resultType"] = json!("complete");
    as_json(StatusCode::OK, &json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}
