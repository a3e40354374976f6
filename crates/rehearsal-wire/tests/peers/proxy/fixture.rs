//! A client, a server and the proxy between them, byte by byte.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rehearsal_core::trace::HttpHead;
use rehearsal_wire::http::proxy::{ExchangeObserver, Forward, HttpProxy, HttpProxyOptions, Observed, ProxyTap};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// The time limit of every wait; only a failing test reaches it.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// The log of a tap, one event per line: `1 POST /mcp`, `1 > data`, `1 >.`, `1 200`, `1 < data`, `1 <.`, `1 Done`.
#[derive(Clone, Default)]
pub(crate) struct Log {
    pub(crate) lines: Arc<Mutex<(u64, Vec<String>)>>,
    /// If true, the tap holds each request until it is complete.
    pub(crate) hold: bool,
}

struct LogObserver {
    log: Log,
    number: u64,
    whole: bool,
}

impl Log {
    fn add(&self, number: u64, line: &str) {
        let lines = &mut self.lines.lock().unwrap().1;
        let (data, prefix) = (&line[1.min(line.len())..], format!("{number} {}", &line[..1.min(line.len())]));
        // The socket may deliver the data in pieces of any size.
        match lines.last_mut() {
            Some(last)
                if (line.starts_with("> ") || line.starts_with("< "))
                    && last.starts_with(&prefix)
                    && !last.ends_with('.') =>
            {
                last.push_str(&data[1..]);
            }
            _ => lines.push(format!("{number} {line}")),
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().1.clone()
    }
}

impl ProxyTap for Log {
    fn begin(&self, _: u64, head: HttpHead) -> Box<dyn ExchangeObserver> {
        let number = {
            let mut lines = self.lines.lock().unwrap();
            lines.0 += 1;
            lines.0
        };
        self.add(number, &format!("{} {}", head.method.unwrap(), head.target.unwrap()));
        Box::new(LogObserver { log: self.clone(), number, whole: false })
    }
}

impl ExchangeObserver for LogObserver {
    fn observe(&mut self, observed: Observed<'_>) {
        let text = |data: &[u8]| String::from_utf8_lossy(data).escape_debug().to_string();
        let line = match observed {
            Observed::RequestData(data) => format!("> {}", text(data)),
            Observed::RequestEnd => {
                self.whole = true;
                ">.".to_owned()
            }
            Observed::Response(head) => head.status.unwrap().to_string(),
            Observed::ResponseData(data) => format!("< {}", text(data)),
            Observed::ResponseEnd => "<.".to_owned(),
            Observed::Over(over) => format!("{over:?}"),
        };
        self.log.add(self.number, &line);
    }

    fn forwarding(&mut self) -> Forward {
        if self.log.hold && !self.whole { Forward::Wait } else { Forward::Now }
    }

    fn hold_expired(&mut self) {
        self.log.add(self.number, "released");
    }
}

/// The proxy, and the listener that it forwards to.
pub(crate) struct Fixture {
    pub(crate) listener: TcpListener,
    pub(crate) proxy: HttpProxy,
    pub(crate) log: Log,
}

/// One end of a socket.
pub(crate) struct End(pub(crate) TcpStream);

impl Fixture {
    pub(crate) async fn new() -> Fixture {
        Fixture::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut HttpProxyOptions)) -> Fixture {
        Fixture::with_log(Log::default(), change).await
    }

    pub(crate) async fn with_log(log: Log, change: impl FnOnce(&mut HttpProxyOptions)) -> Fixture {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = format!("http://{}/mcp", listener.local_addr().unwrap());
        let mut options = HttpProxyOptions::new("127.0.0.1:0".parse().unwrap(), &upstream).unwrap();
        change(&mut options);
        let proxy = HttpProxy::bind(options, Arc::new(log.clone())).await.unwrap();
        Fixture { listener, proxy, log }
    }

    /// Returns the server's address, such as `127.0.0.1:1234`.
    pub(crate) fn there(&self) -> String {
        self.listener.local_addr().unwrap().to_string()
    }

    /// Returns the proxy's address, such as `127.0.0.1:1234`.
    pub(crate) fn here(&self) -> String {
        self.proxy.address().to_string()
    }

    pub(crate) async fn client(&self) -> End {
        let stream = TcpStream::connect(self.proxy.address()).await.unwrap();
        stream.set_nodelay(true).unwrap();
        End(stream)
    }

    pub(crate) async fn server(&self) -> End {
        let (stream, _) =
            timeout(TEST_TIMEOUT, self.listener.accept()).await.expect("a connection to the server").unwrap();
        stream.set_nodelay(true).unwrap();
        End(stream)
    }

    /// Sends a request from a client, and returns the client and the server after both have it. `HERE` in it arrives as
    /// `THERE`.
    pub(crate) async fn send_request(&self, request: &str) -> (End, End) {
        let mut client = self.client().await;
        client.send(&request.replace("HERE", &self.here())).await;
        let mut server = self.server().await;
        server.expect(&request.replace("HERE", &self.there())).await;
        (client, server)
    }

    /// Waits until the log ends with this line.
    pub(crate) async fn logged(&self, line: &str) {
        let there = async {
            while self.log.lines().last().is_none_or(|last| last != line) {
                tokio::task::yield_now().await;
            }
        };
        assert!(timeout(TEST_TIMEOUT, there).await.is_ok(), "no {line:?} in {:#?}", self.log.lines());
    }
}

impl End {
    pub(crate) async fn send(&mut self, bytes: &str) {
        self.0.write_all(bytes.as_bytes()).await.unwrap();
    }

    /// Checks that exactly these bytes arrive next.
    pub(crate) async fn expect(&mut self, bytes: &str) {
        let mut got = Vec::new();
        while got.len() < bytes.len() {
            let mut buffer = vec![0; bytes.len() - got.len()];
            match timeout(TEST_TIMEOUT, self.0.read(&mut buffer)).await {
                Ok(Ok(read)) if read > 0 => got.extend_from_slice(&buffer[..read]),
                other => panic!("{other:?} after {:.200?} of {bytes:.200?}", String::from_utf8_lossy(&got)),
            }
            assert!(bytes.as_bytes().starts_with(&got), "{:.200?} is not {bytes:.200?}", String::from_utf8_lossy(&got));
        }
    }

    /// Reads to the end of the stream.
    pub(crate) async fn rest(&mut self) -> String {
        let mut got = Vec::new();
        timeout(TEST_TIMEOUT, self.0.read_to_end(&mut got)).await.expect("an end").unwrap();
        String::from_utf8(got).unwrap()
    }

    /// Checks that the connection was reset, not closed.
    pub(crate) async fn expect_reset(&mut self) {
        let mut got = Vec::new();
        let error = timeout(TEST_TIMEOUT, self.0.read_to_end(&mut got)).await.expect("an end").unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }

    /// Closes the writing side; reading continues.
    pub(crate) async fn close_writing(&mut self) {
        self.0.shutdown().await.unwrap();
    }

    /// Resets the connection.
    pub(crate) fn reset(self) {
        self.0.set_zero_linger().unwrap();
    }
}

pub(crate) const POST: &str = "POST /mcp HTTP/1.1\r\nHost: HERE\r\nContent-Length: 2\r\n\r\n{}";
pub(crate) const GET: &str = "GET /mcp HTTP/1.1\r\nHost: HERE\r\n\r\n";
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]";
