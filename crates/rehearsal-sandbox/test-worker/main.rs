//! The worker of the tests: it runs plans, or it does what a worker that was taken over by a plan would do.
//!
//! The first argument names the attack. Attacks on the system run after the isolation, or with `free-` before the name
//! without it, which shows that they work. Attacks on the protocol run instead of the worker.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;

use rehearsal_sandbox::{worker_main, worker_main_then};

/// Exit status of an attack that succeeded.
const BROKE_OUT: i32 = 99;

fn main() {
    let attack = std::env::args().nth(1).unwrap_or_default();
    if let Some(attack) = attack.strip_prefix("free-") {
        let status = if system_attack(attack).is_some_and(|attack| attack()) { BROKE_OUT } else { 0 };
        std::process::exit(status);
    }
    if let Some(attack) = system_attack(&attack) {
        // If it fails, as it must, the worker goes on and runs plans.
        worker_main_then(|| {
            if attack() {
                std::process::exit(BROKE_OUT);
            }
        });
    }
    match attack.as_str() {
        "plain" | "plain " => worker_main(),
        "panic" => worker_main_then(|| panic!("a worker that panics")),
        protocol => attack_protocol(protocol),
    }
}

/// What code in a worker must not be able to do; each returns true if it could.
fn system_attack(attack: &str) -> Option<fn() -> bool> {
    let attack: fn() -> bool = match attack {
        "fork" => || Command::new("/bin/true").spawn().is_ok(),
        "exec" => || {
            use std::os::unix::process::CommandExt;
            // It only returns if it fails; the shell ends with the status of a success.
            let _error = Command::new("/bin/sh").args(["-c", "exit 99"]).exec();
            false
        },
        "open" => || std::fs::File::open("/etc/passwd").is_ok(),
        "create" => || std::fs::File::create("/tmp/rehearsal-sandbox-test").is_ok(),
        "list" => || std::fs::read_dir("/").is_ok(),
        "tcp" => || TcpStream::connect("127.0.0.1:9").is_ok() || TcpListener::bind("127.0.0.1:0").is_ok(),
        "udp" => || UdpSocket::bind("127.0.0.1:0").is_ok(),
        "unix" => || std::os::unix::net::UnixStream::pair().is_ok(),
        "thread" => || std::thread::Builder::new().spawn(|| ()).is_ok(),
        "kill" => || nix::sys::signal::kill(nix::unistd::getppid(), None).is_ok(),
        "executable-memory" => executable_memory,
        _ => return None,
    };
    Some(attack)
}

fn executable_memory() -> bool {
    use nix::libc::{MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE, mmap};
    #[expect(unsafe_code, reason = "an attack needs the bare system call")]
    // SAFETY: a new private mapping touches no memory that exists.
    let mapped = unsafe {
        mmap(std::ptr::null_mut(), 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    };
    mapped != MAP_FAILED
}

const READY_FRAME: &str = r#"{"ready":{"levels":{"landlock":"enforced","seccomp":"enforced","rlimits":"enforced"}}}"#;

fn call(id: u32) -> String {
    let call =
        format!(r#"{{"id":{id},"server":"fs","tool":"read","arguments":{{}},"site":"1:1","call_site":"","lossy":[]}}"#);
    format!(r#"{{"idle":{{"run":1,"calls":[{call}],"timer":null,"open":1,"ended":false,"console":[]}}}}"#)
}

fn done(result: &str) -> String {
    format!(
        r#"{{"done":{{"run":1,"outcome":{{"value":{result}}},"lossy":[],"unhandled":[],"console":[],"now_ms":0.0}}}}"#
    )
}

/// Sends forged frames: after `ready` and the first bytes of `start`, whatever the attack is.
fn attack_protocol(attack: &str) {
    let mut out = std::io::stdout();
    if attack == "garbage-first" {
        send_bytes(&mut out, b"HTTP/1.1 200 OK\r\n\r\n");
        return;
    }
    if attack == "done-first" {
        send(&mut out, &done("1"));
        return;
    }
    send(&mut out, READY_FRAME);
    if attack == "leave" {
        return;
    }
    if attack == "unrequested" {
        send(&mut out, &done("1").replace("\"run\":1", "\"run\":9"));
    }
    let mut first = [0; 4];
    if std::io::stdin().read_exact(&mut first).is_err() {
        return;
    }
    let unknown_id = call(7);
    let frames: Vec<String> = match attack {
        "garbage" => vec!["this is no JSON".to_owned()],
        "unknown-message" => vec![r#"{"escape":{}}"#.to_owned()],
        "unknown-member" => vec![done("1").replace("\"lossy\"", "\"loosy\"")],
        "unknown-id" => vec![unknown_id],
        "wrong-count" => vec![call(1).replace("\"open\":1", "\"open\":5")],
        "waits-for-nothing" => {
            vec![r#"{"idle":{"run":1,"calls":[],"timer":null,"open":0,"ended":false,"console":[]}}"#.to_owned()]
        }
        "ready-again" => vec![READY_FRAME.to_owned()],
        "done-twice" => vec![done("1"), done("2")],
        "done-with-open-call" => vec![call(1), done("1")],
        "large-result" => vec![done(&format!("\"{}\"", "x".repeat(5 << 20)))],
        "long" => {
            send_bytes(&mut out, &u32::MAX.to_le_bytes());
            Vec::new()
        }
        "half" => {
            send_bytes(&mut out, &100_u32.to_le_bytes());
            send_bytes(&mut out, b"{\"done\"");
            return;
        }
        "stderr" => {
            let line = "x".repeat(1 << 20);
            for _ in 0..50 {
                eprintln!("{line}");
            }
            eprintln!("the end of stderr");
            return;
        }
        other => panic!("no attack {other}"),
    };
    for frame in &frames {
        send(&mut out, frame);
    }
    let mut rest = Vec::new();
    drop(std::io::stdin().read_to_end(&mut rest));
}

fn send(out: &mut impl Write, frame: &str) {
    send_bytes(out, &(frame.len() as u32).to_le_bytes());
    send_bytes(out, frame.as_bytes());
}

/// Writes as far as the host reads: it may kill this process at any time.
fn send_bytes(out: &mut impl Write, bytes: &[u8]) {
    drop(out.write_all(bytes));
    drop(out.flush());
}
