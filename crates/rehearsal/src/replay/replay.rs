//! A recording that answers.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rehearsal_core::answer::{Answer, Called, Opening};
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::protocol::{Era, Revision};
use rehearsal_core::trace::subject;
use rehearsal_wire::http::server::{Answers as HttpAnswers, Options as HttpOptions};
use serde_json::Value;

use super::forward::Upstream;
use super::index::{Existing, Facts, IndexError, method_key};
use super::ledger::{LISTED, Ledger, LedgerLine};
use super::openings::{Openings, Pooled, Refused, pooled};
use super::options::{Options, Sessions};
use super::progress::Progress;
use super::tape::{Tape, request};
use crate::mock::{Answers, Server};
use crate::store::{Input, OpenError, Recording};

/// How many recordings are looked at for one that suits.
pub(super) const CANDIDATES: u32 = 64;

/// A recording that answers.
#[derive(Clone, Debug)]
pub struct Replay(Arc<Shared>);

/// What all the clients of a replay share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) tape: Tape,
    pub(super) options: Options,
    /// Those that are answered from; `None` for all.
    pub(super) selected: Option<Vec<bool>>,
    /// What is said where no handshake was recorded.
    pub(super) opening: Arc<Opening>,
    /// Who was refused, where nobody was let in.
    pub(super) refused: Refused,
    /// Who the server of each session said it is.
    pub(super) openings: Openings,
    pub(super) progress: Mutex<Progress>,
    pub(super) ledger: Mutex<Ledger>,
    /// Why nothing can be answered any more, once that is known.
    pub(super) unreadable: OnceLock<String>,
    pub(super) upstream: Option<Arc<Upstream>>,
}

/// Why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot be indexed.
    #[error("{}", about_index(input, cause))]
    Index {
        /// Which.
        input: Input,
        /// Why not.
        cause: IndexError,
    },
    /// No session has what was wanted.
    #[error("{input}: no session like that")]
    NoSession {
        /// Where.
        input: Input,
        /// What its sessions are called, no more than a few.
        known: Vec<String>,
    },
}

/// How many sessions are named where none is like what was wanted.
const NAMED: u32 = 100;

/// A bad line has its place in the file.
fn about_index(input: &Input, cause: &IndexError) -> String {
    match cause {
        IndexError::Trace(error) => format!("{input}, {error}"),
        IndexError::Io(error) => format!("cannot index {input}: {error}"),
    }
}

/// Why a recording cannot be served, wherever it is from.
enum Unserved {
    Index(IndexError),
    NoSession { known: Vec<String> },
}

impl<E: Into<IndexError>> From<E> for Unserved {
    fn from(cause: E) -> Unserved {
        Unserved::Index(cause.into())
    }
}

impl Replay {
    /// Opens a recording, and its index, which is built where there is none.
    pub fn open(input: &Input, options: Options) -> Result<Replay, ReplayError> {
        Replay::open_with(input, options, None)
    }

    /// The same; what was not recorded is asked of the real server.
    pub fn open_with(input: &Input, options: Options, upstream: Option<Upstream>) -> Result<Replay, ReplayError> {
        let recording = Recording::open(input)?;
        // What is no file, such as a pipe, is another recording the next time.
        let path = match input {
            Input::File(path) => Some(path.as_path()).filter(|path| path.is_file()),
            Input::Stdin => None,
        };
        Replay::of(&recording, path, options, upstream).map_err(|unserved| match unserved {
            Unserved::Index(cause) => ReplayError::Index { input: input.clone(), cause },
            Unserved::NoSession { known } => ReplayError::NoSession { input: input.clone(), known },
        })
    }

