//! A recording, sent again.

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
use super::passed_over::IgnoredPaths;
use super::plan::{
    AGREED_ON_NOTHING, Plan, PlannedCheck, arguments_note, input_requests, params, reply, request_title,
    unscheduled_requests,
};
use super::plan::{MetaSource, resend_params, unsupported_reason};
use super::questions::{ExpectedRequest, ServerRequestChecker};
use super::secrets::Secrets;
use super::updates::Updates;
use crate::client::{Client, ClientBuilder, ClientError, Connecting, Protocol};

/// What differs from one time to the next.
const VOLATILE: &str = "$.result.nextCursor";

/// At most this many server requests of a session are kept that may arrive at any time.
const MAX_PREVIEWED: usize = 1000;

/// The number of added or removed server requests, which no update can store in a recording.
pub fn changed_questions(report: &Report) -> usize {
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
    pub(super) passed_over: IgnoredPaths,
    pub(super) secrets: Secrets,
    pub(super) protocol: Protocol,
    report: Report,
    updates: Updates,
    session: usize,
    /// The number in its file of each session, in the order in which they are checked. Empty if both orders are equal.
    numbers: Vec<usize>,
    pub(super) opening: RecordedStart,
    plan: Plan,
    questions: ServerRequestChecker,
    /// Of each session, by its number from 1.
    foreseen: Vec<SessionPreview>,
    /// The connection of the session, once something was to be sent.
    live: LiveConnection,
    /// Whether the server has sent anything on it.
    heard: bool,
    unanswered: AnswerStatus,
}

/// What is known of a session before anything of it is sent.
#[derive(Debug, Default)]
struct SessionPreview {
    opening: RecordedStart,
    /// The server requests that may arrive at any time.
    questions: Vec<ExpectedRequest>,
}

#[derive(Debug)]
enum LiveConnection {
    NotYet,
    /// The handshake is under way, or has failed.
    Connecting(Arc<Connecting>),
    Connected(Client),
    /// It was lost; the rest of the session cannot be found out.
    Gone,
}

impl Verification {
    /// Compares what `title` has recorded, in the recorded version where `protocol` leaves that open.
    pub fn new(title: &str, protocol: Protocol) -> Verification {
        let stable = CallComparison::default().ignore(VOLATILE).unwrap_or_default();
        Verification {
            compare: stable.clone(),
            stable,
            passed_over: IgnoredPaths::default(),
            secrets: Secrets::default(),
            protocol,
            report: Report::new(title),
            updates: Updates::default(),
            session: 0,
            numbers: Vec::new(),
            opening: RecordedStart::default(),
            plan: Plan::default(),
            questions: ServerRequestChecker::default(),
            foreseen: vec![SessionPreview::default()],
            live: LiveConnection::NotYet,
            heard: false,
            unanswered: AnswerStatus::default(),
        }
    }

    /// Ignores the values at a JSONPath of a call, such as `$.result..timestamp`. `Err` is what is wrong with the path.
    pub fn ignore(self, path: &str) -> Result<Verification, String> {
        let (compare, passed_over) = (self.compare.ignore(path)?, self.passed_over.and(path)?);
        let questions = self.questions.passing_over(passed_over.clone());
        Ok(Verification { compare, passed_over, questions, ..self })
    }

    /// Accepts any value that fits a matcher at a JSONPath of an answer, instead of the recorded one. `Err` is what is
    /// wrong with the path.
    pub fn matching(self, path: &str, matcher: Matcher) -> Result<Verification, String> {
        let (compare, passed_over) = (self.compare.ignore(path)?, self.passed_over.and_matched(path, matcher)?);
        let questions = self.questions.passing_over(passed_over.clone());
        Ok(Verification { compare, passed_over, questions, ..self })
    }

    /// Names sessions by their numbers in the file; `numbers` has them in the order in which the sessions are checked.
    pub fn session_numbers(self, numbers: Vec<usize>) -> Verification {
        Verification { numbers, ..self }
    }

    /// How secrets are redacted before a comparison; by default as in a recording.
    pub fn redaction(self, redaction: Redaction) -> Verification {
        let secrets = Secrets::of(redaction);
        Verification { questions: self.questions.without(secrets.clone()), secrets, ..self }
    }

