//! The worker of the tests.

fn main() {
    rehearsal_sandbox::worker_main()
}
