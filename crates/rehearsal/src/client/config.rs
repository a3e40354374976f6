//! Servers by name, from the usual `{"mcpServers": {…}}` file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// One entry of an `.mcp.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEntry {
    /// A server to start.
    Command {
        /// What to run.
        command: String,
        /// With what.
        arguments: Vec<String>,
        /// Variables for it.
        environment: BTreeMap<String, String>,
        /// Where to run it.
        working_dir: Option<PathBuf>,
    },
    /// A server to reach.
    Url {
        /// Where it is.
        url: String,
        /// Headers for it.
        headers: BTreeMap<String, String>,
        /// Whether the file says that it speaks HTTP+SSE.
        sse: bool,
    },
}

/// What is wrong with a config file.
#[derive(Debug, thiserror::Error)]
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
    /// It is not JSON.
    #[error("{}:{line}:{column}: not JSON: {what}", path.display())]
    NotJson {
        /// The file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// Where.
        column: usize,
        /// What is wrong.
        what: String,
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

fn known(names: &[String], name: &str) -> String {
    match rehearsal_core::suggest::closest(name, names.iter().map(String::as_str)) {
        Some(close) => format!("did you mean {close:?}?"),
        None if names.is_empty() => "it has none at all".to_owned(),
        None => format!("it has {}", names.join(", ")),
    }
}

/// Reads the entry `name` of the file at `path`; `variable` gives the environment for `${NAME}` and `${NAME:-default}`.
pub fn read_config(
    path: &Path,
    name: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<ServerEntry, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|cause| ConfigError::Unreadable { path: path.into(), cause })?;
    let file: Value = serde_json::from_str(&text).map_err(|error| ConfigError::NotJson {
        path: path.into(),
        line: error.line(),
        column: error.column(),
        what: error.to_string(),
    })?;
    let reader = Reader { path, variable: &variable };
    // VS Code calls it `servers`; everybody else `mcpServers`.
    let servers = file.get("mcpServers").or_else(|| file.get("servers")).and_then(Value::as_object);
    let servers = servers.ok_or_else(|| reader.shape("$", "no object `mcpServers`"))?;
    let entry = servers.get(name).ok_or_else(|| ConfigError::NoServer {
        path: path.into(),
        name: name.into(),
        names: servers.keys().cloned().collect(),
    })?;
    reader.entry(&format!("$.mcpServers.{name}"), entry)
}

struct Reader<'a> {
    path: &'a Path,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Reader<'_> {
    fn shape(&self, at: &str, what: &str) -> ConfigError {
        ConfigError::Shape { path: self.path.into(), at: at.into(), what: what.into() }
    }

    fn entry(&self, at: &str, entry: &Value) -> Result<ServerEntry, ConfigError> {
        let entry = entry.as_object().ok_or_else(|| self.shape(at, "a server must be an object"))?;
        match (self.text(at, entry, "command")?, self.text(at, entry, "url")?) {
            (Some(command), None) => Ok(ServerEntry::Command {
                command,
                arguments: self.list(at, entry, "args")?,
                environment: self.map(at, entry, "env")?,
                working_dir: self.text(at, entry, "cwd")?.map(PathBuf::from),
            }),
            (None, Some(url)) => {
                let sse = self.text(at, entry, "type")?.as_deref() == Some("sse");
                Ok(ServerEntry::Url { url, headers: self.map(at, entry, "headers")?, sse })
            }
            (None, None) => {
                let meant = |key: &str| rehearsal_core::suggest::closest(key, ["command", "url"]);
                let hint = entry.keys().find_map(|key| Some(format!("; `{key}` should be `{}`", meant(key)?)));
                Err(self.shape(at, &format!("neither `command` nor `url`{}", hint.unwrap_or_default())))
            }
            (Some(_), Some(_)) => Err(self.shape(at, "both `command` and `url`; which one is meant?")),
        }
    }

    fn text(&self, at: &str, entry: &Map<String, Value>, key: &str) -> Result<Option<String>, ConfigError> {
        let at = format!("{at}.{key}");
        entry.get(key).map(|value| self.string(&at, value)).transpose()
    }

    fn list(&self, at: &str, entry: &Map<String, Value>, key: &str) -> Result<Vec<String>, ConfigError> {
        let Some(value) = entry.get(key) else { return Ok(Vec::new()) };
        let at = format!("{at}.{key}");
        let list = value.as_array().ok_or_else(|| self.shape(&at, "must be a list of strings"))?;
        list.iter().enumerate().map(|(index, value)| self.string(&format!("{at}[{index}]"), value)).collect()
    }

    fn map(&self, at: &str, entry: &Map<String, Value>, key: &str) -> Result<BTreeMap<String, String>, ConfigError> {
        let Some(value) = entry.get(key) else { return Ok(BTreeMap::new()) };
        let at = format!("{at}.{key}");
        let map = value.as_object().ok_or_else(|| self.shape(&at, "must be an object of strings"))?;
        let pair = |(key, value): (&String, &Value)| Ok((key.clone(), self.string(&format!("{at}.{key}"), value)?));
        map.iter().map(pair).collect()
    }

    fn string(&self, at: &str, value: &Value) -> Result<String, ConfigError> {
        match value {
            Value::String(text) => self.expanded(at, text),
            // People write ports and switches without quotes.
            Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => Err(self.shape(at, "must be a string")),
        }
    }

    fn expanded(&self, at: &str, text: &str) -> Result<String, ConfigError> {
        let mut done = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((inside, after)) = after.split_once('}') else { break };
            let (variable, default) = inside.split_once(":-").map_or((inside, None), |(name, text)| (name, Some(text)));
            let value = (self.variable)(variable).or_else(|| default.map(str::to_owned));
            let value = value.ok_or_else(|| ConfigError::NoVariable {
                path: self.path.into(),
                at: at.into(),
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
    fn both_kinds_of_entries_are_read_and_variables_filled_in() {
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
    fn what_is_wrong_is_said_with_its_place() {
        let table = [
            ("{", ".mcp.json:1:1: not JSON: EOF while parsing an object at line 1 column 1"),
            ("{}", ".mcp.json: $: no object `mcpServers`"),
            (r#"{"mcpServers":{}}"#, ".mcp.json has no server \"local\"; it has none at all"),
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
