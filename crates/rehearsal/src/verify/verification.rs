//! Sends a recording to a live server and compares the answers.

use std::sync::Arc;
use std::time::Instant;

use crate::client::RequestBuilder;
use rehearsal_core::exchange::Side;
use rehearsal_core::matcher::Matcher;
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::redact::Redaction;
use rehearsal_core::report::{Case, CaseStatus, Finding, Report, Verdict};
use rehearsal_core::trace::dialect::invalid_calls;
use rehearsal_core::trace::{CallComparison, RecordedCall, TimelineItem};

use super::compare::{CheckResult, reply_of};
use super::handshake::RecordedStart;
use super::ignored_paths::IgnoredPaths;
use super::plan::{MetaSource, resend_params, unsupported_reason};
use super::plan::{
    NO_VERSION_NEGOTIATED, PlannedCheck, VerificationPlan, arguments_note, input_requests, params, reply,
    request_title, unscheduled_requests,
};
use super::secrets::Secrets;
use super::server_requests::{ExpectedRequest, ServerRequestChecker};
use super::updates::Updates;
use crate::client::{Client, ClientBuilder, ClientError, Connecting, Protocol};

/// The path of a value that differs every time.
const VOLATILE: &str = "$.result.nextCursor";

/// At most this many server requests of a session are kept that may arrive at any time.
const MAX_PREVIEWED: usize = 1000;

/// Counts the added and removed server requests of a report, which no update can store in a recording.
pub fn count_changed_server_requests(report: &Report) -> usize {
    report.all_findings().filter(|finding| ServerRequestChecker::is_added_or_removed(finding)).count()
}

/// Sends recorded requests to a live server and compares what it answers; sessions one after the other, each on a
/// connection of its own.
#[derive(Debug)]
pub struct Verification {
    /// The comparison of any two answers.
    pub(super) stable: CallComparison,
    /// This comparison without the paths that the user ignores.
    pub(super) compare: CallComparison,
    pub(super) ignored_paths: IgnoredPaths,
    pub(super) secrets: Secrets,
    pub(super) protocol: Protocol,
    report: Report,
    updates: Updates,
    session: usize,
    /// The number in its file of each session, in the order in which they are checked. Empty if both orders are equal.
    numbers: Vec<usize>,
    pub(super) start: RecordedStart,
    plan: VerificationPlan,
    server_requests: ServerRequestChecker,
    /// The previews of the sessions, by their number from 1.
    previews: Vec<SessionPreview>,
    /// The connection of the session, opened for its first request.
    live: LiveConnection,
    /// Whether the server has answered anything on this connection.
    has_answered: bool,
    unanswered: AnswerStatus,
}

/// What is known about a session before its first request is sent.
#[derive(Debug, Default)]
struct SessionPreview {
    start: RecordedStart,
    /// The server requests that may arrive at any time.
    server_requests: Vec<ExpectedRequest>,
}

#[derive(Debug)]
enum LiveConnection {
    NotYet,
    /// The handshake is pending, or has failed.
    Connecting(Arc<Connecting>),
    Connected(Client),
    /// The connection was lost; the rest of the session is skipped.
    Lost,
}

impl Verification {
    /// Compares the recording `title`; with [`Protocol::Auto`] in the recorded version.
    pub fn new(title: &str, protocol: Protocol) -> Verification {
        let stable = CallComparison::default().ignore(VOLATILE).unwrap_or_default();
        Verification {
            compare: stable.clone(),
            stable,
            ignored_paths: IgnoredPaths::default(),
            secrets: Secrets::default(),
            protocol,
            report: Report::new(title),
            updates: Updates::default(),
            session: 0,
            numbers: Vec::new(),
            start: RecordedStart::default(),
            plan: VerificationPlan::default(),
            server_requests: ServerRequestChecker::default(),
            previews: vec![SessionPreview::default()],
            live: LiveConnection::NotYet,
            has_answered: false,
            unanswered: AnswerStatus::default(),
        }
    }

    /// Ignores the values at a JSONPath of a call, such as `$.result..timestamp`. `Err` is what is wrong with the path.
    pub fn ignore(self, path: &str) -> Result<Verification, String> {
        let (compare, ignored_paths) = (self.compare.ignore(path)?, self.ignored_paths.and(path)?);
        let server_requests = self.server_requests.ignoring(ignored_paths.clone());
        Ok(Verification { compare, ignored_paths, server_requests, ..self })
    }

