//! Recorder, server or client killed at any moment: no forwarded message is lost.
//!
//! ```text
//! client: tee ──► recorder ──► server: tee ──► sed ──► tee
//!   client-received ◄── tee ◄──┘           └─ server-received └─ server-sent
//! ```
//!
//! Server and client write the bytes that they receive to files. The recovered trace must contain these bytes.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use rehearsal::core::exchange::Side;
use rehearsal::core::trace::SessionEnd;
use rehearsal::record::{RecoveryOutcome, recover};

use crate::fixture::Fixture;
use crate::trace_contents::sessions;

/// The default of `REHEARSAL_KILLS`: how many runs are killed.
const KILLS: u64 = 210;

/// A pseudorandom number generator; equal seeds give equal numbers.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn throw(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }
}

/// The seed and the number of kills, from the environment or by default. Prints both, so that a failure can be repeated.
pub(crate) fn seeded(kills: u64) -> (u64, u64) {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().unwrap());
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
    let seed = number("REHEARSAL_SEED").unwrap_or_else(clock).max(1);
    let kills = number("REHEARSAL_KILLS").unwrap_or(kills);
    println!("REHEARSAL_SEED={seed} REHEARSAL_KILLS={kills}");
    (seed, kills)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Recorder,
    Server,
    Client,
    All,
}

/// One recorded session between a client and a server.
struct Run {
    folder: PathBuf,
    /// Forwards the client's messages to the recorder.
    client_stdin: Child,
    recorder: Child,
    /// Receives the recorder's stdout.
    client_stdout: Child,
    /// A FIFO that reaches its end when the server and all its child processes have ended.
    alive: File,
}

impl Run {
    /// Starts a session; `redacted` is whether the recorder redacts secrets.
    fn start(fixture: &Fixture, number: u64, redacted: bool) -> Run {
        let folder = fixture.path().join(format!("run-{number}"));
        std::fs::create_dir(&folder).unwrap();
        assert!(fixture.shell(&format!("mkfifo run-{number}/alive")).status().unwrap().success());
        // Non-blocking, because the server may be killed before it opens the FIFO.
        let alive =
            File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(folder.join("alive")).unwrap();
        let answers = r#"s/"method":"tools\/call","params"/"result"/"#;
        let server =
            format!("exec 3> alive; export LC_ALL=C; tee server-received | sed -u '{answers}' | tee server-sent");
        std::fs::write(folder.join("server"), server).unwrap();
        let folder_shell = |line: &str| {
            let mut shell = fixture.shell(line);
            shell.current_dir(&folder);
            shell
        };
        let redact = if redacted { "" } else { "--no-redact" };
        let line = format!("exec rehearse record -q {redact} -o ../trace.jsonl --metadata run={number} -- sh server");
        let mut recorder = folder_shell(&line).stdin(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (recorder.stdin.take().unwrap(), recorder.stdout.take().unwrap());
        let client_stdin = folder_shell("exec tee client-sent").stdin(Stdio::piped()).stdout(stdin).spawn().unwrap();
        let client_stdout =
            folder_shell("exec tee client-received").stdin(stdout).stdout(Stdio::null()).spawn().unwrap();
        Run { folder, client_stdin, recorder, client_stdout, alive }
    }

    fn kill(&self, victim: Victim) {
        let pid = |child: &Child| Pid::from_raw(i32::try_from(child.id()).unwrap());
        // An error means that the process has already exited.
        let end = |child: &Child| {
            let _ = kill(pid(child), Signal::SIGKILL);
        };
        let end_server = || {
            let _ = server_of(self.recorder.id()).map(|group| killpg(group, Signal::SIGKILL));
        };
        match victim {
            Victim::Recorder => end(&self.recorder),
            Victim::Server => end_server(),
            Victim::Client => {
                end(&self.client_stdin);
                end(&self.client_stdout);
            }
            Victim::All => {
                end_server();
                end(&self.client_stdin);
                end(&self.recorder);
                end(&self.client_stdout);
            }
        }
    }

    /// Waits until all processes have exited; returns the folder and the recorder's status.
    fn wait(mut self) -> (PathBuf, Option<i32>) {
        drop(self.client_stdin.stdin.take());
        let status = self.recorder.wait().unwrap();
        self.client_stdin.wait().unwrap();
        self.client_stdout.wait().unwrap();
        while self.alive.read(&mut [0]).is_err() {
            let mut polled = [PollFd::new(self.alive.as_fd(), PollFlags::POLLIN)];
            assert_ne!(poll(&mut polled, 20_000_u16).unwrap(), 0, "the server should have exited");
        }
        (self.folder, status.code())
    }
}

/// The process group of the server that a recorder started.
fn server_of(recorder: u32) -> Option<Pid> {
    let folder = format!("/proc/{recorder}/task");
    let tasks = std::fs::read_dir(folder).ok()?.flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<i32> = children
        .flat_map(|text| text.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>())
        .collect();
    // The watchdog is a child too.
    let is_server =
        |pid: &i32| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words == b"sh\0server\0");
    children.into_iter().find(is_server).map(Pid::from_raw)
}

