//! A queue of responses for each test case.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::ARGUMENT;
use super::directive::{Directives, HarnessError, check_id, decode};
use super::response::{QueuedResponse, responses};
use crate::json::JsonType;
use crate::suggest::closest;

/// Number of locks for the queues, so that test cases do not wait for each other.
const SHARDS: usize = 64;

/// The limits of a harness.
#[derive(Clone, Copy, Debug)]
pub struct HarnessLimits {
    /// Maximum number of test cases. Beyond it, the least recently used of the empty queues are removed.
    pub queues: usize,
    /// Maximum number of responses of one test case.
    pub responses: usize,
    /// Maximum number of bytes of JSON of one test case.
    pub bytes: usize,
    /// Maximum number of bytes of JSON of all test cases together.
    pub all_bytes: usize,
    /// How long a test case is kept after its last use, if others need its room.
    pub age: Duration,
}

impl Default for HarnessLimits {
    fn default() -> HarnessLimits {
        let age = Duration::from_secs(60 * 60);
        let mebibyte = 1024 * 1024;
        HarnessLimits { queues: 10_000, responses: 10_000, bytes: 16 * mebibyte, all_bytes: 512 * mebibyte, age }
    }
}

/// All test cases of a harness. The caller passes times in milliseconds since a moment of its choice.
#[derive(Debug)]
pub struct Harness {
    limits: HarnessLimits,
    shards: Vec<Mutex<HashMap<Arc<str>, Queue>>>,
    count: AtomicUsize,
    bytes: AtomicUsize,
}

#[derive(Debug)]
struct Queue {
    left: VecDeque<Arc<QueuedResponse>>,
    given: usize,
    /// The number of calls, including those that found the queue empty.
    calls: usize,
    /// The hash of its directive; `None` if it was loaded in another way, and then no directive is compared with it.
    directive: Option<u64>,
    /// The length of its JSON.
    bytes: usize,
    used_ms: u64,
}

/// The response to a call.
#[derive(Clone, Debug)]
pub struct TakenResponse {
    /// The test case.
    pub test_case: Arc<str>,
    /// Its number in the queue, from 1.
    pub number: usize,
    /// The response.
    pub response: Arc<QueuedResponse>,
}

/// The current state of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueView {
    /// The test case.
    pub test_case: Arc<str>,
    /// How many responses were returned.
    pub given: usize,
    /// How many are left.
    pub left: usize,
    /// The number of calls; more than `given` if the queue was empty at times.
    pub calls: usize,
    /// The responses that are left, in order.
    pub responses: Vec<Arc<QueuedResponse>>,
}

impl Default for Harness {
    fn default() -> Harness {
        Harness::new(HarnessLimits::default())
    }
}

impl Harness {
    /// Creates a harness without test cases.
    pub fn new(limits: HarnessLimits) -> Harness {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Harness { limits, shards, count: AtomicUsize::new(0), bytes: AtomicUsize::new(0) }
    }

    /// Answers a call of the tool with the next response of its test case.
    pub fn call(&self, arguments: &Value, now_ms: u64) -> Result<TakenResponse, HarnessError> {
        let Some(text) = arguments.get(ARGUMENT).and_then(Value::as_str) else {
            let found = arguments
                .get(ARGUMENT)
                .map_or("missing".to_owned(), |it| format!("of type {}", JsonType::from_value(it)));
            return Err(HarnessError::NoText { found });
        };
        let directives = Directives::read(text)?;
        if let Some(base64) = directives.responses {
            self.configure(directives.test_case, base64, now_ms)?;
        }
        self.take(directives.test_case, now_ms)
    }

