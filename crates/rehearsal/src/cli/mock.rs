//! `rehearse mock`

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use rehearsal::core::answer::Answer;
use rehearsal::core::answer::harness::Harness;
use rehearsal::mock::{LoadError, LoggedRequest, MockFiles, Reload, Unanswered, http_options, watch};
use rehearsal::serve::{Observer, Otherwise, Server, ServerOptions, Upstream};

use super::context::Context;
use super::exit::{Exit, Failure};
use super::run::{Signals, runtime};
use super::serve::{ListenArgs, live_server, serve};
use super::server::check_url;
use crate::print::StderrPrinter;

/// Serve a mock: a whole MCP server from YAML files
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct MockArgs {
    /// The mock files; several files make one server, and of a key that may occur once, the first is used
    #[arg(required_unless_present = "harness", value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    listen: ListenArgs,

    /// The transport [default: stdio, or http with --listen]
    #[arg(long, value_enum)]
    transport: Option<Transport>,

    /// Offer the tool `get_data`, whose responses are in its argument: [test_case_id=ID] and
    /// [mcp_responses_json=BASE64]; over HTTP also in /control/queues/ID
    #[arg(long)]
    harness: bool,

    /// Reload the files when they change; a file with errors is reported and not used
    #[arg(long)]
    watch: bool,

    /// Answer a tool without `answers` with a value that fits its output schema
    #[arg(long)]
    schema_fill: bool,

    /// Print each request and the source of its answer on stderr
    #[arg(short, long)]
    verbose: bool,

    /// Forward requests without an answer to a live server, and list what it lists too: --url URL, or -- COMMAND
    #[arg(long, help_heading = UPSTREAM, conflicts_with_all = ["schema_fill", "harness"])]
    upstream: bool,

    /// The URL of the live server
    #[arg(long, value_name = "URL", conflicts_with_all = ["schema_fill", "harness"], help_heading = UPSTREAM, value_hint = clap::ValueHint::Url)]
    url: Option<String>,

    /// The command of the live server: everything after `--`
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["url", "schema_fill", "harness"], help_heading = UPSTREAM)]
    command: Vec<OsString>,
}

const UPSTREAM: &str = "Upstream";

/// How clients reach a mock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Transport {
    /// On stdin and stdout
    Stdio,
    /// Streamable HTTP at /mcp and HTTP+SSE at /sse
    Http,
}

const AFTER_HELP: &str = "\
All protocol versions are served; each client chooses its own. Over stdio, stdout has only protocol
messages; over HTTP, `listening on URL` is printed on stderr. If no answer in the files fits a request,
the error and stderr name the closest one.

Examples:
  rehearse mock weather.mock.yaml
  rehearse mock weather.mock.yaml --listen 8080 --watch
  rehearse list -- rehearse mock weather.mock.yaml notes.mock.yaml
  rehearse mock broken-search.mock.yaml --upstream -- npx -y @modelcontextprotocol/server-everything

Exit status:
    0  the client has disconnected
    2  a flag or a file is wrong
    3  the program cannot listen on the address
  129  ended by SIGHUP
  130  ended by SIGINT (Ctrl-C)
  143  ended by SIGTERM";

