//! The worker takes its own rights away: resource limits, landlock, seccomp.
//!
//! Each step reports how far it is in force; the host decides whether that is enough.

use nix::sys::resource::{Resource, rlim_t, setrlimit};

use crate::protocol::Level;

/// CPU seconds of the whole process. It ends a worker in native code whose host was killed; the limit of a run is
/// smaller and enforced by the engine.
const CPU_SECONDS: rlim_t = 40;

/// Address space of the process: the engine's memory, the frames and the program itself.
const ADDRESS_SPACE: rlim_t = 512 * 1024 * 1024;

/// Limits the resources of the process. `RLIMIT_FSIZE` stays as it is: with 0, writing to a redirected stderr would
/// kill the worker.
pub(super) fn limit_resources() -> Level {
    let limits = [
        (Resource::RLIMIT_AS, ADDRESS_SPACE),
        (Resource::RLIMIT_CPU, CPU_SECONDS),
        (Resource::RLIMIT_NOFILE, 16),
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_NPROC, 0),
    ];
    let failed: Vec<String> = limits
        .into_iter()
        .filter_map(|(resource, limit)| {
            setrlimit(resource, limit, limit).err().map(|error| format!("{resource:?}: {error}"))
        })
        .collect();
    match failed.len() {
        0 => Level::Enforced,
        5 => Level::Unavailable(failed.join(", ")),
        _ => Level::Partial(failed.join(", ")),
    }
}

#[cfg(target_os = "linux")]
pub(super) use linux::{filter_system_calls, restrict_access};

#[cfg(target_os = "linux")]
mod linux {
    use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetStatus, Scope};
    use nix::libc;
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
        TargetArch,
    };

    use crate::protocol::Level;

    /// Forbids every access to files, TCP ports, signals to other processes and abstract sockets: a ruleset without
    /// any rule that allows something.
    pub(crate) fn restrict_access() -> Level {
        let abi = ABI::V6;
        let restricted = Ruleset::default()
            .handle_access(AccessFs::from_all(abi))
            .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(abi)))
            .and_then(|ruleset| ruleset.scope(Scope::from_all(abi)))
            .and_then(Ruleset::create)
            .and_then(landlock::RulesetCreated::restrict_self);
        match restricted.map(|status| status.ruleset) {
            Ok(RulesetStatus::FullyEnforced) => Level::Enforced,
            Ok(RulesetStatus::PartiallyEnforced) => Level::Partial("an older kernel".to_owned()),
            Ok(RulesetStatus::NotEnforced) => Level::Unavailable("the kernel has no landlock".to_owned()),
            Err(error) => Level::Unavailable(error.to_string()),
        }
    }

    /// The system calls that a plan needs: pipes, memory, and what the standard library uses at the end.
    const ALLOWED: [libc::c_long; 14] = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_sigaltstack,
        libc::SYS_rt_sigreturn,
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
        libc::SYS_restart_syscall,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    /// Allows [`ALLOWED`], and memory that is not executable. Any other system call fails with `EPERM`.
    pub(crate) fn filter_system_calls() -> Level {
        match compiled().and_then(|program| seccompiler::apply_filter(&program).map_err(|error| error.to_string())) {
            Ok(()) => Level::Enforced,
            Err(reason) => Level::Unavailable(reason),
        }
    }

    fn compiled() -> Result<BpfProgram, String> {
        let text = |error: seccompiler::BackendError| error.to_string();
        let executable = libc::PROT_EXEC as u64;
        // Argument 2 of `mmap` and `mprotect` is the protection.
        let protection = SeccompCmpOp::MaskedEq(executable);
        let data_only = SeccompCondition::new(2, SeccompCmpArgLen::Dword, protection, 0).map_err(text)?;
        let data_only = SeccompRule::new(vec![data_only]).map_err(text)?;
        let mut rules: std::collections::BTreeMap<i64, Vec<SeccompRule>> =
            ALLOWED.into_iter().map(|call| (call, Vec::new())).collect();
        rules.insert(libc::SYS_mmap, vec![data_only.clone()]);
        rules.insert(libc::SYS_mprotect, vec![data_only]);
        let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(text)?;
        let refuse = SeccompAction::Errno(libc::EPERM as u32);
        let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, architecture).map_err(text)?;
        filter.try_into().map_err(text)
    }
}

/// Landlock exists on Linux only.
#[cfg(not(target_os = "linux"))]
pub(super) fn restrict_access() -> Level {
    Level::Unavailable("landlock needs Linux".to_owned())
}

/// Seccomp exists on Linux only.
#[cfg(not(target_os = "linux"))]
pub(super) fn filter_system_calls() -> Level {
    Level::Unavailable("seccomp needs Linux".to_owned())
}
