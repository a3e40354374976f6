//! The host of plans: it starts workers, delivers results, and trusts nothing that a worker sends.

mod calls;
mod outcome;
mod pool;
mod process;
mod run;
mod start;

pub use calls::{CallOutcome, Deliver, ErrorKind, Host, Idle, PlanCall};
pub use outcome::{PlanError, PlanException, RunOutcome, WorkerFailure};
pub use pool::Pool;
pub use run::RunOptions;
pub use start::{Program, SandboxError, Worker};
