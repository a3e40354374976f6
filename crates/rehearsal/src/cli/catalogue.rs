//! Options of the verbs that work with the tools of the servers of a configuration: which servers, and how their tools are known.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use rehearsal::cache::{Cache, CacheError, default_path};
use rehearsal::client::ClientBuilder;
use rehearsal::config::{ConfigFile, read_config};
use rehearsal::dry_run::{Catalogue, DryRunOptions, ServerTools};
use rehearsal::mock::{MockFiles, Unanswered};

use super::context::Context;
use super::exit::Failure;

/// The configuration that is used without `--config`, if it exists.
pub(super) const DEFAULT_CONFIG: &str = ".mcp.json";

/// The heading of the options that name servers.
pub(super) const SERVERS: &str = "Servers";
pub(super) const ANSWERS: &str = "Answers";

// The options that name the servers and the file of recorded results.
#[derive(Args, Debug)]
pub(super) struct CatalogueArgs {
    /// The configuration of a client, which names the servers [default: .mcp.json, if it exists]
    #[arg(long, value_name = "FILE", help_heading = SERVERS, value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,

    /// Start no server: use the lists of tools that earlier runs and imports saved in the cache
    #[arg(long, help_heading = SERVERS)]
    offline: bool,

    /// How long to wait for each server: 30, 0.5, 500ms, 2m
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = rehearsal_core::duration::read, help_heading = SERVERS)]
    timeout: std::time::Duration,

    /// Answer calls of a server with the rules of a mock file, before all other answers; may be
    /// repeated
    #[arg(long = "override", value_name = "SERVER=FILE", value_parser = pair, help_heading = ANSWERS)]
    overrides: Vec<(String, String)>,

    /// The file of recorded results [default: .rehearsal/cache.sqlite of the project, else of the user]
    #[arg(long, value_name = "FILE", help_heading = ANSWERS, value_hint = clap::ValueHint::FilePath)]
    cache: Option<PathBuf>,

    /// Use no recorded results
    #[arg(long, conflicts_with_all = ["cache", "offline"], help_heading = ANSWERS)]
    no_cache: bool,

    /// The principal for which recorded results are read and stored: others do not get them, unless
    /// they are shared [default: local]
    #[arg(long, value_name = "NAME", conflicts_with = "no_cache", help_heading = ANSWERS)]
    principal: Option<String>,
}

impl CatalogueArgs {
    /// The cache; `None` with `--no-cache`.
    pub(super) fn open_cache(&self, context: &Context) -> Result<Option<Arc<Cache>>, Failure> {
        self.open_cache_as_of(None, context)
    }

    /// The cache as of a time; `None` with `--no-cache`.
    pub(super) fn open_cache_as_of(
        &self,
        time: Option<Timestamp>,
        context: &Context,
    ) -> Result<Option<Arc<Cache>>, Failure> {
        if self.no_cache {
            return Ok(None);
        }
        let mut cache = open_cache(self.cache.as_deref(), context)?;
        if let Some(principal) = &self.principal {
            cache = cache.for_principal(principal);
        }
        if let Some(time) = time {
            cache = cache.as_of(milliseconds(time));
        }
        Ok(Some(Arc::new(cache)))
    }

    /// The tools of the servers: of running servers, or those that were saved. Without names in `only`, of all servers.
    pub(super) async fn catalogue(
        &self,
        only: &[String],
        context: &Context,
        cache: Option<&Arc<Cache>>,
    ) -> Result<Catalogue, Failure> {
        let path = match self.config_path() {
            Some(path) => path,
            None => {
                return match cache.filter(|_| self.offline) {
                    Some(cache) => {
                        let catalogue = Catalogue::saved(cache, only).map_err(cache_failure)?;
                        if catalogue.servers().next().is_none() && self.overrides.is_empty() {
                            let path = cache.path().display();
                            context.stderr.note(format_args!("{path} has the tools of no server"));
                            context.stderr.hint("run once without --offline, which saves the tools of all servers");
                            context.stderr.hint("or import a recording: rehearse cache import TRACE");
                        }
                        Ok(catalogue)
                    }
                    None if self.overrides.is_empty() => {
                        let message = format_args!("no server is configured: there is no {DEFAULT_CONFIG} here");
                        Err(Failure::bad_input(message).hints([
                            "name the configuration of a client: --config FILE",
                            "or use the lists of tools in the cache: --offline",
                            "or a mock file as server: --override SERVER=FILE",
                        ]))
                    }
                    None => Ok(Catalogue::default()),
                };
            }
        };
        let file = ConfigFile::read(&path)?;
        for name in only.iter().filter(|name| !self.overridden().any(|overridden| overridden == *name)) {
            file.server(name)?;
        }
        let mut names: Vec<String> = file.servers()?.iter().map(|server| server.name.to_owned()).collect();
        names.retain(|name| only.is_empty() || only.contains(name));
        if let Some(cache) = cache.filter(|_| self.offline) {
            return Catalogue::saved(cache, &names).map_err(cache_failure);
        }
        context.stderr.status(&format!("listing the tools of {}", names.join(", ")));
        let builders = self.builders(&path, names, context)?;
        let catalogue = Catalogue::from_servers(builders, cache).await.map_err(cache_failure)?;
        context.stderr.end_status();
        Ok(catalogue)
    }

