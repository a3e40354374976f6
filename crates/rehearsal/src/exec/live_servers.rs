//! Answers the calls of one run with the results of servers, in real time.
//!
//! ```text
//! plan ──call──► contract ──► connect, once for each server ──► effect ──► a task that calls the tool
//! plan ◄──deliver── the results that have arrived, or the timer that is due
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rehearsal_sandbox::ErrorKind;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::contract::Contract;
use super::options::{Cancellation, ExecOptions};
use super::report::CacheOutcome;
use super::traced_server::{FinishedCall, RunSettings, TracedServer};
use super::{ExecError, elapsed_ms};
use crate::dry_run::assemble::problem_messages;
use crate::dry_run::call::{AnsweredCall, Answerer, CallCounter, CallEnd, CallProblem, PlannedCall, RunEvent};
use crate::dry_run::catalogue::Servers;
use crate::dry_run::effects::ToolEffect;
use crate::dry_run::live::now_ms;
use crate::dry_run::run::CallKey;
use crate::dry_run::{
    AnswerOrigin, Catalogue, DeclaredEffect, DryRunOptions, Effect, Plan, PlanFinding, PlanPlace, ServerTools,
};

/// The servers of one run.
pub(super) struct LiveServers {
    settings: Arc<RunSettings>,
    effects: BTreeMap<String, DeclaredEffect>,
    expects_read_only: bool,
    contract: Option<Contract>,
    /// The servers that the plan has not called yet.
    unconnected: BTreeMap<String, crate::client::ClientBuilder>,
    connected: BTreeMap<String, Arc<TracedServer>>,
    /// What is known about the tools of the servers.
    servers: Servers,
    /// The tools of the connected servers.
    catalogue: Catalogue,
    runtime: Handle,
    cancellation: Cancellation,
    started: Instant,
    counter: CallCounter,
    calls: Vec<LiveCall>,
    /// The calls without a result.
    open: BTreeSet<usize>,
    tasks: JoinSet<()>,
    sender: UnboundedSender<(usize, FinishedCall)>,
    receiver: UnboundedReceiver<(usize, FinishedCall)>,
    /// Results that have arrived and are not delivered, because a timer was due before.
    arrived: VecDeque<usize>,
    /// The calls of the last delivery.
    delivered: Vec<usize>,
    stop: Option<RunStop>,
    warnings: Vec<String>,
}

/// A call of a real run.
#[derive(Debug)]
pub(super) struct LiveCall {
    pub(super) call: AnsweredCall,
    pub(super) state: LiveCallState,
    /// The rehearsed call that it was held to: an index.
    pub(super) rehearsed: Option<usize>,
}

/// How far a call of a real run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LiveCallState {
    /// The run stopped before it was sent.
    Unsent,
    /// No server was called: it does not exist, or it cannot be reached.
    Refused,
    /// The server works on it.
    Open,
    /// The run was cancelled before its result.
    Cancelled,
    /// It has ended.
    Ended(CacheOutcome),
}

/// Why a run was stopped.
#[derive(Clone, Debug)]
pub(super) enum RunStop {
    /// From outside.
    Cancelled,
    /// Before the call with this index, which was not rehearsed for this reason.
    Deviated(usize, String),
    /// Before the call with this index, which changes something.
    SideEffect(usize),
}

/// What a run leaves behind.
pub(super) struct LiveRun {
    pub(super) calls: Vec<LiveCall>,
    pub(super) stop: Option<RunStop>,
    pub(super) contract: Option<Contract>,
    pub(super) catalogue: Catalogue,
    pub(super) settings: Arc<RunSettings>,
    pub(super) warnings: Vec<String>,
    pub(super) findings: Vec<PlanFinding>,
    pub(super) duration_ms: f64,
    /// Whether everything is in the trace.
    pub(super) is_traced: bool,
}

impl LiveServers {
    pub(super) fn new(
        plan: &Plan,
        options: ExecOptions,
        contract: Option<Contract>,
        runtime: Handle,
    ) -> Result<LiveServers, ExecError> {
        let mut known = Catalogue::default();
        for name in options.servers.keys() {
            known.insert(name, ServerTools::Unavailable { reason: "it was not called".to_owned() });
        }
        let servers = Servers::new(&DryRunOptions::new(known))?;
        let settings = RunSettings {
            cache: options.cache,
            not_cached: options.not_cached,
            trace: options.trace,
            redaction: options.redaction,
            timeout: options.timeout,
            plan: plan.clone(),
        };
        let (sender, receiver) = unbounded_channel();
        Ok(LiveServers {
            settings: Arc::new(settings),
            effects: options.effects,
            expects_read_only: options.expects_read_only,
            contract,
            unconnected: options.servers,
            connected: BTreeMap::new(),
            servers,
            catalogue: Catalogue::default(),
            runtime,
            cancellation: options.cancellation,
            started: Instant::now(),
            counter: CallCounter::default(),
            calls: Vec::new(),
            open: BTreeSet::new(),
            tasks: JoinSet::new(),
            sender,
            receiver,
            arrived: VecDeque::new(),
            delivered: Vec::new(),
            stop: None,
            warnings: Vec::new(),
        })
    }

