//! The configuration file of a client, and the servers in it.

use std::path::{Path, PathBuf};

use rehearsal_core::json::Path as Place;
use rehearsal_core::script::{ScriptError, text};

use super::document::JsonNode;

/// The keys of server lists, for messages.
pub(super) const SERVER_KEYS: &str =
    "`mcpServers`, `servers`, `mcp.servers`, `context_servers`, `amp.mcpServers` or `mcp`";
/// The keys of the URL of a server.
pub(super) const URL_KEYS: [&str; 3] = ["url", "serverUrl", "httpUrl"];

/// The configuration file of a client.
#[derive(Debug)]
pub struct ConfigFile {
    /// The path of the file.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
    root: JsonNode,
}

/// A server in a file.
#[derive(Clone, Debug)]
pub struct ServerRef<'a> {
    /// The name of the server.
    pub name: &'a str,
    /// The path of its entry in the file.
    pub at: Place,
    /// The value of its entry.
    pub node: &'a JsonNode,
}

impl ServerRef<'_> {
    /// The URL in the entry, with its variables.
    pub fn url(&self) -> Option<&str> {
        URL_KEYS.into_iter().find_map(|name| self.node.field(name)?.text())
    }
}

impl ConfigFile {
    /// Reads a file. Comments and trailing commas are accepted, because editors write them.
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

    /// Returns the servers under the keys of all known clients:
    ///
    /// ```text
    /// mcpServers              most clients; amp.mcpServers, and and projects.PATH.mcpServers in ~/.claude.json
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

    /// The first server with this name.
    pub fn server(&self, name: &str) -> Result<ServerRef<'_>, ConfigError> {
        let servers = self.servers()?;
        servers.iter().find(|server| server.name == name).cloned().ok_or_else(|| ConfigError::NoServer {
            path: self.path.clone(),
            name: name.into(),
            names: servers.iter().map(|server| server.name.to_owned()).collect(),
        })
    }
}

/// An error in a configuration.
#[derive(thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        cause: std::io::Error,
    },
    /// The file is not UTF-8.
    #[error(transparent)]
    NotText(#[from] ScriptError),
    /// The file is not JSON.
    #[error("{}:{line}:{column}: not JSON: expected {expected}", path.display())]
    NotJson {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The column, in characters.
        column: usize,
        /// What the parser expected there.
        expected: &'static str,
    },
    /// A value has the wrong type, or is missing.
    #[error("{}: {at}: {what}", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// The path of the value.
        at: String,
        /// The problem, with a hint.
        what: String,
    },
    /// The file has no list of servers.
    #[error("{}: no servers: none of {}", path.display(), super::file::SERVER_KEYS)]
    NoServers {
        /// The file.
        path: PathBuf,
    },
    /// The file has no server with this name.
    #[error("{} has no server {name:?}; {}", path.display(), known(.names, .name))]
    NoServer {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
        /// The names of the servers in the file.
        names: Vec<String>,
    },
    /// The entry uses a variable that is not set.
    #[error("{}: {at}: the variable {variable} is not set; set it, or write ${{{variable}:-default}}", path.display())]
    NoVariable {
        /// The file.
        path: PathBuf,
        /// The path of the value.
        at: String,
        /// The variable.
        variable: String,
    },
}

debug_as_display!(ConfigError);

fn known(names: &[String], name: &str) -> String {
    match rehearsal_core::suggest::closest(name, names.iter().map(String::as_str)) {
        Some(close) => format!("did you mean {close:?}?"),
        None if names.is_empty() => "it has no servers".to_owned(),
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
    fn servers_are_found_under_the_keys_of_all_clients() {
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
    fn a_syntax_error_has_its_line_and_column() {
        let error = ConfigFile::parse(Path::new("x.json"), "{\n  \"ä\" 1}".to_owned()).unwrap_err();
        assert_eq!(error.to_string(), "x.json:2:7: not JSON: expected `:`");
    }
}