    /// The configuration: the named one, else the default if it exists.
    pub(super) fn config_path(&self) -> Option<PathBuf> {
        self.config.clone().or_else(|| Path::new(DEFAULT_CONFIG).is_file().then(|| DEFAULT_CONFIG.into()))
    }

    /// Clients of servers of the configuration.
    pub(super) fn builders(
        &self,
        config: &Path,
        names: impl IntoIterator<Item = String>,
        context: &Context,
    ) -> Result<Vec<(String, ClientBuilder)>, Failure> {
        let builder = |name: String| {
            let entry = read_config(config, &name, |variable| context.variable(variable))?;
            let builder: ClientBuilder = entry.into();
            Ok((name, builder.timeout(self.timeout)))
        };
        names.into_iter().map(builder).collect()
    }

    /// Reports the servers whose tools cannot be listed.
    pub(super) fn report_unavailable(&self, catalogue: &Catalogue, context: &Context) {
        for (name, tools) in catalogue.servers().filter(|_| !self.offline) {
            if let ServerTools::Unavailable { reason } = tools {
                let reason = reason.lines().next().unwrap_or_default();
                context.stderr.note(format_args!("the tools of {name} cannot be listed: {reason}"));
            }
        }
    }

    /// The options of a dry run with these tools, the recorded results, and the overrides of the servers in `only`, or of all.
    pub(super) fn options(
        &self,
        only: &[String],
        catalogue: Catalogue,
        cache: Option<Arc<Cache>>,
    ) -> Result<DryRunOptions, Failure> {
        let mut options = DryRunOptions::new(catalogue);
        if let Some(cache) = cache {
            options = options.cache(cache);
        }
        let mut files: BTreeMap<&String, Vec<&str>> = BTreeMap::new();
        for (server, file) in &self.overrides {
            files.entry(server).or_default().push(file);
        }
        files.retain(|server, _| only.is_empty() || only.contains(server));
        for (server, files) in files {
            let files = MockFiles { unanswered: Unanswered::Forward, ..MockFiles::new(files) };
            options = options.override_with(server, &files).map_err(Failure::bad_input)?;
        }
        Ok(options)
    }

    /// The servers for which mock files answer. They need no configuration.
    pub(super) fn overridden(&self) -> impl Iterator<Item = &String> {
        self.overrides.iter().map(|(server, _)| server)
    }
}

/// Opens a cache: the named file, else that of the project or of the user.
pub(super) fn open_cache(path: Option<&Path>, context: &Context) -> Result<Cache, Failure> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => {
            let directory = std::env::current_dir().map_err(Failure::begin)?;
            default_path(&directory, context.data_folder().as_deref())
        }
    };
    Cache::open(&path).map_err(cache_failure)
}

/// The cache cannot be used: exit status 3, with a hint.
pub(super) fn cache_failure(error: CacheError) -> Failure {
    let hint = error.hint();
    Failure::server_failed(error).hints(hint)
}

/// Milliseconds since 1970; 0 for earlier times.
pub(super) fn milliseconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_millisecond()).unwrap_or(0)
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((server, file)) if !server.is_empty() && !file.is_empty() => Ok((server.to_owned(), file.to_owned())),
        _ => Err("write it SERVER=FILE".to_owned()),
    }
}