/// A request of random length, or a line that is no message.
fn random_line(dice: &mut Dice, id: u64) -> Vec<u8> {
    let length = match dice.throw(20) {
        0 => 200_000 + dice.throw(100_000),
        1..=4 => dice.throw(9000),
        5 => return format!("noise {id}\n").into_bytes(),
        6 => return [b"\xff\xfe ".as_slice(), id.to_string().as_bytes(), b"\n"].concat(),
        _ => 0,
    };
    let filler = "abc ".repeat(usize::try_from(length / 4).unwrap());
    let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"x":"{filler}"}}}}"#);
    [call.as_bytes(), b"\n"].concat()
}

fn read_received(path: &Path) -> Vec<u8> {
    // A process that is killed early has created no file.
    std::fs::read(path).unwrap_or_default()
}

/// The complete lines: a partial line is recorded only without redaction.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)]
}

#[test]
#[ignore = "takes a minute; `.ci/run recording` runs it"]
fn no_forwarded_message_is_lost_after_a_kill() {
    let (seed, kills) = seeded(KILLS);
    let fixture = Fixture::new();
    let trace = fixture.path().join("trace.jsonl");
    let (mut dice, mut bytes, mut folded) = (Dice(seed), 0, 0);
    for run_number in 0..kills {
        let redacted = dice.throw(2) == 0;
        let victim = [Victim::Recorder, Victim::Recorder, Victim::Server, Victim::Client, Victim::All]
            [usize::try_from(dice.throw(5)).unwrap()];
        let mut run = Run::start(&fixture, run_number, redacted);
        let delay = Duration::from_micros(dice.throw(60_000));
        if matches!(victim, Victim::Server | Victim::All) {
            // The server can be killed only after it has started.
            while server_of(run.recorder.id()).is_none() {
                std::thread::yield_now();
            }
        }
        let mut client_stdin = run.client_stdin.stdin.take().unwrap();
        let mut line_dice = Dice(dice.throw(u64::MAX).max(1));
        let writer = std::thread::spawn(move || {
            // Until the recorder has closed its stdin.
            (0..)
                .map(|id| random_line(&mut line_dice, id))
                .take_while(|line| client_stdin.write_all(line).is_ok())
                .count()
        });
        let began = Instant::now();
        while began.elapsed() < delay {
            std::thread::yield_now();
        }
        run.kill(victim);
        let (folder, status) = run.wait();
        writer.join().unwrap();
        let context = format!("run {run_number} of seed {seed}: {victim:?}, redacted: {redacted}, status {status:?}");
        folded +=
            recover(&trace).unwrap().iter().filter(|one| matches!(one.outcome, RecoveryOutcome::Folded { .. })).count();
        let (server_received, client_received) =
            (read_received(&folder.join("server-received")), read_received(&folder.join("client-received")));
        bytes += server_received.len() + client_received.len();
        // A recorder that is killed early has created no trace.
        let all = if trace.exists() { sessions(&trace) } else { Vec::new() };
        let name = run_number.to_string();
        let own = all.iter().filter(|session| session.start.metadata["run"] == name);
        let own: Vec<_> = own.collect();
        assert!(own.len() <= 1, "{context}: recorded twice");
        let stream = |side| own.first().map(|session| session.stream(side)).unwrap_or_default();
        for (side, received) in [(Side::Client, &server_received), (Side::Server, &client_received)] {
            let received = if redacted { whole_lines(received) } else { &received[..] };
            assert!(stream(side).starts_with(received), "{context}: bytes that the {side:?} sent are lost");
        }
        if let (Victim::Recorder, [session]) = (victim, &own[..]) {
            assert_eq!(session.end, Some(SessionEnd::Recovered), "{context}");
        }
        // Keeps the trace short for the next run.
        std::fs::remove_file(&trace).unwrap_or_default();
        std::fs::remove_dir_all(&folder).unwrap();
    }
    println!("{kills} kills, {folded} sessions recovered, {bytes} bytes received and found");
    assert!(folded > 0 && bytes > 0);
    let left: Vec<_> = std::fs::read_dir(fixture.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, [""; 0], "nothing is left");
}

