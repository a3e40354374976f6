//! Runs the verb of a command line and returns its exit status.

use std::process::ExitCode;

use rehearsal::Client;
use rehearsal::wire::StopOutcome;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::command_line::{CommandLine, Verb};
use super::context::Context;
use super::exit::{Exit, Failure};
use super::list::{ListArgs, ListedServer};
use super::server::ServerArgs;

/// Runs the verb of the command line.
pub(crate) fn run(context: &Context) -> ExitCode {
    match CommandLine::read(context) {
        Ok(CommandLine { verb }) => {
            run_verb(&verb, context).unwrap_or_else(|failure| report_failure(&failure, context).into())
        }
        Err(exit) => exit.into(),
    }
}

/// Runs a verb. Errors in its arguments are reported before a server is started.
fn run_verb(verb: &Verb, context: &Context) -> Result<ExitCode, Failure> {
    let exit = match verb {
        Verb::List(list) => match list.server.config_servers()? {
            Some(names) => list_servers(list, &names, context),
            None => with_server(context, &list.server, async |client| list.run(None, client, context).await),
        },
        Verb::Call(call) => {
            let arguments = call.arguments()?;
            call.save.check()?;
            with_server(context, &call.server, async |client| call.run(arguments, client, context).await)
        }
        Verb::Read(read) => {
            read.save.check()?;
            with_server(context, &read.server, async |client| read.run(client, context).await)
        }
        Verb::Prompt(prompt) => {
            let arguments = prompt.arguments()?;
            prompt.save.check()?;
            with_server(context, &prompt.server, async |client| prompt.run(arguments, client, context).await)
        }
        Verb::Request(request) => {
            let params = request.params()?;
            with_server(context, &request.server, async |client| request.run(params, client, context).await)
        }
        Verb::Init(init) => {
            init.check()?;
            match init.names_no_server() {
                true => init.without_server(context),
                false => with_server(context, &init.server, async |client| init.run(client, context).await),
            }
        }
        Verb::Mock(mock) => mock.run(context),
        Verb::Check(check) => check.run(context),
        Verb::Schema(schema) => schema.run(),
        // A recorder exits with the status of the server.
        Verb::Record(record) => return record.run(context).map(ExitCode::from),
        Verb::Replay(replay) => replay.run(context),
        Verb::Wrap(wrap) => wrap.run(context),
        Verb::Unwrap(unwrap) => unwrap.run(context),
        Verb::Trace(trace) => trace.run(context),
        Verb::Verify(verify) => verify.run(context),
        Verb::Generate(generate) => generate.run(context),
        Verb::DryRun(dry_run) => dry_run.run(context),
        Verb::Exec(exec) => exec.run(context),
        Verb::Types(types) => types.run(context),
        Verb::Cache(cache) => cache.run(context),
        Verb::Logout(logout) => logout.run(context),
        Verb::Completions(completions) => completions.run(),
        Verb::Man(man) => man.run(context),
    };
    exit.map(ExitCode::from)
}

/// The runtime of a verb: one thread.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    Builder::new_current_thread().enable_all().build().map_err(Failure::begin)
}

/// Connects, runs a verb, and stops the server, also if a signal arrives.
fn with_server(
    context: &Context,
    options: &ServerArgs,
    verb: impl AsyncFnOnce(&Client) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    with_named_server(context, options, None, verb)
}

/// Lists each server of a configuration. A server that fails is reported and does not stop the others.
fn list_servers(list: &ListArgs, names: &[String], context: &Context) -> Result<Exit, Failure> {
    let mut exit = Exit::Ok;
    for (index, name) in names.iter().enumerate() {
        context.stderr.resume_server_output();
        let server = ListedServer { name, is_first: index == 0 };
        let run = async |client: &Client| list.run(Some(server), client, context).await;
        let listed = with_named_server(context, &list.server, Some(name), run);
        let listed = listed.unwrap_or_else(|failure| report_failure(&failure.of_server(Some(name)), context));
        if matches!(listed, Exit::HungUp | Exit::Interrupted | Exit::Terminated) {
            return Ok(listed);
        }
        exit = exit.and(listed);
    }
    Ok(exit)
}

/// Like [`with_server`], for the server `name` of the file `--config`. Its errors begin with the name.
fn with_named_server(
    context: &Context,
    options: &ServerArgs,
    name: Option<&str>,
    verb: impl AsyncFnOnce(&Client) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let builder = options.client(name, context)?;
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let connecting = builder.connecting();
        let requested = async {
            let client = connecting.connect().await?;
            options.set_log_level(&client).await?;
            // The lists and answers of a server may depend on the roots.
            client.roots_applied().await;
            verb(&client).await
        };
        let done = tokio::select! {
            done = requested => done.unwrap_or_else(|failure| report_failure(&failure.of_server(name), context)),
            exit = signals.next() => exit,
        };
        // A second signal does not wait: a dropped server is killed.
        tokio::select! {
            stopped = connecting.close() => if options.verbose { report_stop(stopped, context) },
            _ = signals.next() => {}
        }
        Ok(done)
    });
    // Drops every task, and with it the server process. A pending DNS lookup is not awaited.
    runtime.shutdown_background();
    done
}

fn report_failure(failure: &Failure, context: &Context) -> Exit {
    context.stderr.stop_server_output();
    failure.report(&context.stderr);
    failure.exit()
}

/// Reports a server that did not exit when its stdin was closed.
fn report_stop(stopped: StopOutcome, context: &Context) {
    match stopped {
        StopOutcome::AlreadyExited | StopOutcome::Exited => {}
        StopOutcome::Terminated => {
            context.stderr.note("the server did not exit when its stdin was closed; SIGTERM ended it")
        }
        StopOutcome::Killed => {
            context.stderr.note("the server did not exit when its stdin was closed, nor at SIGTERM; SIGKILL ended it")
        }
    }
}

/// The signals that end the program. They are handled once this is created.
pub(super) struct Signals {
    hang_up: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Installs the signal handlers.
    pub(super) fn listen() -> Result<Signals, Failure> {
        let listen = |kind| signal(kind).map_err(Failure::begin);
        Ok(Signals {
            hang_up: listen(SignalKind::hangup())?,
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for a signal and returns the exit status for it.
    pub(super) async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.hang_up.recv() => Exit::HungUp,
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
        }
    }
}
