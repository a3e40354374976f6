//! Parses an entry of a configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rehearsal_core::json::Path as Place;
use serde_json::{Map, Value};

use super::file::ConfigError;
use super::file::{ConfigFile, URL_KEYS};

/// One entry of an `.mcp.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEntry {
    /// A server that is started by a command.
    Command {
        /// The program.
        command: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Its environment variables.
        environment: BTreeMap<String, String>,
        /// Its working directory.
        working_dir: Option<PathBuf>,
    },
    /// A server with a URL.
    Url {
        /// The URL of the server.
        url: String,
        /// The HTTP headers of each request.
        headers: BTreeMap<String, String>,
        /// True if the file selects HTTP+SSE.
        sse: bool,
    },
}

/// Reads the entry `name` of the file at `path`; `variable` returns the environment variables for `${NAME}` and
/// `${NAME:-default}`.
pub fn read_config(
    path: &Path,
    name: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<ServerEntry, ConfigError> {
    let file = ConfigFile::read(path)?;
    let server = file.server(name)?;
    EntryReader { path, variable: &variable }.entry(&server.at, &server.node.value())
}

struct EntryReader<'a> {
    path: &'a Path,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl EntryReader<'_> {
    fn shape(&self, at: &Place, what: impl Into<String>) -> ConfigError {
        ConfigError::Shape { path: self.path.into(), at: at.to_string(), what: what.into() }
    }

    fn entry(&self, at: &Place, entry: &Value) -> Result<ServerEntry, ConfigError> {
        let entry = entry.as_object().ok_or_else(|| self.shape(at, "a server must be an object"))?;
        // `null` means absent.
        let is_set = |key: &&str| entry.get(*key).is_some_and(|value| !value.is_null());
        match (is_set(&"command"), URL_KEYS.into_iter().find(is_set)) {
            (true, None) => {
                let (command, arguments) = self.command(at, entry)?;
                // opencode names it `environment`.
                let environment = if is_set(&"environment") { "environment" } else { "env" };
                Ok(ServerEntry::Command {
                    command,
                    arguments,
                    environment: self.map(at, entry, environment)?,
                    working_dir: self.text(at, entry, "cwd")?.map(PathBuf::from),
                })
            }
            (false, Some(key)) => {
                let url = self.text(at, entry, key)?.unwrap_or_default();
                let sse = self.text(at, entry, "type")?.as_deref() == Some("sse");
                Ok(ServerEntry::Url { url, headers: self.map(at, entry, "headers")?, sse })
            }
            (false, None) => {
                let meant = |key: &str| rehearsal_core::suggest::closest(key, ["command", "url"]);
                let hint = entry.keys().find_map(|key| Some(format!("; `{key}` should be `{}`", meant(key)?)));
                Err(self.shape(at, format!("neither `command` nor `url`{}", hint.unwrap_or_default())))
            }
            (true, Some(key)) => Err(self.shape(at, format!("both `command` and `{key}`; use one of them"))),
        }
    }

    /// `"command": "npx", "args": ["-y", "x"]`, or `"command": ["npx", "-y", "x"]`.
    fn command(&self, at: &Place, entry: &Map<String, Value>) -> Result<(String, Vec<String>), ConfigError> {
        if !matches!(entry.get("command"), Some(Value::Array(_))) {
            let program = self.text(at, entry, "command")?.unwrap_or_default();
            return Ok((program, self.list(at, entry, "args")?));
        }
        let mut words = self.list(at, entry, "command")?;
        match words.is_empty() {
            true => Err(self.shape(&at.join("command"), "must have a program in it")),
            false => Ok((words.remove(0), [words, self.list(at, entry, "args")?].concat())),
        }
    }

    fn text(&self, at: &Place, entry: &Map<String, Value>, key: &str) -> Result<Option<String>, ConfigError> {
        let value = entry.get(key).filter(|value| !value.is_null());
        value.map(|value| self.string(&at.join(key), value)).transpose()
    }

    fn list(&self, at: &Place, entry: &Map<String, Value>, key: &str) -> Result<Vec<String>, ConfigError> {
        let Some(value) = entry.get(key).filter(|value| !value.is_null()) else { return Ok(Vec::new()) };
        let at = at.join(key);
        let list = value.as_array().ok_or_else(|| self.shape(&at, "must be a list of strings"))?;
        list.iter().enumerate().map(|(index, value)| self.string(&at.join(index), value)).collect()
    }

    fn map(&self, at: &Place, entry: &Map<String, Value>, key: &str) -> Result<BTreeMap<String, String>, ConfigError> {
        let Some(value) = entry.get(key).filter(|value| !value.is_null()) else { return Ok(BTreeMap::new()) };
        let at = at.join(key);
        let map = value.as_object().ok_or_else(|| self.shape(&at, "must be an object of strings"))?;
        let pair = |(key, value): (&String, &Value)| Ok((key.clone(), self.string(&at.join(key.as_str()), value)?));
        map.iter().map(pair).collect()
    }

    fn string(&self, at: &Place, value: &Value) -> Result<String, ConfigError> {
        match value {
            Value::String(text) => self.expanded(at, text),
            // Ports and switches are often written without quotes.
            Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => Err(self.shape(at, "must be a string")),
        }
    }

    /// Fills in `${NAME}`, `${NAME:-default}` and, as VS Code and Cursor write it, `${env:NAME}`.
    fn expanded(&self, at: &Place, text: &str) -> Result<String, ConfigError> {
        let mut done = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((inside, after)) = after.split_once('}') else { break };
            let (variable, default) = inside.split_once(":-").map_or((inside, None), |(name, text)| (name, Some(text)));
            let variable = variable.strip_prefix("env:").unwrap_or(variable);
            let value = (self.variable)(variable).or_else(|| default.map(str::to_owned));
            let value = value.ok_or_else(|| ConfigError::NoVariable {
                path: self.path.into(),
                at: at.to_string(),
                variable: variable.into(),
            })?;
            done.push_str(before);
            done.push_str(&value);
            rest = after;
        }
        done.push_str(rest);
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, name: &str) -> Result<ServerEntry, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let variable = |name: &str| (name == "TOKEN").then(|| "secret".to_owned());
        let shown = file.path().display().to_string();
        read_config(file.path(), name, variable).map_err(|error| error.to_string().replace(&shown, ".mcp.json"))
    }

    #[test]
    fn both_kinds_of_entries_are_parsed_and_variables_expanded() {
        let text = r#"{"mcpServers": {
            "local": {"command": "npx", "args": ["-y", "server", "${PORT:-80}"], "env": {"KEY": "${TOKEN}", "N": 1}},
            "remote": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
        }}"#;
        let ServerEntry::Command { arguments, environment, .. } = read(text, "local").unwrap() else { panic!() };
        assert_eq!(arguments, ["-y", "server", "80"]);
        assert_eq!((environment["KEY"].as_str(), environment["N"].as_str()), ("secret", "1"));
        let ServerEntry::Url { headers, sse, .. } = read(text, "remote").unwrap() else { panic!() };
        assert_eq!((headers["Authorization"].as_str(), sse), ("Bearer secret", false));
    }

    #[test]
    fn entries_of_all_clients_are_parsed() {
        let table = [
            (r#"{"servers": {"a": {"command": "npx", "args": ["x", "${env:TOKEN}"], /* so */ },}}"#, "npx x secret"),
            (r#"{"context_servers": {"a": {"command": "x", "args": null, "env": null}}}"#, "x"),
            (
                r#"{"mcp": {"a": {"type": "local", "command": ["npx", "-y", "x"], "environment": {"K": "v"}}}}"#,
                "npx -y x K=v",
            ),
            (r#"{"mcp": {"servers": {"a": {"command": "x"}}}}"#, "x"),
            (r#"{"mcpServers": {"a": {"serverUrl": "http://x"}}}"#, "http://x"),
            (r#"{"amp.mcpServers": {"a": {"httpUrl": "http://y", "type": "sse"}}}"#, "http://y"),
        ];
        for (text, expected) in table {
            let found = match read(text, "a").unwrap() {
                ServerEntry::Url { url, .. } => url,
                ServerEntry::Command { command, arguments, environment, .. } => {
                    let environment = environment.iter().map(|(key, value)| format!("{key}={value}"));
                    [command].into_iter().chain(arguments).chain(environment).collect::<Vec<_>>().join(" ")
                }
            };
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn an_error_has_its_place() {
        let table = [
            ("{", ".mcp.json:1:2: not JSON: expected a key in quotes or `}`"),
            (
                "{}",
                ".mcp.json: no servers: none of `mcpServers`, `servers`, `mcp.servers`, `context_servers`, `amp.mcpServers` or `mcp`",
            ),
            (r#"{"mcp":{"local":{"command":[]}}}"#, ".mcp.json: $.mcp.local.command: must have a program in it"),
            (r#"{"mcpServers":{}}"#, ".mcp.json has no server \"local\"; it has no servers"),
            (r#"{"mcpServers":{"locale":{}}}"#, ".mcp.json has no server \"local\"; did you mean \"locale\"?"),
            (r#"{"mcpServers":{"local":{}}}"#, ".mcp.json: $.mcpServers.local: neither `command` nor `url`"),
            (
                r#"{"mcpServers":{"local":{"comand":"x"}}}"#,
                ".mcp.json: $.mcpServers.local: neither `command` nor `url`; `comand` should be `command`",
            ),
            (
                r#"{"mcpServers":{"local":{"command":"x","args":"y"}}}"#,
                ".mcp.json: $.mcpServers.local.args: must be a list of strings",
            ),
            (
                r#"{"mcpServers":{"local":{"command":"${NONE}"}}}"#,
                ".mcp.json: $.mcpServers.local.command: the variable NONE is not set; set it, or write ${NONE:-default}",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(read(text, "local").unwrap_err(), expected);
        }
    }
}