    /// Accepts any value that fits a matcher at a JSONPath of an answer, instead of the recorded one. `Err` is what is
    /// wrong with the path.
    pub fn matching(self, path: &str, matcher: Matcher) -> Result<Verification, String> {
        let (compare, ignored_paths) = (self.compare.ignore(path)?, self.ignored_paths.and_matched(path, matcher)?);
        let server_requests = self.server_requests.ignoring(ignored_paths.clone());
        Ok(Verification { compare, ignored_paths, server_requests, ..self })
    }

    /// Names sessions by their numbers in the file; `numbers` has them in the order in which the sessions are checked.
    pub fn session_numbers(self, numbers: Vec<usize>) -> Verification {
        Verification { numbers, ..self }
    }

    /// How secrets are redacted before a comparison; by default as in a recording.
    pub fn redaction(self, redaction: Redaction) -> Verification {
        let secrets = Secrets::new(redaction);
        Verification { server_requests: self.server_requests.without(secrets.clone()), secrets, ..self }
    }

    /// Reads the whole recording before anything is sent. The calls of a session decide its handshake, and a request
    /// that a server may send at any time may arrive earlier than in the recording.
    pub fn preview(&mut self, item: &TimelineItem) {
        if let TimelineItem::Start(_) = item {
            self.previews.push(SessionPreview::default());
        }
        let Some(SessionPreview { start, server_requests: known }) = self.previews.last_mut() else { return };
        match item {
            TimelineItem::Call { call, .. } if call.asker == Side::Client => start.add(call),
            TimelineItem::Call { .. }
            | TimelineItem::Start(_)
            | TimelineItem::Entry(_)
            | TimelineItem::Finish { .. } => {}
        }
        known.extend(unscheduled_requests(item).into_iter().take(MAX_PREVIEWED.saturating_sub(known.len())));
    }

    /// Adds the next call or event, and sends the requests that it completes. `server` returns a client for the server, once
    /// for each session. An unreachable server is an error until something was compared, and a finding after that.
    pub async fn check<E>(
        &mut self,
        item: TimelineItem,
        server: &mut impl FnMut() -> Result<ClientBuilder, E>,
    ) -> Result<(), VerifyError<E>> {
        match item {
            TimelineItem::Start(start) => {
                self.session += 1;
                if let Some(calls) = invalid_calls(&start) {
                    let words =
                        format!("session {} has no list in `calls`, so nothing of it is sent: {calls}", self.number());
                    self.report.findings.push(Finding::warning(self.secrets.text(&words)));
                }
                self.plan = VerificationPlan::default();
                let previews = self.previews.get_mut(self.session).map(std::mem::take);
                let SessionPreview { start, server_requests } = previews.unwrap_or_default();
                (self.start, self.has_answered) = (start, false);
                self.server_requests.begin(server_requests);
            }
            TimelineItem::Call { call, inside } if call.asker == Side::Client => {
                self.start.add(&call);
                for step in self.plan.call(*call, &inside) {
                    self.step(step, server).await?;
                }
            }
            TimelineItem::Call { .. } | TimelineItem::Entry(_) => {}
            TimelineItem::Finish { .. } => {
                for step in self.plan.finish() {
                    self.step(step, server).await?;
                }
                self.close().await;
            }
        }
        Ok(())
    }

    /// The number of the current session in its file.
    fn number(&self) -> usize {
        self.session.checked_sub(1).and_then(|index| self.numbers.get(index).copied()).unwrap_or(self.session)
    }

    /// Whether every request so far got an answer.
    pub fn unanswered(&self) -> AnswerStatus {
        self.unanswered
    }

    /// Closes the connection to the server, in any state.
    pub async fn close(&mut self) {
        match std::mem::replace(&mut self.live, LiveConnection::NotYet) {
            LiveConnection::Connecting(connecting) => drop(connecting.close().await),
            LiveConnection::Connected(client) => drop(client.close().await),
            LiveConnection::NotYet | LiveConnection::Lost => {}
        }
    }

    /// The findings, and the live answers.
    pub fn finish(mut self) -> (Report, Updates) {
        if self.has_compared() {
            let written = self.compare.unmet().filter(|path| *path != VOLATILE && !self.ignored_paths.was_used(path));
            let unmet: Vec<String> = written.map(str::to_owned).collect();
            self.report.findings.extend(unmet.iter().map(|path| {
                Finding::warning(format!("{} led to nothing in any answer, recorded or live", self.secrets.text(path)))
            }));
        }
        (self.report, self.updates)
    }