    /// Creates the queue of a directive, unless it exists.
    fn configure(&self, test_case: &str, base64: &str, now_ms: u64) -> Result<(), HarnessError> {
        let directive = hash(base64);
        if let Some(queue) = self.shard(test_case).get(test_case) {
            return match queue.directive {
                Some(known) if known != directive => {
                    Err(HarnessError::DifferentResponses { test_case: test_case.to_owned() })
                }
                Some(_) | None => Ok(()),
            };
        }
        // Parsing takes time, so no lock is held; of several calls for one test case the first to finish creates the
        // queue.
        let json = decode(test_case, base64)?;
        let queue = self.queue(test_case, &json, Some(directive), now_ms)?;
        match self.insert(test_case, queue, now_ms, OnExisting::Keep)? {
            Some(known) if known != directive => {
                Err(HarnessError::DifferentResponses { test_case: test_case.to_owned() })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Loads responses, a JSON list, in place of the test case's queue.
    pub fn load(&self, test_case: &str, json: &[u8], now_ms: u64) -> Result<QueueView, HarnessError> {
        check_id(test_case)?;
        let queue = self.queue(test_case, json, None, now_ms)?;
        let view = queue.view(test_case.into());
        self.insert(test_case, queue, now_ms, OnExisting::Replace)?;
        Ok(view)
    }

    fn queue(&self, test_case: &str, json: &[u8], directive: Option<u64>, now_ms: u64) -> Result<Queue, HarnessError> {
        let HarnessLimits { bytes, responses: most, .. } = self.limits;
        let too_much = |what| Err(HarnessError::LimitExceeded { what });
        if json.len() > bytes {
            let length = json.len();
            return too_much(format!(
                "the responses of test case {test_case:?} have {length} bytes, and the limit is {bytes}"
            ));
        }
        let left: VecDeque<_> = responses(test_case, json)?.into_iter().map(Arc::new).collect();
        if left.len() > most {
            let length = left.len();
            return too_much(format!("test case {test_case:?} has {length} responses, and the limit is {most}"));
        }
        Ok(Queue { left, given: 0, calls: 0, directive, bytes: json.len(), used_ms: now_ms })
    }

    /// Inserts a queue. If an existing one is kept, its directive is returned.
    fn insert(
        &self,
        test_case: &str,
        queue: Queue,
        now_ms: u64,
        existing: OnExisting,
    ) -> Result<Option<u64>, HarnessError> {
        if !self.has_room(queue.bytes) {
            self.make_room(now_ms);
        }
        let mut shard = self.shard(test_case);
        match shard.entry(test_case.into()) {
            Entry::Occupied(occupied) if existing == OnExisting::Keep => return Ok(occupied.get().directive),
            Entry::Occupied(_) => {}
            Entry::Vacant(_) if self.has_room(queue.bytes) => {}
            Entry::Vacant(_) => {
                let count = self.count.load(Ordering::Relaxed);
                let what = format!(
                    "{count} test cases are under way, and there is no room for another; delete some, or wait until they are done"
                );
                return Err(HarnessError::LimitExceeded { what });
            }
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(queue.bytes, Ordering::Relaxed);
        if let Some(old) = shard.insert(test_case.into(), queue) {
            self.subtract(&old);
        }
        Ok(None)
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.count.load(Ordering::Relaxed) < self.limits.queues
            && self.bytes.load(Ordering::Relaxed).saturating_add(bytes) <= self.limits.all_bytes
    }

    fn subtract(&self, queue: &Queue) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(queue.bytes, Ordering::Relaxed);
    }

    /// Removes the queues that are too old, and then a quarter of the empty ones, the oldest first.
    fn make_room(&self, now_ms: u64) {
        let age = u64::try_from(self.limits.age.as_millis()).unwrap_or(u64::MAX);
        let mut done: Vec<(u64, Arc<str>)> = Vec::new();
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let old = shard.extract_if(|_, queue| now_ms.saturating_sub(queue.used_ms) >= age);
            old.for_each(|(_, queue)| self.subtract(&queue));
            let spent = shard.iter().filter(|(_, queue)| queue.left.is_empty());
            done.extend(spent.map(|(test_case, queue)| (queue.used_ms, test_case.clone())));
        }
        done.sort();
        for (_, test_case) in done.iter().take(done.len().div_ceil(4)) {
            self.remove(test_case);
        }
    }

    /// Returns the next response of a test case whose responses were loaded.
    pub fn take(&self, test_case: &str, now_ms: u64) -> Result<TakenResponse, HarnessError> {
        let mut shard = self.shard(test_case);
        let Some((name, queue)) = shard.get_key_value(test_case).map(|(name, _)| name.clone()).and_then(|name| {
            let queue = shard.get_mut(test_case)?;
            Some((name, queue))
        }) else {
            drop(shard);
            return Err(self.unknown(test_case));
        };
        queue.used_ms = now_ms;
        queue.calls += 1;
        match queue.left.pop_front() {
            Some(response) => {
                queue.given += 1;
                Ok(TakenResponse { test_case: name, number: queue.given, response })
            }
            None => {
                Err(HarnessError::QueueEmpty { test_case: test_case.to_owned(), total: queue.given, call: queue.calls })
            }
        }
    }

    fn unknown(&self, test_case: &str) -> HarnessError {
        let known: Vec<_> = self.names();
        let meant = closest(test_case, known.iter().map(|name| &**name));
        let meant = meant.map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default();
        HarnessError::Unknown { test_case: test_case.to_owned(), meant }
    }

    /// The names of all test cases, sorted.
    pub fn names(&self) -> Vec<Arc<str>> {
        let names = |shard: &Mutex<HashMap<Arc<str>, Queue>>| {
            shard.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect::<Vec<_>>()
        };
        let mut all: Vec<_> = self.shards.iter().flat_map(names).collect();
        all.sort();
        all
    }

    /// The current state of a queue.
    pub fn view(&self, test_case: &str) -> Option<QueueView> {
        self.shard(test_case).get_key_value(test_case).map(|(name, queue)| queue.view(name.clone()))
    }

    /// Removes a test case; returns whether it existed.
    pub fn remove(&self, test_case: &str) -> bool {
        let removed = self.shard(test_case).remove(test_case);
        if let Some(queue) = &removed {
            self.subtract(queue);
        }
        removed.is_some()
    }

    /// Removes every test case.
    pub fn clear(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.drain().for_each(|(_, queue)| self.subtract(&queue));
        }
    }

    fn shard(&self, test_case: &str) -> MutexGuard<'_, HashMap<Arc<str>, Queue>> {
        let at = usize::try_from(hash(test_case) % SHARDS as u64).unwrap_or_default();
        self.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an existing queue is kept or replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnExisting {
    Keep,
    Replace,
}

impl Queue {
    fn view(&self, test_case: Arc<str>) -> QueueView {
        let responses: Vec<_> = self.left.iter().cloned().collect();
        QueueView { test_case, given: self.given, left: responses.len(), calls: self.calls, responses }
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::harness::ResponseBody;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    fn task(test_case: &str, responses: &Value) -> Value {
        let base64 = STANDARD.encode(responses.to_string());
        json!({ARGUMENT: format!("do it [test_case_id={test_case}] [mcp_responses_json={base64}]")})
    }

    fn text(taken: &TakenResponse) -> String {
        match &taken.response.body {
            ResponseBody::Result(result) => result["content"][0]["text"].as_str().unwrap().to_owned(),
            ResponseBody::Error(error) => error.to_string(),
        }
    }

    #[test]
    fn every_call_takes_the_next_response_and_the_same_directive_changes_nothing() {
        let harness = Harness::default();
        let task = task("a", &json!([{"text": "one"}, {"text": "two"}]));
        assert_eq!(text(&harness.call(&task, 0).unwrap()), "one");
        assert_eq!(text(&harness.call(&task, 1).unwrap()), "two");
        let error = harness.call(&task, 2).unwrap_err().to_string();
        assert_eq!(error, "no response is left for test case \"a\": all 2 were used, and this is call 3");
        let later = json!({ARGUMENT: "and now? [test_case_id=a]"});
        assert!(harness.call(&later, 3).unwrap_err().to_string().contains("this is call 4"));
        let view = harness.view("a").unwrap();
        assert_eq!((view.given, view.left, view.calls), (2, 0, 4));
    }

    #[test]
    fn another_directive_for_the_same_test_case_is_refused() {
        let harness = Harness::default();
        harness.call(&task("a", &json!([{"text": "one"}, {"text": "two"}])), 0).unwrap();
        let error = harness.call(&task("a", &json!([{"text": "other"}])), 0).unwrap_err();
        assert!(error.to_string().contains("has other responses already"), "{error}");
        assert_eq!(text(&harness.take("a", 0).unwrap()), "two", "nothing was lost");
        assert!(harness.remove("a"));
        assert_eq!(text(&harness.call(&task("a", &json!([{"text": "other"}])), 0).unwrap()), "other");
    }

    #[test]
    fn loaded_responses_override_the_directive() {
        let harness = Harness::default();
        harness.load("a", br#"[{"text": "loaded"}, {"text": "more"}]"#, 0).unwrap();
        assert_eq!(text(&harness.call(&json!({ARGUMENT: "[test_case_id=a]"}), 0).unwrap()), "loaded");
        assert_eq!(text(&harness.call(&task("a", &json!([{"text": "smuggled"}])), 0).unwrap()), "more");
        harness.load("a", br#"[{"text": "again"}]"#, 0).unwrap();
        assert_eq!(text(&harness.take("a", 0).unwrap()), "again");
    }

    #[test]
    fn a_call_without_a_response_gets_an_error_with_the_reason() {
        let harness = Harness::default();
        harness.load("weather_1", b"[]", 0).unwrap();
        let table = [
            (json!({}), "must be text with [test_case_id=ID] in it, and it is missing"),
            (json!({ARGUMENT: 5}), "and it is of type integer"),
            (
                json!({ARGUMENT: "[test_case_id=wether_1]"}),
                "no responses for test case \"wether_1\"; did you mean \"weather_1\"?",
            ),
            (json!({ARGUMENT: "[test_case_id=b] [mcp_responses_json=!!]"}), "is not base64"),
            (json!({ARGUMENT: "[test_case_id=b] [mcp_responses_json=bm8=]"}), "are not JSON"),
            (json!({ARGUMENT: "[test_case_id=weather_1]"}), "all 0 were used"),
        ];
        for (arguments, expected) in table {
            let error = harness.call(&arguments, 0).unwrap_err().to_string();
            assert!(error.contains(expected), "{arguments}: {error}");
        }
        assert_eq!(harness.names(), ["weather_1".into()], "a failed call creates no queue");
    }

    #[test]
    fn only_finished_and_expired_test_cases_are_removed_for_others() {
        let limits = HarnessLimits { queues: 4, age: Duration::from_secs(1), ..HarnessLimits::default() };
        let harness = Harness::new(limits);
        for name in ["a", "b", "c", "d"] {
            harness.load(name, br#"[{"text": "x"}]"#, 0).unwrap();
        }
        let error = harness.load("e", b"[]", 10).unwrap_err().to_string();
        assert!(error.contains("4 test cases are under way"), "{error}");
        harness.take("b", 20).unwrap();
        harness.load("e", br#"[{"text": "x"}]"#, 30).unwrap();
        assert_eq!(harness.names(), ["a".into(), "c".into(), "d".into(), "e".into()], "b was done");
        harness.load("f", b"[]", 1025).unwrap();
        assert_eq!(harness.names(), ["e".into(), "f".into()], "the others were not used for too long");
        harness.clear();
        assert_eq!(harness.names().len(), 0);
        for name in ["a", "b", "c", "d"] {
            harness.load(name, b"[]", 2000).unwrap();
        }
    }

    #[test]
    fn too_many_responses_and_bytes_are_refused() {
        let harness = Harness::new(HarnessLimits { responses: 1, bytes: 40, ..HarnessLimits::default() });
        let error = harness.load("a", br#"[{"text":"x"},{"text":"x"}]"#, 0).unwrap_err();
        assert!(error.to_string().contains("has 2 responses, and the limit is 1"), "{error}");
        let harness_of_little = Harness::new(HarnessLimits { all_bytes: 30, ..HarnessLimits::default() });
        harness_of_little.load("a", br#"[{"text":"0123456789"}]"#, 0).unwrap();
        assert!(harness_of_little.load("b", br#"[{"text":"0123456789"}]"#, 0).is_err(), "all together are too long");
        harness_of_little.remove("a");
        assert!(harness_of_little.load("b", br#"[{"text":"0123456789"}]"#, 0).is_ok());
        let error = harness.load("a", br#"[{"text":"0123456789012345678901234567890123456789"}]"#, 0).unwrap_err();
        assert!(error.to_string().contains("bytes, and the limit is 40"), "{error}");
    }

    #[test]
    fn a_thousand_test_cases_at_once_never_see_each_others_responses() {
        let harness = Harness::default();
        std::thread::scope(|scope| {
            for worker in 0..8 {
                let harness = &harness;
                scope.spawn(move || {
                    for round in 0..5 {
                        for case in (worker..1000).step_by(8) {
                            let responses: Vec<_> = (0..5).map(|it| json!({"text": format!("{case}/{it}")})).collect();
                            let taken = harness.call(&task(&format!("case {case}"), &json!(responses)), 0).unwrap();
                            assert_eq!(text(&taken), format!("{case}/{round}"));
                        }
                    }
                });
            }
        });
        assert_eq!(harness.names().len(), 1000);
    }

    #[test]
    fn one_test_case_from_many_threads_gives_each_response_once() {
        let harness = Harness::default();
        let responses: Vec<_> = (0..800).map(|it| json!({"text": it.to_string()})).collect();
        let task = task("a", &json!(responses));
        let mut given: Vec<usize> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        (0..100)
                            .map(|_| text(&harness.call(&task, 0).unwrap()).parse().unwrap())
                            .collect::<Vec<usize>>()
                    })
                })
                .collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
        });
        given.sort_unstable();
        assert_eq!(given, (0..800).collect::<Vec<_>>());
    }
}