    /// Reads the whole recording before anything is sent. The calls of a session decide its handshake, and a request
    /// that a server may send at any time may arrive earlier than in the recording.
    pub fn preview(&mut self, moment: &TimelineItem) {
        if let TimelineItem::Start(_) = moment {
            self.foreseen.push(SessionPreview::default());
        }
        let Some(SessionPreview { opening, questions: known }) = self.foreseen.last_mut() else { return };
        match moment {
            TimelineItem::Call { call, .. } if call.asker == Side::Client => opening.add(call),
            TimelineItem::Call { .. }
            | TimelineItem::Start(_)
            | TimelineItem::Entry(_)
            | TimelineItem::Finish { .. } => {}
        }
        known.extend(unscheduled_requests(moment).into_iter().take(MAX_PREVIEWED.saturating_sub(known.len())));
    }

    /// Takes the next moment, and sends the requests that it completes. `server` returns a client for the server, once
    /// for each session. An unreachable server is an error until something was compared, and a finding after that.
    pub async fn check<E>(
        &mut self,
        moment: TimelineItem,
        server: &mut impl FnMut() -> Result<ClientBuilder, E>,
    ) -> Result<(), VerifyError<E>> {
        match moment {
            TimelineItem::Start(start) => {
                self.session += 1;
                if let Some(calls) = invalid_calls(&start) {
                    let words =
                        format!("session {} has no list in `calls`, so nothing of it is sent: {calls}", self.number());
                    self.report.findings.push(Finding::warning(self.secrets.text(&words)));
                }
                self.plan = Plan::default();
                let foreseen = self.foreseen.get_mut(self.session).map(std::mem::take);
                let SessionPreview { opening, questions } = foreseen.unwrap_or_default();
                (self.opening, self.heard) = (opening, false);
                self.questions.begin(questions);
            }
            TimelineItem::Call { call, inside } if call.asker == Side::Client => {
                self.opening.add(&call);
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

    /// Whether everything was answered so far.
    pub fn unanswered(&self) -> AnswerStatus {
        self.unanswered
    }

    /// Closes the connection to the server, in any state.
    pub async fn close(&mut self) {
        match std::mem::replace(&mut self.live, LiveConnection::NotYet) {
            LiveConnection::Connecting(connecting) => drop(connecting.close().await),
            LiveConnection::Connected(client) => drop(client.close().await),
            LiveConnection::NotYet | LiveConnection::Gone => {}
        }
    }

    /// What was found, and the live answers.
    pub fn finish(mut self) -> (Report, Updates) {
        if self.has_compared() {
            let written = self.compare.unmet().filter(|path| *path != VOLATILE && !self.passed_over.was_used(path));
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
            PlannedCheck::Request { asked, .. } => request_title(&asked.request.message),
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
                self.live = LiveConnection::Gone;
                let finding = self.unanswered_finding(&error);
                self.report.cases.push(Case::ran(name, since.elapsed()).with(finding));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let arguments = match &step {
            PlannedCheck::Request { asked, .. } => {
                arguments_note(&asked.request.message, |words| self.secrets.text(words))
            }
            PlannedCheck::Handshake { .. } | PlannedCheck::List { .. } | PlannedCheck::Skipped { .. } => None,
        };
        let found = match step {
            PlannedCheck::Skipped { .. } => return Ok(()),
            PlannedCheck::Handshake { call } => match self.introduction(&call, &client) {
                Some(live) => Ok(self.compare_handshake(&call, live, &client)),
                None => {
                    self.report.cases.push(Case::skipped(name, AGREED_ON_NOTHING));
                    return Ok(());
                }
            },
            PlannedCheck::List { method, pages } => self.listed(&method, &pages, &client).await,
            PlannedCheck::Request { asked, answered, questions, rounds } => {
                if let Some(reason) = unsupported_reason(&asked, &answered, client.revision()) {
                    self.report.cases.push(Case::skipped(name, reason));
                    return Ok(());
                }
                let mut request = self.request(&asked, questions, &client);
                request = rounds.into_iter().fold(request, RequestBuilder::max_input_rounds);
                self.answered(&asked, &answered, request, &client).await
            }
        };
        let mut case = Case::ran(name, since.elapsed());
        match found {
            // Before the first comparison, an unreachable server is an error of the whole verification.
            Err(error) if !self.heard && is_unreachable(&error) && !self.has_compared() => {
                return Err(self.unreachable(error));
            }
            Ok(CheckResult { findings, replies, questions }) => {
                self.heard = true;
                case.findings = findings;
                replies.into_iter().for_each(|(call, reply)| self.updates.put(self.session, &call, reply));
                for (place, params) in questions {
                    self.updates.put_question(self.session, place, params);
                }
            }
            Err(error) => {
                if matches!(error, ClientError::ServerClosed { .. }) || !self.heard && is_unreachable(&error) {
                    self.live = LiveConnection::Gone;
                }
                case.findings = self.questions.findings().0;
                case.findings.push(self.unanswered_finding(&error));
            }
        }
        if let (Verdict::Failed, Some(arguments)) = (case.verdict(), arguments) {
            case.findings.insert(0, Finding::note(format!("asked with {arguments}")));
        }
        self.report.cases.push(case);
        Ok(())
    }

    /// Whether there is something to report already, which a session that cannot begin does not take away.
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

    /// The connection of this session; `None` where it was lost.
    async fn connected<E>(
        &mut self,
        server: &mut impl FnMut() -> Result<ClientBuilder, E>,
    ) -> Result<Option<Client>, VerifyError<E>> {
        match &self.live {
            LiveConnection::Connected(client) => return Ok(Some(client.clone())),
            LiveConnection::Gone => return Ok(None),
            LiveConnection::NotYet | LiveConnection::Connecting(_) => {}
        }
        let (protocol, assumed) = self.opening.beginning(self.protocol);
        let builder = server().map_err(VerifyError::Named)?.protocol(protocol).assuming(assumed);
        let builder = builder.map_handlers(|given| self.questions.before(given));
        // A server may behave differently for a client with other capabilities.
        let builder = builder.capabilities(self.opening.capabilities());
        let secrets = self.secrets.clone();
        let builder = builder.redact_output(move |words| secrets.text(words));
        let connecting = Arc::new(builder.connecting());
        self.live = LiveConnection::Connecting(connecting.clone());
        let connected = connecting.connect().await;
        if connected.is_err() {
            connecting.close().await;
        }
        let client = connected.map_err(|error| self.unreachable(error))?;
        self.heard = client.handshake_reply().is_some();
        self.live = LiveConnection::Connected(client.clone());
        Ok(Some(client))
    }

    /// A recorded request to send again, with the server requests that are expected.
    fn request(&self, asked: &RecordedCall, questions: Vec<ExpectedRequest>, client: &Client) -> RequestBuilder {
        self.questions.expect(questions);
        let method = asked.request.message.method().cloned().unwrap_or(Method::PING);
        // After a handshake, a request that claims a version of the other era does so on purpose.
        let is_claimed = self.protocol == Protocol::Auto && client.revision().has_handshake();
        let claim = if is_claimed { MetaSource::Recorded } else { MetaSource::Ours };
        let (params, wants_progress) = resend_params(params(&asked.request.message), claim);
        let request = client.request(method, params);
        if wants_progress { request.with_progress() } else { request }
    }

    /// Sends a request again, and compares the answer.
    async fn answered(
        &self,
        asked: &RecordedCall,
        answered: &RecordedCall,
        request: RequestBuilder,
        client: &Client,
    ) -> Result<CheckResult, ClientError> {
        let live = reply_of(&request.await?)?;
        let mut found = self.check_reply(asked, answered, &live, client);
        let is_open = |reply: &Reply| input_requests(reply).is_some();
        if reply(answered).as_ref().is_some_and(is_open) && is_open(&live) {
            // The server still requires input. Its input requests are compared separately, and its state differs every
            // time.
            found = CheckResult::default();
        }
        let (mut findings, questions) = self.questions.findings();
        if findings.iter().any(ServerRequestChecker::is_added_or_removed) {
            // A result that follows an added or a removed server request is not stored in the recording.
            found.replies.clear();
        }
        findings.append(&mut found.findings);
        Ok(CheckResult { findings, questions, ..found })
    }
}

/// Why a recording could not be sent again.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError<E> {
    /// The server could not be named.
    #[error(transparent)]
    Named(E),
    /// The server could not be started or reached.
    #[error("{words}")]
    Connect {
        /// Why not, without secrets.
        words: String,
        /// The error with its unredacted text.
        error: Box<ClientError>,
    },
}

/// Whether everything was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerStatus {
    /// It was.
    #[default]
    AllAnswered,
    /// Something was answered in a way that cannot be understood, or the server was lost.
    SomeUnanswered,
    /// Something was not answered in time.
    TimedOut,
}

/// Whether nothing is there to answer.
pub(super) fn is_unreachable(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::ServerClosed { .. }
            | ClientError::Refused { .. }
            | ClientError::NotAuthorized { .. }
            | ClientError::StreamBroken { .. }
    )
}
