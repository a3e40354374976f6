//! Workers that are ready before they are needed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::start::{Program, SandboxError, Worker};

/// How many unused workers a pool keeps.
const UNUSED: usize = 2;

/// Keeps two unused workers. Each plan gets a process of its own, and a new one starts in the background.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    program: Program,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    unused: Vec<Worker>,
    /// Workers that are starting in the background.
    starting: usize,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // The state is valid after every statement, so a panic of another thread does not matter.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    /// A pool for a program; the first workers start in the background.
    pub fn new(program: Program) -> Pool {
        let pool = Pool { shared: Arc::new(Shared { program, state: Mutex::default() }) };
        pool.refill();
        pool
    }

    /// An unused worker: a ready one, or one that is started now.
    pub fn take(&self) -> Result<Worker, SandboxError> {
        // A worker may have been killed while it waited, by the user or by the system.
        let next = || self.shared.state().unused.pop();
        let ready = std::iter::from_fn(next).find_map(|mut worker| worker.is_alive().then_some(worker));
        let worker = match ready {
            Some(worker) => Ok(worker),
            None => Worker::start(&self.shared.program),
        };
        self.refill();
        worker
    }

    /// How many workers are ready.
    pub fn ready(&self) -> usize {
        self.shared.state().unused.len()
    }

    /// Starts the missing workers on threads. A worker outlives the thread that started it.
    fn refill(&self) {
        let mut state = self.shared.state();
        let missing = UNUSED.saturating_sub(state.unused.len() + state.starting);
        state.starting += missing;
        drop(state);
        for _ in 0..missing {
            let shared = Arc::downgrade(&self.shared);
            let program = self.shared.program.clone();
            let started =
                std::thread::Builder::new().name("plan worker".to_owned()).spawn(move || add(&shared, &program));
            if started.is_err() {
                self.shared.state().starting -= 1;
            }
        }
    }
}

/// Starts a worker and adds it to the pool if that still exists. The next `take` reports a failure.
fn add(shared: &Weak<Shared>, program: &Program) {
    let worker = Worker::start(program);
    let Some(shared) = shared.upgrade() else { return };
    let mut state = shared.state();
    state.starting -= 1;
    state.unused.extend(worker);
}
