//! HTTP+SSE, the transport of 2024-11-05.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::uri::Scheme;
use http::{Method, Uri};
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::Message;
use tokio::sync::mpsc;

use super::channel_tasks::{ChannelTasks, HttpReceiver, QUEUE_CAPACITY};
use super::event_reader::{EventReader, ReadEvent, StreamEnd, long_message, message, partial_message};
use super::http_client::{HttpClient, RequestBody};
use super::response::{read, refusal};
use super::{ConnectError, HttpClientOptions};
use crate::{BoxFuture, Connection, ConnectionEnd, Event, HttpMeta, Outgoing, SendError, Sender, StopOutcome};

/// Connects to an HTTP+SSE server: opens the stream and waits for the `endpoint` event.
///
/// All messages of the server arrive on [`Channel::MAIN`], as over a pipe. Sending returns when the server has accepted
/// the message, and fails if the server refuses it.
pub async fn connect_sse(options: HttpClientOptions) -> Result<Connection, ConnectError> {
    let http_client = HttpClient::new(&options)?;
    let waited = options.endpoint_timeout;
    let opened = http_client.run_with_limit(waited, open(&http_client, &options)).await;
    let opened = opened.ok_or(ConnectError::NoEndpoint { waited })??;

    let (events, queue) = mpsc::channel(QUEUE_CAPACITY);
    let tasks = Arc::new(ChannelTasks::default());
    let sender = HttpSseSender {
        http_client: http_client.with_url(opened.endpoint),
        limit: options.message_limit,
        accept_timeout: options.accept_timeout,
        events: Mutex::new(Some(events.clone())),
        tasks: Arc::clone(&tasks),
    };
    let stream = Stream { reader: opened.reader, head: opened.head, events };
    tasks.spawn(Some(Channel::MAIN), stream.run(opened.early));
    Ok(Connection { sender: Arc::new(sender), receiver: Box::new(HttpReceiver::new(queue, tasks)) })
}

/// An open stream whose endpoint is known.
struct Opened {
    reader: EventReader,
    head: Arc<HttpMeta>,
    endpoint: Uri,
    /// The messages that arrived before the `endpoint` event.
    early: Vec<Message>,
}

async fn open(http_client: &HttpClient, options: &HttpClientOptions) -> Result<Opened, ConnectError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    let answer = http_client.request(Method::GET, headers, &HeaderMap::new(), RequestBody::empty()).await;
    let answer = answer.map_err(|error| ConnectError::Failed { why: error.to_string() })?;
    if !answer.is_event_stream() {
        let (head, body) = answer.into_refusal().await;
        return Err(ConnectError::Refused { head, body });
    }
    let head = answer.head;
    let mut reader = EventReader::new(answer.body, options.message_limit);
    let mut early = Vec::new();
    loop {
        match reader.next().await {
            ReadEvent::Event(event) if event.event.as_deref() == Some("endpoint") => {
                let endpoint = resolve(&options.url, &String::from_utf8_lossy(&event.data))?;
                return Ok(Opened { reader, head, endpoint, early });
            }
            ReadEvent::Event(event) => early.extend(message(&event)),
            ReadEvent::End(StreamEnd::Over { why, .. }) => {
                let why = why.map_or_else(String::new, |why| format!(": {why}"));
                return Err(ConnectError::Failed { why: format!("the stream ended before its `endpoint` event{why}") });
            }
            ReadEvent::End(StreamEnd::TooLong(error)) => return Err(ConnectError::Failed { why: error.to_string() }),
        }
    }
}

/// Reads the stream of the server's messages.
struct Stream {
    reader: EventReader,
    head: Arc<HttpMeta>,
    events: mpsc::Sender<Event>,
}

impl Stream {
    async fn run(mut self, early: Vec<Message>) {
        for message in early {
            self.deliver(message).await;
        }
        let ending = loop {
            match self.reader.next().await {
                ReadEvent::Event(event) => {
                    if let Some(message) = message(&event) {
                        self.deliver(message).await;
                    }
                }
                ReadEvent::End(StreamEnd::Over { why, unfinished }) => {
                    if let Some(partial) = partial_message(unfinished) {
                        self.deliver(partial).await;
                    }
                    break why.map_or(ConnectionEnd::PeerClosed, |why| ConnectionEnd::Failed { why });
                }
                ReadEvent::End(StreamEnd::TooLong(error)) => {
                    let why = error.to_string();
                    self.deliver(long_message(error.data, error.limit)).await;
                    break ConnectionEnd::Failed { why };
                }
            }
        };
        let _ = self.events.send(Event::Ended(ending)).await;
    }

    async fn deliver(&self, message: Message) {
        let event = Event::Message { channel: Channel::MAIN, message, head: Some(Arc::clone(&self.head)) };
        // An error means that the connection was dropped; the task ends with it.
        let _ = self.events.send(event).await;
    }
}

#[derive(Debug)]
struct HttpSseSender {
    http_client: HttpClient,
    limit: usize,
    accept_timeout: Duration,
    /// `None` after the connection was closed.
    events: Mutex<Option<mpsc::Sender<Event>>>,
    tasks: Arc<ChannelTasks>,
}

impl HttpSseSender {
    fn events(&self) -> Result<mpsc::Sender<Event>, SendError> {
        let events = self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        events.clone().ok_or(SendError::Closed)
    }

