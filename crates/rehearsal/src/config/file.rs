//! A file of servers, and where in it they are.

use std::path::{Path, PathBuf};

use rehearsal_core::json::Path as Place;
use rehearsal_core::script::{ScriptError, text};

use super::document::JsonNode;

/// The places in which clients keep servers, for messages.
pub(super) const PLACES: &str = "`mcpServers`, `servers`, `mcp.servers`, `context_servers`, `amp.mcpServers` or `mcp`";
/// The keys of a URL.
pub(super) const URLS: [&str; 3] = ["url", "serverUrl", "httpUrl"];

/// A file of servers.
#[derive(Debug)]
pub struct ConfigFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
    root: JsonNode,
}

/// A server in a file.
#[derive(Clone, Debug)]
pub struct ServerRef<'a> {
    /// What it is called there.
    pub name: &'a str,
    /// Its place, from the top of the file.
    pub at: Place,
    /// The value of its entry.
    pub node: &'a JsonNode,
}

impl ServerRef<'_> {
    /// The URL that it is reached at, as it is written.
    pub fn url(&self) -> Option<&str> {
        URLS.into_iter().find_map(|name| self.node.field(name)?.text())
    }
}

impl ConfigFile {
    /// Reads a file. Comments and commas after the last element are taken, since editors write them.
    pub fn read(path: &Path) -> Result<ConfigFile, ConfigError> {
        let bytes = std::fs::read(path).map_err(|cause| ConfigError::Unreadable { path: path.into(), cause })?;
        ConfigFile::parse(path, text(&path.display().to_string(), bytes)?)
    }

    /// Reads the text of the file at `path`.
    pub fn parse(path: &Path, text: String) -> Result<ConfigFile, ConfigError> {
        let root = JsonNode::parse(&text).map_err(|bad| {
            let before = &text[..bad.at];
            let start = before.rfind('\n').map_or(0, |end| end + 1);
            ConfigError::NotJson {
                path: path.to_owned(),
                line: before.matches('\n').count() + 1,
                column: before[start..].chars().count() + 1,
                expected: bad.expected,
            }
        })?;
        Ok(ConfigFile { path: path.to_owned(), text, root })
    }

    /// Returns the servers, wherever clients keep them:
    ///
    /// ```text
    /// mcpServers              most clients; amp.mcpServers, and projects.PATH.mcpServers beside it in ~/.claude.json
    /// servers, mcp.servers    VS Code
    /// context_servers         Zed
    /// mcp                     opencode, Crush
    /// ```
    pub fn servers(&self) -> Result<Vec<ServerRef<'_>>, ConfigError> {
        let root = Place::root();
        let mut places = Vec::new();
        for name in ["mcpServers", "servers", "context_servers", "amp.mcpServers"] {
            places.push((root.join(name), self.root.field(name)));
        }
        if let Some(mcp) = self.root.field("mcp") {
            let at = root.join("mcp");
            places.push(match mcp.field("servers") {
                Some(servers) => (at.join("servers"), Some(servers)),
                None => (at, Some(mcp)),
            });
        }
        for (name, project) in self.root.field("projects").and_then(JsonNode::fields).unwrap_or_default() {
            places.push((root.join("projects").join(name.as_str()).join("mcpServers"), project.field("mcpServers")));
        }
        let mut places = places.into_iter().filter_map(|(at, node)| Some((at, node?.fields()?))).peekable();
        if places.peek().is_none() {
            return Err(ConfigError::NoServers { path: self.path.clone() });
        }
        let servers = places.flat_map(|(at, fields)| {
            fields.iter().map(move |(name, node)| ServerRef { name, at: at.join(name.as_str()), node })
        });
        Ok(servers.collect())
    }

    /// The server with this name; where several have it, the first.
    pub fn server(&self, name: &str) -> Result<ServerRef<'_>, ConfigError> {
        let servers = self.servers()?;
        servers.iter().find(|server| server.name == name).cloned().ok_or_else(|| ConfigError::NoServer {
            path: self.path.clone(),
            name: name.into(),
            names: servers.iter().map(|server| server.name.to_owned()).collect(),
        })
    }
}

/// What is wrong with a config file.
#[derive(thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: std::io::Error,
    },
    /// It is not text.
    #[error(transparent)]
    NotText(#[from] ScriptError),
    /// It is not JSON.
    #[error("{}:{line}:{column}: not JSON: expected {expected}", path.display())]
    NotJson {
        /// The file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// Where in the line.
        column: usize,
        /// What is expected there.
        expected: &'static str,
    },
    /// It is JSON, but something else.
    #[error("{}: {at}: {what}", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// The place inside.
        at: String,
        /// What is wrong, with a hint.
        what: String,
    },
    /// There is no place for servers in it.
    #[error("{}: no servers: none of {}", path.display(), super::file::PLACES)]
    NoServers {
        /// The file.
        path: PathBuf,
    },
    /// There is no such server in it.
    #[error("{} has no server {name:?}; {}", path.display(), known(.names, .name))]
    NoServer {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        name: String,
        /// What is there.
        names: Vec<String>,
    },
    /// It uses a variable that is not set.
    #[error("{}: {at}: the variable {variable} is not set; set it, or write ${{{variable}:-default}}", path.display())]
    NoVariable {
        /// The file.
        path: PathBuf,
        /// The place inside.
        at: String,
        /// The variable.
        variable: String,
    },
}

debug_as_display!(ConfigError);

fn known(names: &[String], name: &str) -> String {
    match rehearsal_core::suggest::closest(name, names.iter().map(String::as_str)) {
        Some(close) => format!("did you mean {close:?}?"),
        None if names.is_empty() => "it has none at all".to_owned(),
        None => format!("it has {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> ConfigFile {
        ConfigFile::parse(Path::new(".mcp.json"), text.to_owned()).unwrap()
    }

    #[test]
    fn servers_are_found_wherever_clients_keep_them() {
        let table = [
            (
                r#"{"mcpServers":{},"servers":{"a":{}},"context_servers":{"b":{}}}"#,
                "a $.servers.a, b $.context_servers.b",
            ),
            (r#"{"amp.mcpServers":{"a":{}},"other":{"x":{}}}"#, r#"a $["amp.mcpServers"].a"#),
            (r#"{"mcp":{"inputs":[],"servers":{"a":{}}}}"#, "a $.mcp.servers.a"),
            (r#"{"mcp":{"a":{}}}"#, "a $.mcp.a"),
            (
                r#"{"mcpServers":{"a":{}},"projects":{"/p":{"mcpServers":{"b":{}}},"/q":{}}}"#,
                r#"a $.mcpServers.a, b $.projects["/p"].mcpServers.b"#,
            ),
        ];
        for (text, expected) in table {
            let file = file(text);
            let servers = file.servers().unwrap();
            let found: Vec<String> = servers.iter().map(|server| format!("{} {}", server.name, server.at)).collect();
            assert_eq!(found.join(", "), expected);
        }
        assert!(file(r#"{"mcpServers":[]}"#).servers().is_err());
    }

    #[test]
    fn a_place_that_is_no_json_is_told() {
        let error = ConfigFile::parse(Path::new("x.json"), "{\n  \"ä\" 1}".to_owned()).unwrap_err();
        assert_eq!(error.to_string(), "x.json:2:7: not JSON: expected `:`");
    }
}
