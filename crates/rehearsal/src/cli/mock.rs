//! `rehearse mock`

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use rehearsal::core::answer::Answer;
use rehearsal::core::answer::harness::Harness;
use rehearsal::mock::{Called, Files, LoadError, Otherwise, Reload, Server, http_options, watch};
use rehearsal::wire::http::server::HttpServer;

use super::context::Context;
use super::exit::{Exit, Failure};
use super::run::{Signals, runtime};
use super::serve::{ListenOptions, on_http, on_stdio, where_to_reach};
use crate::print::Talk;

/// Serve a mock: a whole MCP server from YAML files
#[derive(Args, Debug)]
#[command(after_help = MORE)]
pub(super) struct Mock {
    /// The files; several are one server, and of what can be said only once the first counts
    #[arg(required_unless_present = "harness", value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    listen: ListenOptions,

    /// How clients reach it [default: stdio, or http with --listen]
    #[arg(long, value_enum)]
    transport: Option<Transport>,

    /// Offer the tool `get_data`, whose answers come with the question: [test_case_id=ID] and
    /// [mcp_responses_json=BASE64] in its argument; over HTTP also by /control/queues/ID
    #[arg(long)]
    harness: bool,

    /// Read the files again when they change; a file that is broken then is told about and not used
    #[arg(long)]
    watch: bool,

    /// Answer what nothing declares with a value that fits the output schema; nothing needs `answers` then
    #[arg(long)]
    schema_fill: bool,

    /// Say on stderr what was asked and which rule answered
    #[arg(short, long)]
    verbose: bool,
}

/// How clients reach a mock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Transport {
    /// On stdin and stdout
    Stdio,
    /// Streamable HTTP at /mcp and HTTP+SSE at /sse
    Http,
}

const MORE: &str = "\
Every version of the protocol is served at once: clients say which one they speak. Over stdio, stdout
is the protocol and nothing else; over HTTP the address is said on stderr, as `listening on URL`.
When nothing in the files answers a request, the client and stderr are told what came closest.

Examples:
  rehearse mock weather.mock.yaml
  rehearse mock weather.mock.yaml --listen 8080 --watch
  rehearse list -- rehearse mock weather.mock.yaml notes.mock.yaml

Exit status:
    0  the client has left
    2  a flag or a file is wrong
    3  nobody can listen at the address
  129  ended by SIGHUP
  130  ended by SIGINT (Ctrl-C)
  143  ended by SIGTERM";

impl Mock {
    /// Serves until the client is gone, or until somebody ends us.
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let address = match (self.listen.listen, self.transport) {
            (Some(_), Some(Transport::Stdio)) => {
                return Err(Failure::bad_input("--listen is an address of HTTP, and --transport says stdio"));
            }
            (Some(address), _) => Some(address),
            (None, Some(Transport::Http)) => Some((Ipv4Addr::LOCALHOST, 0).into()),
            (None, Some(Transport::Stdio) | None) => None,
        };
        let harness = self.harness.then(|| Arc::new(Harness::default()));
        let files = Files { paths: self.files.clone(), otherwise: otherwise(self.schema_fill), harness };
        let mock = match files.load() {
            Ok(mock) => mock,
            Err(error @ LoadError::Unreadable { .. }) => return Err(Failure::bad_input(error)),
            Err(error @ LoadError::Wrong { .. }) => {
                tell(&error, &context.talk);
                return Ok(Exit::BadInput);
            }
        };
        let (talk, verbose) = (context.talk.clone(), self.verbose);
        let server = Server::with_listener(mock, move |called, answer| heard(called, answer, verbose, &talk));
        let options = address.map(|address| {
            let mut options = http_options(&server);
            self.listen.apply(&mut options, address);
            options
        });
        let runtime = runtime()?;
        let served = runtime.block_on(async {
            let mut signals = Signals::listen()?;
            let serving = async {
                match options {
                    None => on_stdio(&server, &mut signals).await.map_err(Failure::begin),
                    Some(options) => {
                        let listener = HttpServer::bind(options).await?;
                        context.talk.say(format_args!("listening on {}", where_to_reach(&listener, address)));
                        Ok(on_http(&server, listener, &mut signals).await)
                    }
                }
            };
            tokio::select! {
                biased;
                // The fault `exit`: as a server that dies, with whatever status it was told to.
                status = server.exited() => std::process::exit(status),
                // Before it is said that we listen: what changes from then on is a change.
                () = self.watched(files, &server, &context.talk) => Ok(Exit::Ok),
                served = serving => served,
            }
        });
        // A thread that reads from a terminal cannot be stopped, and must not be waited for.
        runtime.shutdown_background();
        served
    }

    /// Reads changed files, for ever.
    async fn watched(&self, files: Files, server: &Server, talk: &Talk) {
        if !self.watch {
            return std::future::pending().await;
        }
        let tell = |reload: Reload| match reload {
            Reload::Done => talk.say("read again"),
            Reload::Kept(error) => {
                tell(&error, talk);
                talk.say("still serving what was there before");
            }
        };
        watch(files, server.clone(), tell).await;
    }
}

/// What `--schema-fill` says.
pub(super) fn otherwise(schema_fill: bool) -> Otherwise {
    if schema_fill { Otherwise::FillFromSchema } else { Otherwise::Refuse }
}

/// Says what whoever wrote the mock should know, and everything else to whoever wants to know.
///
/// ```text
/// tools/call get_forecast: script: tool get_forecast, an object with {city: "Oslo"}
/// ```
fn heard(called: &Called, answer: &Answer, verbose: bool, talk: &Talk) {
    if verbose {
        let name = called.name().map(|name| format!(" {name}")).unwrap_or_default();
        talk.say(format_args!("{}{name}: {}", called.method, answer.provenance));
    }
    for remark in &answer.remarks {
        talk.say(remark);
    }
}

fn tell(error: &LoadError, talk: &Talk) {
    match error {
        LoadError::Unreadable { .. } => talk.error(error),
        LoadError::Wrong { errors } => {
            for (error, text) in errors {
                error.problems.iter().for_each(|problem| talk.problem(&error.file, text, problem));
            }
        }
    }
}