    fn of(
        recording: &Recording,
        path: Option<&Path>,
        options: Options,
        upstream: Option<Upstream>,
    ) -> Result<Replay, Unserved> {
        let open = |existing| {
            let tape = Tape::open(recording, path, &options, existing)?;
            let selected = selected(&tape, &options)?;
            let pooled = pooled(&tape, selected.as_deref())?;
            Ok((tape, selected, pooled))
        };
        let (tape, selected, Pooled { opening, refused }) = match open(Existing::Use) {
            Err(IndexError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => open(Existing::Replace),
            opened => opened,
        }?;
        if selected.as_ref().is_some_and(|selected| !selected.contains(&true)) {
            let named = (0..tape.index.sessions().min(NAMED)).map(|session| Ok(tape.index.facts(session)?.id));
            return Err(Unserved::NoSession { known: named.collect::<io::Result<_>>()? });
        }
        Ok(Replay(Arc::new(Shared {
            tape,
            options,
            selected,
            opening: Arc::new(opening),
            refused,
            openings: Openings::default(),
            progress: Mutex::default(),
            ledger: Mutex::default(),
            unreadable: OnceLock::new(),
            upstream: upstream.map(Arc::new),
        })))
    }

    /// A server that answers from it, and tells somebody about every answer.
    pub fn server(&self, listener: impl Fn(&Called, &Answer) + Send + Sync + 'static) -> Server {
        Server::from_source(Arc::clone(&self.0) as Arc<dyn Answers>, listener)
    }

    /// What a listener is told: the arguments that travel as headers, of the tools that were listed.
    pub fn http_options(&self) -> io::Result<HttpOptions> {
        let mut schemas: HashMap<String, Arc<Value>> = HashMap::new();
        let tape = &self.0.tape;
        let lists = tape.index.group(method_key(Method::TOOLS_LIST.as_str()))?;
        for number in lists.into_iter().flat_map(|group| tape.members(group, CANDIDATES)) {
            let recorded = tape.recorded(number?)?;
            let Some(Reply::Result(result)) = recorded.reply() else { continue };
            let tools = result.field("tools").and_then(|tools| tools.value().ok());
            for tool in tools.iter().filter_map(Value::as_array).flatten() {
                if let (Some(name), Some(schema)) = (tool["name"].as_str(), tool.get("inputSchema"))
                    && schema.to_string().contains("x-mcp-header")
                {
                    schemas.insert(name.to_owned(), Arc::new(schema.clone()));
                }
            }
        }
        let known = (0..tape.index.sessions().min(CANDIDATES)).map(|session| tape.index.facts(session));
        let known = known.collect::<io::Result<Vec<Facts>>>()?;
        let only_streams = known.iter().all(|facts| facts.plain == 0) && known.iter().any(|facts| facts.streamed > 0);
        Ok(HttpOptions {
            answers: if only_streams { HttpAnswers::Events } else { HttpAnswers::Lazy },
            retry: known.iter().find_map(|facts| facts.retry).map(Duration::from_millis),
            revisions: Revision::ALL.to_vec(),
            tool_schema: Some(Arc::new(move |tool: &str| schemas.get(tool).cloned())),
            ..HttpOptions::default()
        })
    }

    /// How many exchanges there are.
    pub fn exchanges(&self) -> u32 {
        self.0.tape.index.exchanges()
    }

    /// What whoever serves this should know before the first client comes: that the recording answers nothing.
    ///
    /// ```text
    /// the recording has no calls: everything but the handshake and pings is refused
    /// ```
    pub fn notices(&self) -> io::Result<Vec<&'static str>> {
        let mut notices = Vec::new();
        if self.0.upstream.is_none() && !self.has_calls()? {
            notices.push("the recording has no calls: everything but the handshake and pings is refused");
        }
        if self.0.refused.by(Era::Legacy).is_some() {
            notices.push("no recorded client was let in: clients are refused as they were");
        }
        Ok(notices)
    }

    fn has_calls(&self) -> io::Result<bool> {
        for session in (0..self.0.tape.index.sessions()).filter(|session| self.0.is_selected(*session)) {
            if !self.0.tape.of_session(session)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What was asked so far, and what was not.
    pub fn ledger(&self) -> io::Result<Ledger> {
        let mut ledger = self.0.ledger().clone();
        if let Some(upstream) = &self.0.upstream {
            (ledger.forwarded, ledger.failed) = upstream.asked();
        }
        for session in (0..self.0.tape.index.sessions()).filter(|session| self.0.is_selected(*session)) {
            ledger.unsaid += self.0.tape.index.facts(session)?.unsaid;
        }
        let progress = self.0.progress();
        for number in 0..self.exchanges() {
            if progress.is_used(number) {
                continue;
            }
            let exchange = self.0.tape.index.exchange(number)?;
            let is_selected = self.0.is_selected(exchange.session);
            if !exchange.flags.counts() || !is_selected {
                continue;
            }
            ledger.unused += 1;
            if ledger.unused_recordings.len() < LISTED {
                let recorded = self.0.tape.recorded(number)?;
                let message = request(&recorded);
                ledger.unused_recordings.push(LedgerLine {
                    method: message.method().map(ToString::to_string).unwrap_or_default(),
                    name: subject(message),
                    recording: Some(recorded.place.to_string()),
                    count: 1,
                });
            }
        }
        Ok(ledger)
    }

    /// Ends what was started to answer what was not recorded, and keeps what it said.
    pub async fn close(&self) -> io::Result<()> {
        match &self.0.upstream {
            Some(upstream) => upstream.close().await,
            None => Ok(()),
        }
    }
}

/// The sessions that are answered from; `None` for all.
fn selected(tape: &Tape, options: &Options) -> io::Result<Option<Vec<bool>>> {
    let wanted = &options.sessions;
    if wanted.id.is_none() && wanted.metadata.is_empty() {
        return Ok(None);
    }
    let suits = |session: u32| {
        let facts = tape.index.facts(session)?;
        let has = |(key, value): &(String, String)| match facts.metadata.get(key) {
            Some(Value::String(text)) => text == value,
            Some(other) => &other.to_string() == value,
            None => false,
        };
        let is_of = |id: &str| id == facts.id || facts.metadata.get(Sessions::ADDS_TO).is_some_and(|to| to == id);
        Ok(wanted.id.as_deref().is_none_or(is_of) && wanted.metadata.iter().all(has))
    };
    (0..tape.index.sessions()).map(suits).collect::<io::Result<_>>().map(Some)
}

/// Whether a session is one of those.
pub(super) fn is_selected(selected: Option<&[bool]>, session: u32) -> bool {
    selected.is_none_or(|all| all.get(session as usize).copied().unwrap_or_default())
}