    async fn post(&self, bytes: Bytes, theirs: HeaderMap) -> Result<(), SendError> {
        self.events()?;
        if bytes.len() > self.limit {
            return Err(SendError::TooLong { length: bytes.len(), limit: self.limit });
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let (body, _) = RequestBody::new(bytes);
        let posted = self.http_client.run_with_limit(self.accept_timeout, async {
            let posted = self.http_client.request(Method::POST, headers, &theirs, body).await;
            let answer = posted.map_err(|error| error.to_string())?;
            let body = read(answer.body, self.limit).await.bytes;
            Ok::<_, String>((answer.status, answer.head, body))
        });
        let (status, head, body) = match posted.await {
            Some(Ok(answer)) => answer,
            Some(Err(why)) => return Err(SendError::Failed { why }),
            None => {
                let why = format!("the server did not accept the message within {:?}", self.accept_timeout);
                return Err(SendError::Failed { why });
            }
        };
        let why = refusal(&head, &body);
        let reply = Message::parse(body);
        let is_answer = reply.as_response().is_some_and(|response| response.id.is_some());
        if reply.as_garbled().is_none() {
            let events = self.events()?;
            // Sent by a task, because the caller of `send` may be the one who empties the queue.
            let event = Event::Message { channel: Channel::MAIN, message: reply, head: Some(head) };
            self.tasks.spawn(None, async move { drop(events.send(event).await) });
        }
        if status.is_success() || is_answer { Ok(()) } else { Err(SendError::Failed { why }) }
    }
}

impl Sender for HttpSseSender {
    fn open_channel(&self) -> Channel {
        Channel::MAIN
    }

    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(self.post(outgoing.message.raw().clone(), outgoing.headers))
    }

    fn send_bytes(&self, _: Channel, bytes: Bytes) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(self.post(bytes, HeaderMap::new()))
    }

    fn is_waiting_for_login(&self) -> bool {
        self.http_client.is_waiting_for_login()
    }

    fn abort(&self) {
        self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        self.tasks.close();
    }

    fn close(&self) -> BoxFuture<'_, StopOutcome> {
        self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        self.tasks.close();
        Box::pin(async { StopOutcome::AlreadyExited })
    }
}

/// Resolves the URL in an `endpoint` event against the URL of the stream.
///
/// Another origin is refused, because our headers may be secret.
pub fn resolve(base: &Uri, endpoint: &str) -> Result<Uri, ConnectError> {
    let endpoint = endpoint.trim();
    let bad = |why: String| ConnectError::BadEndpoint { endpoint: endpoint.to_owned(), why };
    let scheme = base.scheme_str().unwrap_or("http");
    let authority = base.authority().map_or("", |authority| authority.as_str());
    let absolute = if endpoint.is_empty() {
        return Err(bad("it is empty".to_owned()));
    } else if has_scheme(endpoint) {
        endpoint.to_owned()
    } else if endpoint.starts_with("//") {
        format!("{scheme}:{endpoint}")
    } else {
        let (path, query) = match endpoint.split_once('?') {
            Some((path, query)) => (path, format!("?{query}")),
            None => (endpoint, String::new()),
        };
        let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        let path = match path {
            "" => base.path().to_owned(),
            path if path.starts_with('/') => without_dots(path),
            path => without_dots(&format!("{folder}/{path}")),
        };
        format!("{scheme}://{authority}{path}{query}")
    };
    let url: Uri = absolute.parse().map_err(|error: http::uri::InvalidUri| bad(error.to_string()))?;
    if origin(&url) != origin(base) {
        let origin = format!("{scheme}://{authority}");
        return Err(ConnectError::ForeignEndpoint { endpoint: endpoint.to_owned(), origin });
    }
    Ok(url)
}

fn has_scheme(reference: &str) -> bool {
    let before = reference.split(['/', '?', '#']).next().unwrap_or_default();
    before.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
    })
}

/// Removes `.` and `..` from a path.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    for (index, part) in parts.iter().enumerate() {
        let last = index + 1 == parts.len();
        match *part {
            "." => {}
            ".." => {
                kept.pop();
            }
            part => {
                kept.push(part);
                continue;
            }
        }
        if last {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

/// Returns scheme, host and port, with the default port of the scheme.
fn origin(url: &Uri) -> (Option<&Scheme>, String, Option<u16>) {
    let implied = url.scheme().map(|scheme| if *scheme == Scheme::HTTPS { 443 } else { 80 });
    (url.scheme(), url.host().unwrap_or_default().to_ascii_lowercase(), url.port_u16().or(implied))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(endpoint: &str) -> Result<String, String> {
        let base = Uri::from_static("http://localhost:80/api/v1/sse?key=1");
        resolve(&base, endpoint).map(|url| url.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn an_endpoint_resolves_like_any_url_reference() {
        let table = [
            ("/messages?session=1", "http://localhost:80/messages?session=1"),
            ("messages/?session=1", "http://localhost:80/api/v1/messages/?session=1"),
            ("./messages", "http://localhost:80/api/v1/messages"),
            ("../messages/.", "http://localhost:80/api/messages/"),
            ("../../../up", "http://localhost:80/up"),
            ("?session=a/../b", "http://localhost:80/api/v1/sse?session=a/../b"),
            ("http://LOCALHOST/messages", "http://localhost/messages"),
            ("//localhost/messages", "http://localhost/messages"),
            (" /messages\n", "http://localhost:80/messages"),
        ];
        for (endpoint, expected) in table {
            assert_eq!(resolved(endpoint).map(|url| url.to_ascii_lowercase()).as_deref(), Ok(expected), "{endpoint}");
        }
    }

    #[test]
    fn an_endpoint_on_another_origin_is_refused() {
        for endpoint in ["http://localhost:81/m", "https://localhost/m", "http://evil.example/m", "//evil.example/m"] {
            let expected = format!("the endpoint {endpoint:?} is not on http://localhost:80, where the stream is");
            assert_eq!(resolved(endpoint), Err(expected));
        }
        for endpoint in ["", "/a b", "javascript:alert(1)"] {
            assert!(resolved(endpoint).is_err(), "{endpoint}");
        }
    }
}
