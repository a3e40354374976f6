//! Plans in real worker processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod combined_places;
mod compile;
mod escapes;
mod kit;
mod limits;
mod places;
mod probes;
mod values;

#[test]
fn workers_and_plans_can_be_used_on_any_thread() {
    fn send<T: Send>() {}
    fn share<T: Send + Sync>() {}
    send::<rehearsal_sandbox::Worker>();
    share::<rehearsal_sandbox::Pool>();
    share::<rehearsal_sandbox::CompiledPlan>();
}

#[test]
fn the_sandbox_has_no_mcp_and_no_asynchronous_runtime() {
    let manifest = include_str!("../../Cargo.toml");
    for forbidden in ["rehearsal-wire", "rehearsal-core", "tokio", "rmcp", "futures"] {
        assert!(!manifest.contains(forbidden), "{forbidden}");
    }
}