#[test]
fn a_trace_with_a_partial_last_line_is_repaired() {
    let fixture = Fixture::new();
    let trace = fixture.path().join("trace.jsonl");
    fixture.run("echo one | rehearse record -q -- cat; echo two | rehearse record -q -- sh -c 'cat; kill -9 $PPID'");
    let text = std::fs::read_to_string(&trace).unwrap();
    let journals = rehearsal::record::journals(&trace).unwrap();
    let [(session_id, journal)] = &journals[..] else { panic!("{journals:?}") };
    // A recorder that was killed after it had appended this many bytes.
    let line = text.replace(&sessions(&trace)[0].start.session_id, session_id);
    let kept = std::fs::read(journal).unwrap();
    for length in [1, 9, 30, 80, line.len() / 2, line.len() - 1] {
        std::fs::write(&trace, format!("{text}{}", &line[..length])).unwrap();
        std::fs::write(journal, &kept).unwrap();
        let outcomes: Vec<RecoveryOutcome> =
            recover(&trace).unwrap().into_iter().map(|recovered| recovered.outcome).collect();
        assert!(matches!(outcomes[..], [RecoveryOutcome::Folded { .. }]), "{length}: {outcomes:?}");
        let all = sessions(&trace);
        assert_eq!(all.len(), 2, "partial after {length} bytes");
        assert_eq!(all[1].stream(Side::Client), b"two\n");
        assert!(recover(&trace).unwrap().is_empty());
    }
    // A recorder that was killed after it had written the trace and before it removed the journal.
    std::fs::write(journal, &kept).unwrap();
    assert_eq!(recover(&trace).unwrap()[0].outcome, RecoveryOutcome::AlreadyInTrace);
    assert_eq!(sessions(&trace).len(), 2);
}

#[test]
fn recovery_skips_a_running_session() {
    let fixture = Fixture::new();
    let trace = fixture.path().join("trace.jsonl");
    let mut child = fixture.shell("exec rehearse record -q -- cat").stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"hello\n").unwrap();
    let mut echo = [0; 6];
    child.stdout.take().unwrap().read_exact(&mut echo).unwrap();
    assert_eq!(recover(&trace).unwrap()[0].outcome, RecoveryOutcome::Running);
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert!(recover(&trace).unwrap().is_empty());
    assert_eq!(sessions(&trace)[0].stream(Side::Server), b"hello\n");
}

#[test]
fn the_next_recorder_recovers_ended_sessions_and_skips_running_ones() {
    let fixture = Fixture::new();
    let trace = fixture.path().join("trace.jsonl");
    let mut live = fixture.shell("exec rehearse record -q -- cat").stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = live.stdin.take().unwrap();
    stdin.write_all(b"live\n").unwrap();
    live.stdout.take().unwrap().read_exact(&mut [0; 5]).unwrap();
    fixture.run("echo killed | rehearse record -q -- sh -c 'cat; kill -9 $PPID'");
    assert_eq!(rehearsal::record::journals(&trace).unwrap().len(), 2);
    let output = fixture.run("echo next | rehearse record -- cat");
    let line = output.lines().find(|line| line.starts_with("recovered session ")).unwrap_or_else(|| panic!("{output}"));
    assert!(line.contains(", whose recorder was killed: "), "{line}");
    let journals = rehearsal::record::journals(&trace).unwrap();
    let [(left, _)] = &journals[..] else { panic!("{journals:?}") };
    let mut found: Vec<_> = sessions(&trace).iter().map(|session| session.stream(Side::Client)).collect();
    found.sort();
    assert_eq!(found, [b"killed\n".to_vec(), b"next\n".to_vec()]);
    drop(stdin);
    assert!(live.wait().unwrap().success());
    let all = sessions(&trace);
    assert_eq!((&all[2].start.session_id, all[2].stream(Side::Client)), (left, b"live\n".to_vec()));
    assert!(rehearsal::record::journals(&trace).unwrap().is_empty());
}