    /// Ends the run: waits for open calls, unless the run was cancelled, and closes the servers.
    pub(super) fn finish(mut self) -> LiveRun {
        self.wait_for_open_calls();
        let duration_ms = self.now_ms();
        self.tasks.abort_all();
        let connected = std::mem::take(&mut self.connected);
        let is_traced = self.runtime.block_on(async {
            let mut closing = JoinSet::new();
            for server in connected.into_values() {
                closing.spawn(async move { server.close().await });
            }
            closing.join_all().await.into_iter().all(|complete| complete)
        });
        let declared = self.effects.iter().filter(|(name, _)| {
            // Only connected servers are known.
            name.split_once(':').is_some_and(|(server, _)| self.catalogue.servers().any(|(known, _)| known == server))
        });
        let declared = declared.map(|(name, effect)| (name.clone(), *effect)).collect();
        LiveRun {
            findings: self.servers.unknown_declarations(&declared),
            calls: self.calls,
            stop: self.stop,
            contract: self.contract,
            catalogue: self.catalogue,
            settings: self.settings,
            warnings: self.warnings,
            duration_ms,
            is_traced,
        }
    }

    /// Waits until no call is open. A call that was sent has an effect, so its result belongs to the report.
    fn wait_for_open_calls(&mut self) {
        while !self.open.is_empty() {
            if !self.wait_for_result(None) {
                break;
            }
        }
        for index in std::mem::take(&mut self.open) {
            self.calls[index].state = LiveCallState::Cancelled;
            self.calls[index].call.ended_ms = elapsed_ms(self.started);
        }
    }

    /// Waits for a result, and takes all that have arrived. Returns false if the timer is due or the run was cancelled before.
    fn wait_for_result(&mut self, due: Option<Duration>) -> bool {
        let deadline = due.and_then(|due| self.started.checked_add(due)).map(tokio::time::Instant::from_std);
        let timer = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let (receiver, cancellation, has_open) = (&mut self.receiver, &self.cancellation, !self.open.is_empty());
        let finished = self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = cancellation.cancelled() => None,
                finished = receiver.recv(), if has_open => finished,
                () = timer => None,
            }
        });
        let Some((index, call)) = finished else { return false };
        self.end(index, call);
        while let Ok((index, call)) = self.receiver.try_recv() {
            self.end(index, call);
        }
        true
    }

    fn end(&mut self, index: usize, finished: FinishedCall) {
        self.open.remove(&index);
        self.arrived.push_back(index);
        let now_ms = elapsed_ms(self.started);
        let live = &mut self.calls[index];
        live.call.end = finished.end;
        live.call.ended_ms = now_ms;
        if live.state == LiveCallState::Open {
            live.call.latency_ms = Some(finished.took_ms);
            live.state = LiveCallState::Ended(finished.cache);
        }
    }

    /// Connects to servers at the same time, and lists their tools.
    fn connect(&mut self, names: &BTreeSet<&str>) {
        let mut connecting = JoinSet::new();
        for name in names {
            let Some(builder) = self.unconnected.remove(*name) else { continue };
            let (name, settings) = ((*name).to_owned(), self.settings.clone());
            let connected = async move { (name.clone(), TracedServer::connect(name, builder, settings).await) };
            connecting.spawn_on(connected, &self.runtime);
        }
        let cancellation = self.cancellation.clone();
        while !connecting.is_empty() {
            let connected = self.runtime.block_on(async {
                tokio::select! {
                    biased;
                    () = cancellation.cancelled() => None,
                    connected = connecting.join_next() => connected,
                }
            });
            let Some(connected) = connected else {
                // Dropping the set ends the servers.
                self.stop = Some(RunStop::Cancelled);
                return;
            };
            let Ok((name, connected)) = connected else { continue };
            let listed = match connected {
                Ok((server, tools)) => {
                    self.connected.insert(name.clone(), Arc::new(server));
                    self.save_tools(&name, &tools);
                    ServerTools::Known { tools, saved_ms: None }
                }
                Err(error) => ServerTools::Unavailable { reason: error.to_string() },
            };
            // Without a cache, nothing can fail.
            let _ = self.servers.connect(&name, &listed, &self.effects);
            self.catalogue.insert(name, listed);
        }
    }

    fn save_tools(&mut self, name: &str, tools: &[Value]) {
        let Some(cache) = &self.settings.cache else { return };
        if let Err(error) = cache.save_catalogue(name, tools, now_ms()) {
            self.warnings.push(format!("the tools of {name} are not stored: {error}"));
        }
    }

    /// Decides whether a call is made, and sends it.
    fn send(&mut self, index: usize) {
        let PlannedCall { server, tool, arguments, .. } = self.calls[index].call.call.clone();
        if let Some(contract) = &mut self.contract {
            match contract.admit(&self.calls[index].call.call) {
                Ok(rehearsed) => self.calls[index].rehearsed = Some(rehearsed),
                Err(reason) => {
                    self.stop = Some(RunStop::Deviated(index, reason));
                    return;
                }
            }
        }
        self.connect(&BTreeSet::from([server.as_str()]));
        if self.stop.is_some() {
            return;
        }
        let (found, problem) = self.servers.check(&server, &tool);
        let effect = found.map_or_else(ToolEffect::unknown, |tool| tool.effect.clone());
        let is_read = effect.effect == Effect::Read;
        self.calls[index].call.effect = effect;
        if let Some(problem) = problem {
            self.refuse(index, problem);
            return;
        }
        if self.expects_read_only && !is_read {
            self.stop = Some(RunStop::SideEffect(index));
            return;
        }
        let Some(connected) = self.connected.get(&server).cloned() else { return };
        self.calls[index].state = LiveCallState::Open;
        self.open.insert(index);
        let sender = self.sender.clone();
        let call = async move {
            let finished = connected.call(tool, arguments).await;
            // The run has ended if its receiver is closed.
            let _ = sender.send((index, finished));
        };
        self.tasks.spawn_on(call, &self.runtime);
    }

    /// Ends a call that has no server to send it to.
    fn refuse(&mut self, index: usize, problem: CallProblem) {
        let live = &mut self.calls[index];
        let (server, name) = (live.call.call.server.clone(), live.call.name());
        let message = match &problem {
            CallProblem::UnknownCatalogue { reason } => format!("cannot connect to {server}: {reason}"),
            CallProblem::MissingServer { .. } | CallProblem::MissingTool { .. } | CallProblem::Arguments(_) => {
                let messages = problem_messages(&server, &name, &problem);
                messages.into_iter().map(|(_, message, _)| message).next().unwrap_or_default()
            }
        };
        live.call.problem = Some(problem);
        live.state = LiveCallState::Refused;
        self.open.insert(index);
        let end = CallEnd::Error { kind: ErrorKind::Protocol, message, content: Value::Null };
        let refused = FinishedCall { end, took_ms: 0.0, cache: CacheOutcome::NoReply };
        // The receiver is in `self`.
        let _ = self.sender.send((index, refused));
    }
}

