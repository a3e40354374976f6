//! An MCP server that requires tokens, and the authorization server that issues them, behind one port.

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

use super::authorization::{OAuthState, authorize, register, token};

/// An MCP server and its authorization server; both stop when this is dropped.
pub(crate) struct OAuthServer {
    address: SocketAddr,
    state: Arc<Mutex<OAuthState>>,
    task: tokio::task::JoinHandle<()>,
}

pub(crate) type Answer = Response<Full<Bytes>>;

impl OAuthServer {
    pub(crate) async fn start() -> OAuthServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(OAuthState::new(format!("http://{address}"))));
        let shared = state.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let state = shared.clone();
                let service = service_fn(move |request| {
                    let state = state.clone();
                    async move { Ok::<_, Infallible>(answer(request, &state).await) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        OAuthServer { address, state, task }
    }

    /// The URL of the MCP server.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The state of the authorization server.
    pub(crate) fn state(&self) -> MutexGuard<'_, OAuthState> {
        self.state.lock().unwrap()
    }
}

impl Drop for OAuthServer {
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

async fn answer(request: Request<Incoming>, state: &Mutex<OAuthState>) -> Answer {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, 1 << 20).collect().await.unwrap().to_bytes();
    let mut state = state.lock().unwrap();
    let query = head.uri.query().unwrap_or_default();
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match (&head.method, head.uri.path()) {
        (&Method::GET, "/.well-known/oauth-protected-resource/mcp") => {
            let origin = &state.origin;
            let resource = json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin]});
            as_json(StatusCode::OK, &resource)
        }
        (&Method::GET, "/.well-known/oauth-authorization-server") => as_json(StatusCode::OK, &state.metadata()),
        (&Method::POST, "/register") => register(&mut state, &serde_json::from_slice(&body).unwrap()),
        (&Method::GET, "/authorize") => authorize(&mut state, &pairs(query)),
        (&Method::POST, "/token") => {
            let form = pairs(std::str::from_utf8(&body).unwrap());
            token(&mut state, &form, header("authorization"))
        }
        (&Method::POST, "/mcp") => serve(&mut state, header("authorization"), &body),
        _ => as_json(StatusCode::NOT_FOUND, &json!({})),
    }
}

/// MCP of 2026-07-28: the tool `read` needs a login, the tool `write` the scope `write`.
fn serve(state: &mut OAuthState, authorization: &str, body: &[u8]) -> Answer {
    let request: Value = serde_json::from_slice(body).unwrap();
    let needed = if request["params"]["name"] == "write" { "write" } else { "read" };
    state.authorizations.push(authorization.to_owned());
    let challenge =
        format!(r#"resource_metadata="{}/.well-known/oauth-protected-resource/mcp", scope="{needed}""#, state.origin);
    let refused = |status, challenge: String| {
        let mut answer = as_json(status, &json!({}));
        answer.headers_mut().insert("www-authenticate", challenge.parse().unwrap());
        answer
    };
    match state.scopes_of(authorization) {
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