    async fn step<E>(
        &mut self,
        step: PlannedCheck,
        server: &mut impl FnMut() -> Result<ClientBuilder, E>,
    ) -> Result<(), VerifyError<E>> {
        let name = match &step {
            PlannedCheck::Handshake { call } | PlannedCheck::Skipped { call, .. } => {
                request_title(&call.request.message)
            }
            PlannedCheck::List { method, .. } => method.to_string(),
            PlannedCheck::Request { sent, .. } => request_title(&sent.request.message),
        };
        let number = self.number();
        let name = if number > 1 { format!("session {number}: {name}") } else { name };
        if let PlannedCheck::Skipped { reason, .. } = step {
            self.report.cases.push(Case::skipped(name, reason));
            return Ok(());
        }
        let since = Instant::now();
        let client = match self.connected(server).await {
            Ok(Some(client)) => client,
            Ok(None) => {
                self.report.cases.push(Case::skipped(name, "the server was lost"));
                return Ok(());
            }
            Err(VerifyError::Connect { error, .. }) if self.has_compared() => {
                self.live = LiveConnection::Lost;
                let finding = self.unanswered_finding(&error);
                self.report.cases.push(Case::ran(name, since.elapsed()).with(finding));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let arguments = match &step {
            PlannedCheck::Request { sent, .. } => {
                arguments_note(&sent.request.message, |words| self.secrets.text(words))
            }
            PlannedCheck::Handshake { .. } | PlannedCheck::List { .. } | PlannedCheck::Skipped { .. } => None,
        };
        let found = match step {
            PlannedCheck::Skipped { .. } => return Ok(()),
            PlannedCheck::Handshake { call } => match self.introduction(&call, &client) {
                Some(live) => Ok(self.compare_handshake(&call, live, &client)),
                None => {
                    self.report.cases.push(Case::skipped(name, NO_VERSION_NEGOTIATED));
                    return Ok(());
                }
            },
            PlannedCheck::List { method, pages } => self.listed(&method, &pages, &client).await,
            PlannedCheck::Request { sent, answered, server_requests, rounds } => {
                if let Some(reason) = unsupported_reason(&sent, &answered, client.revision()) {
                    self.report.cases.push(Case::skipped(name, reason));
                    return Ok(());
                }
                let mut request = self.request(&sent, server_requests, &client);
                request = rounds.into_iter().fold(request, RequestBuilder::max_input_rounds);
                self.answered(&sent, &answered, request, &client).await
            }
        };
        let mut case = Case::ran(name, since.elapsed());
        match found {
            // Before the first comparison, an unreachable server is an error of the whole verification.
            Err(error) if !self.has_answered && is_unreachable(&error) && !self.has_compared() => {
                return Err(self.unreachable(error));
            }
            Ok(CheckResult { findings, replies, server_requests }) => {
                self.has_answered = true;
                case.findings = findings;
                replies.into_iter().for_each(|(call, reply)| self.updates.put(self.session, &call, reply));
                for (place, params) in server_requests {
                    self.updates.put_server_request(self.session, place, params);
                }
            }
            Err(error) => {
                if matches!(error, ClientError::ServerClosed { .. }) || !self.has_answered && is_unreachable(&error) {
                    self.live = LiveConnection::Lost;
                }
                case.findings = self.server_requests.findings().0;
                case.findings.push(self.unanswered_finding(&error));
            }
        }
        if let (Verdict::Failed, Some(arguments)) = (case.verdict(), arguments) {
            case.findings.insert(0, Finding::note(format!("sent with {arguments}")));
        }
        self.report.cases.push(case);
        Ok(())
    }

    /// Whether an answer was compared already; a later session that cannot start does not discard that.
    fn has_compared(&self) -> bool {
        self.report.cases.iter().any(|case| matches!(case.run, CaseStatus::Ran { .. }))
    }

    fn unanswered_finding(&mut self, error: &ClientError) -> Finding {
        if self.unanswered != AnswerStatus::TimedOut {
            let late = matches!(error, ClientError::TimedOut { .. });
            self.unanswered = if late { AnswerStatus::TimedOut } else { AnswerStatus::SomeUnanswered };
        }
        Finding::error(format!("no answer: {}", self.secrets.text(&error.to_string())))
    }

    fn unreachable<E>(&self, error: ClientError) -> VerifyError<E> {
        VerifyError::Connect { words: self.secrets.text(&error.to_string()), error: Box::new(error) }
    }

    /// The connection of this session; `None` if it was lost.
    async fn connected<E>(
        &mut self,
        server: &mut impl FnMut() -> Result<ClientBuilder, E>,
    ) -> Result<Option<Client>, VerifyError<E>> {
        match &self.live {
            LiveConnection::Connected(client) => return Ok(Some(client.clone())),
            LiveConnection::Lost => return Ok(None),
            LiveConnection::NotYet | LiveConnection::Connecting(_) => {}
        }
        let (protocol, assumed) = self.start.beginning(self.protocol);
        let builder = server().map_err(VerifyError::Setup)?.protocol(protocol).assuming(assumed);
        let builder = builder.map_handlers(|given| self.server_requests.with_recorded_answers(given));
        // A server may behave differently for a client with other capabilities.
        let builder = builder.capabilities(self.start.capabilities());
        let secrets = self.secrets.clone();
        let builder = builder.redact_output(move |words| secrets.text(words));
        let connecting = Arc::new(builder.connecting());
        self.live = LiveConnection::Connecting(connecting.clone());
        let connected = connecting.connect().await;
        if connected.is_err() {
            connecting.close().await;
        }
        let client = connected.map_err(|error| self.unreachable(error))?;
        self.has_answered = client.handshake_reply().is_some();
        self.live = LiveConnection::Connected(client.clone());
        Ok(Some(client))
    }

    /// A recorded request to send again, with the server requests that are expected.
    fn request(&self, sent: &RecordedCall, server_requests: Vec<ExpectedRequest>, client: &Client) -> RequestBuilder {
        self.server_requests.expect(server_requests);
        let method = sent.request.message.method().cloned().unwrap_or(Method::PING);
        // After a handshake, a request that claims a version of the other era does so on purpose.
        let is_claimed = self.protocol == Protocol::Auto && client.revision().has_handshake();
        let claim = if is_claimed { MetaSource::Recorded } else { MetaSource::Ours };
        let (params, wants_progress) = resend_params(params(&sent.request.message), claim);
        let request = client.request(method, params);
        if wants_progress { request.with_progress() } else { request }
    }

    /// Sends a request again, and compares the answer.
    async fn answered(
        &self,
        sent: &RecordedCall,
        answered: &RecordedCall,
        request: RequestBuilder,
        client: &Client,
    ) -> Result<CheckResult, ClientError> {
        let live = reply_of(&request.await?)?;
        let mut found = self.check_reply(sent, answered, &live, client);
        let is_open = |reply: &Reply| input_requests(reply).is_some();
        if reply(answered).as_ref().is_some_and(is_open) && is_open(&live) {
            // The server still requires input. Its input requests are compared separately, and its state differs every
            // time.
            found = CheckResult::default();
        }
        let (mut findings, server_requests) = self.server_requests.findings();
        if findings.iter().any(ServerRequestChecker::is_added_or_removed) {
            // A result that follows an added or a removed server request is not stored in the recording.
            found.replies.clear();
        }
        findings.append(&mut found.findings);
        Ok(CheckResult { findings, server_requests, ..found })
    }
}

/// Why a recording could not be sent again.
#[derive(thiserror::Error)]
pub enum VerifyError<E> {
    /// The client for the server could not be configured.
    #[error(transparent)]
    Setup(E),
    /// The server could not be started or reached.
    #[error("{words}")]
    Connect {
        /// Why not, without secrets.
        words: String,
        /// The error with its unredacted text.
        error: Box<ClientError>,
    },
}

impl<E: std::error::Error> std::fmt::Debug for VerifyError<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// Whether every request was answered in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerStatus {
    /// Every request was answered.
    #[default]
    AllAnswered,
    /// An answer was garbled, or the server was lost.
    SomeUnanswered,
    /// A request was not answered in time.
    TimedOut,
}

/// Whether the server cannot be reached.
pub(super) fn is_unreachable(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::ServerClosed { .. }
            | ClientError::Refused { .. }
            | ClientError::NotAuthorized { .. }
            | ClientError::StreamBroken { .. }
    )
}