impl Answerer for LiveServers {
    fn prepare(&mut self, servers: &BTreeSet<&str>) {
        // A contract decides first whether the calls are made at all.
        let is_known = |server: &&&str| self.contract.as_ref().is_none_or(|contract| contract.has_server(server));
        let servers: BTreeSet<&str> = servers.iter().filter(is_known).copied().collect();
        if self.stop.is_none() {
            self.connect(&servers);
        }
    }

    fn next_key(&mut self, server: &str, tool: &str, place: Option<&PlanPlace>) -> CallKey {
        self.counter.next_key(server, tool, place)
    }

    fn call(&mut self, call: PlannedCall, _: f64) -> usize {
        let index = self.calls.len();
        let waits_for = call.after.clone().unwrap_or_else(|| self.delivered.clone());
        let call = AnsweredCall {
            call,
            end: CallEnd::Value(Value::Null),
            origin: AnswerOrigin::Live,
            cached_ms: None,
            stale: None,
            remarks: Vec::new(),
            problem: None,
            unchecked: None,
            effect: ToolEffect::unknown(),
            latency_ms: None,
            latency_varies: false,
            started_ms: 0.0,
            ended_ms: 0.0,
            waits_for,
        };
        self.calls.push(LiveCall { call, state: LiveCallState::Unsent, rehearsed: None });
        if self.stop.is_none() {
            self.send(index);
        }
        // After the connection, whose time is not that of the call.
        let now_ms = elapsed_ms(self.started);
        self.calls[index].call.started_ms = now_ms;
        self.calls[index].call.ended_ms = now_ms;
        index
    }

    fn advance(&mut self, timer_ms: Option<f64>) -> RunEvent {
        if self.cancellation.is_cancelled() {
            self.stop.get_or_insert(RunStop::Cancelled);
        }
        if self.stop.is_some() {
            return RunEvent::Nothing;
        }
        let due = timer_ms.map(|timer| Duration::try_from_secs_f64(timer.max(0.0) / 1000.0).unwrap_or(Duration::MAX));
        let is_due = |started: Instant| due.is_some_and(|due| started.elapsed() >= due);
        if self.arrived.is_empty() && !is_due(self.started) {
            if self.open.is_empty() && due.is_none() {
                return RunEvent::Nothing;
            }
            self.wait_for_result(due);
            if self.cancellation.is_cancelled() {
                self.stop = Some(RunStop::Cancelled);
                return RunEvent::Nothing;
            }
        }
        // The time of the plan never goes back, so a timer that was due before comes first.
        if is_due(self.started) || self.arrived.is_empty() {
            return RunEvent::Timer;
        }
        let calls: Vec<usize> = self.arrived.drain(..).collect();
        self.delivered.clone_from(&calls);
        RunEvent::Delivered { now_ms: elapsed_ms(self.started), calls }
    }

    fn now_ms(&self) -> f64 {
        elapsed_ms(self.started)
    }

    fn get(&self, index: usize) -> &AnsweredCall {
        &self.calls[index].call
    }
}