impl MockArgs {
    /// Serves until the client disconnects or a signal arrives.
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let address = match (self.listen.listen, self.transport) {
            (Some(_), Some(Transport::Stdio)) => {
                return Err(Failure::bad_input("--listen is for HTTP, but --transport is stdio"));
            }
            (Some(address), _) => Some(address),
            (None, Some(Transport::Http)) => Some((Ipv4Addr::LOCALHOST, 0).into()),
            (None, Some(Transport::Stdio) | None) => None,
        };
        let otherwise = self.otherwise()?;
        let harness = self.harness.then(|| Arc::new(Harness::default()));
        let unanswered = match &otherwise {
            Otherwise::Forward(_) => Unanswered::Forward,
            Otherwise::Refuse => unanswered(self.schema_fill),
        };
        let files = MockFiles { paths: self.files.clone(), unanswered, harness };
        let chain = match files.load() {
            Ok(chain) => chain,
            Err(error @ LoadError::Unreadable { .. }) => return Err(Failure::bad_input(error)),
            Err(error @ LoadError::Wrong { .. }) => {
                print(&error, &context.stderr);
                return Ok(Exit::BadInput);
            }
        };
        let (stderr, verbose) = (context.stderr.clone(), self.verbose);
        let observer = move |request: &LoggedRequest, answer: &Answer| print_answer(request, answer, verbose, &stderr);
        let observers: Vec<Arc<dyn Observer>> = vec![Arc::new(observer)];
        let server = Server::with_options(chain, ServerOptions { otherwise, observers, ..ServerOptions::default() });
        let options = http_options(&server, files.harness.as_ref());
        let listen = address.map(|address| self.listen.applied(options, address));
        let runtime = runtime()?;
        let served = runtime.block_on(async {
            let mut signals = Signals::listen()?;
            let serving = serve(&server, listen, &mut signals, context);
            let served = tokio::select! {
                biased;
                // The fault `exit`: exits like a server that crashes, with the status from the file.
                status = server.exited() => std::process::exit(status),
                // Starts before the address is printed, so that later changes are noticed.
                () = self.watched(files, &server, &context.stderr) => Ok(Exit::Ok),
                served = serving => served,
            };
            server.close_upstream().await.map_err(Failure::begin)?;
            served
        });
        // A thread that reads from a terminal cannot be stopped, so the program does not wait for it.
        runtime.shutdown_background();
        served
    }

    /// The live server for requests that the files do not answer, if the user named one.
    fn otherwise(&self) -> Result<Otherwise, Failure> {
        if let Some(url) = &self.url {
            check_url(url)?;
        }
        match live_server(self.url.as_deref(), &self.command) {
            Some((server, _)) => Ok(Otherwise::Forward(Arc::new(Upstream::new(server).merged()))),
            None if self.upstream => Err(Failure::bad_input("--upstream needs a server: --url URL, or -- COMMAND")
                .hint("for example: --upstream -- npx -y some-server")),
            None => Ok(Otherwise::Refuse),
        }
    }

    /// Reloads changed files until the program ends.
    async fn watched(&self, files: MockFiles, server: &Server, stderr: &StderrPrinter) {
        if !self.watch {
            return std::future::pending().await;
        }
        let report = |reload: Reload| match reload {
            Reload::Done => stderr.note("files reloaded"),
            Reload::Kept(error) => {
                print(&error, stderr);
                stderr.note("still serving the previous files");
            }
        };
        watch(files, server.clone(), report).await;
    }
}

/// The meaning of `--schema-fill`.
pub(super) fn unanswered(schema_fill: bool) -> Unanswered {
    if schema_fill { Unanswered::FillFromSchema } else { Unanswered::Refuse }
}

/// Prints the remarks of an answer; with `verbose`, also the request and the source of its answer.
///
/// ```text
/// tools/call get_forecast: script: tool get_forecast, an object with {city: "Oslo"}
/// ```
pub(super) fn print_answer(request: &LoggedRequest, answer: &Answer, verbose: bool, stderr: &StderrPrinter) {
    if verbose {
        let name = request.name().map(|name| format!(" {name}")).unwrap_or_default();
        let fault = request.fault.as_ref().map(|fault| format!(", fault {}", fault.name())).unwrap_or_default();
        stderr.note(format_args!("{}{name}: {}{fault}", request.method, answer.provenance));
    }
    for remark in &answer.remarks {
        stderr.note(remark);
    }
}

fn print(error: &LoadError, stderr: &StderrPrinter) {
    match error {
        LoadError::Unreadable { .. } => stderr.error(error),
        LoadError::Wrong { errors } => {
            for (error, text) in errors {
                error.problems.iter().for_each(|problem| stderr.problem(&error.file, text, problem));
            }
        }
    }
}
