//! The servers in a client's configuration, and the edits that wrap and unwrap them.

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rehearsal::config::{ConfigFile, JsonNode, NodeKind, ServerRef};

use super::exit::Failure;

/// The suffix of the backup.
const BACKUP_SUFFIX: &str = ".rehearsal-backup";

/// A configuration that is edited.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) file: ConfigFile,
}

/// The words in front of the command of a wrapped server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordPrefix {
    /// The path of `rehearse`.
    pub(super) program: String,
    /// `record`, its options, and `--`.
    pub(super) words: Vec<String>,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WrapKind {
    /// By a command.
    Command,
    /// By a command that is wrapped already.
    Wrapped(RecordPrefix),
    /// At a URL.
    Url(String),
    /// Neither by a command nor by a URL.
    Unknown,
}

impl Config {
    pub(super) fn read(path: &Path) -> Result<Config, Failure> {
        Ok(Config { file: ConfigFile::read(path)? })
    }

    pub(super) fn parse(path: &Path, text: String) -> Result<Config, Failure> {
        Ok(Config { file: ConfigFile::parse(path, text)? })
    }

    /// The path of the backup.
    pub(super) fn backup(&self) -> PathBuf {
        let mut path = self.file.path.clone().into_os_string();
        path.push(BACKUP_SUFFIX);
        path.into()
    }

    pub(super) fn servers(&self) -> Result<Vec<ServerRef<'_>>, Failure> {
        Ok(self.file.servers()?)
    }

    /// The text with some of its servers wrapped.
    pub(super) fn wrapped(&self, prefix: impl Fn(&str) -> Option<RecordPrefix>) -> Result<String, Failure> {
        let mut edits = Vec::new();
        for server in self.servers()? {
            let prefix = prefix(server.name).filter(|_| reached(&server) == WrapKind::Command);
            let Some(prefix) = prefix else { continue };
            let words: Vec<String> = prefix.words.iter().map(|word| quoted(word)).collect();
            let words = words.join(", ");
            match Command::from_server(server.node) {
                Some(Command::Line(list)) => {
                    let inside = list.span.start + 1;
                    let space = self.separator(inside);
                    edits.push((inside..inside, format!("{}, {words}{space}", quoted(&prefix.program))));
                }
                Some(Command::Program { program, arguments }) => {
                    let words = format!("{words}, {}", &self.file.text[program.span.clone()]);
                    edits.push((program.span.clone(), quoted(&prefix.program)));
                    edits.push(match arguments {
                        Arguments::List(list) => {
                            let inside = list.span.start + 1;
                            let is_empty = list.elements().is_none_or(<[JsonNode]>::is_empty);
                            let space = if is_empty { "" } else { self.separator(inside) };
                            (inside..inside, words + space)
                        }
                        Arguments::Null(null) => (null.span.clone(), format!("[{words}]")),
                        Arguments::Absent => (program.span.end..program.span.end, format!(", \"args\": [{words}]")),
                    });
                }
                None => {}
            }
        }
        Ok(edited(&self.file.text, edits))
    }

    /// The separator between the inserted words and the word that follows.
    fn separator(&self, inside: usize) -> &'static str {
        let on_its_own_line = self.file.text[inside..].trim_start_matches([' ', '\t', '\r']).starts_with('\n');
        if on_its_own_line { "," } else { ", " }
    }

    /// The text with all of its servers unwrapped.
    pub(super) fn unwrapped(&self) -> Result<String, Failure> {
        let mut edits = Vec::new();
        for server in self.servers()? {
            let WrapKind::Wrapped(prefix) = reached(&server) else { continue };
            match Command::from_server(server.node) {
                Some(Command::Line(list)) => {
                    // The first word is the path of `rehearse`.
                    let (ours, theirs) = list.elements().unwrap_or_default().split_at(prefix.words.len() + 1);
                    if let (Some(last), Some(first)) = (ours.last(), theirs.first()) {
                        let end = self.after_comma(last.span.end..first.span.start);
                        edits.push((list.span.start + 1..end, String::new()));
                    }
                }
                Some(Command::Program { program, arguments: Arguments::List(list) }) => {
                    let elements = list.elements().unwrap_or_default();
                    let Some(original) = elements.get(prefix.words.len()) else { continue };
                    edits.push((program.span.clone(), self.file.text[original.span.clone()].to_owned()));
                    let end = match elements.get(prefix.words.len() + 1) {
                        Some(next) => self.after_comma(original.span.end..next.span.start),
                        None => original.span.end,
                    };
                    edits.push((list.span.start + 1..end, String::new()));
                }
                Some(Command::Program { arguments: Arguments::Null(_) | Arguments::Absent, .. }) | None => {}
            }
        }
        Ok(edited(&self.file.text, edits))
    }

    /// The end of the text that was inserted before an element: after the comma and its space.
    fn after_comma(&self, between: Range<usize>) -> usize {
        let Some(comma) = self.file.text[between.clone()].find(',') else { return between.end };
        let after = between.start + comma + 1;
        after + usize::from(self.file.text[after..].starts_with(' '))
    }

    /// Replaces the file atomically, with the same permissions.
    pub(super) fn replace(&self, text: &str) -> Result<(), Failure> {
        let write = || {
            // A symbolic link stays; its target is replaced.
            let path = std::fs::canonicalize(&self.file.path)?;
            let directory = path.parent().unwrap_or(Path::new("/"));
            let mut file = tempfile::NamedTempFile::new_in(directory)?;
            file.write_all(text.as_bytes())?;
            file.as_file().set_permissions(std::fs::metadata(&path)?.permissions())?;
            file.persist(&path).map_err(|error| error.error).map(drop)
        };
        write().map_err(|cause| Failure::unwritable(&self.file.path, &cause))
    }
}

/// How a configuration writes a command.
enum Command<'a> {
    /// `"command": "npx", "args": ["-y", "x"]`
    Program { program: &'a JsonNode, arguments: Arguments<'a> },
    /// `"command": ["npx", "-y", "x"]`
    Line(&'a JsonNode),
}

enum Arguments<'a> {
    List(&'a JsonNode),
    Null(&'a JsonNode),
    Absent,
}

impl Command<'_> {
    fn from_server(server: &JsonNode) -> Option<Command<'_>> {
        let command = server.field("command")?;
        match &command.kind {
            NodeKind::Text(_) => {
                let arguments = match server.field("args") {
                    Some(list) if list.elements().is_some() => Arguments::List(list),
                    Some(null) if matches!(null.kind, NodeKind::Null) => Arguments::Null(null),
                    Some(_) => return None,
                    None => Arguments::Absent,
                };
                Some(Command::Program { program: command, arguments })
            }
            NodeKind::Array(words) => words.first().and_then(JsonNode::text).map(|_| Command::Line(command)),
            NodeKind::Object(_) | NodeKind::Null | NodeKind::Other(_) => None,
        }
    }

    /// The words in front of the command, if it is wrapped.
    fn prefix(&self) -> Option<RecordPrefix> {
        let (program, words) = match self {
            Command::Program { program, arguments: Arguments::List(list) } => (*program, list.elements()?),
            Command::Program { arguments: Arguments::Null(_) | Arguments::Absent, .. } => return None,
            Command::Line(list) => list.elements()?.split_first()?,
        };
        let program = program.text()?;
        let ours = Path::new(program).file_name().is_some_and(|name| name == "rehearse");
        let first = words.first().and_then(JsonNode::text);
        let end = words.iter().position(|word| word.text() == Some("--"))?;
        let recorded = ours && first == Some("record") && words.len() > end + 1;
        let words = words[..=end].iter().filter_map(|word| word.text().map(str::to_owned));
        recorded.then(|| RecordPrefix { program: program.to_owned(), words: words.collect() })
    }
}

/// How a server is reached.
pub(super) fn reached(server: &ServerRef<'_>) -> WrapKind {
    if let Some(command) = Command::from_server(server.node) {
        return command.prefix().map_or(WrapKind::Command, WrapKind::Wrapped);
    }
    server.url().map_or(WrapKind::Unknown, |url| WrapKind::Url(url.to_owned()))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn edited(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(span, _)| span.start);
    let mut text = text.to_owned();
    edits.into_iter().rev().for_each(|(span, new)| text.replace_range(span, &new));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [&str; 4] = ["record", "-o", "/t.jsonl", "--"];

    fn config(text: &str) -> Config {
        Config::parse(Path::new(".mcp.json"), text.to_owned()).unwrap()
    }

    fn wrapped(text: &str) -> String {
        let prefix = RecordPrefix { program: "/bin/rehearse".into(), words: WORDS.map(str::to_owned).to_vec() };
        config(text).wrapped(|_| Some(prefix.clone())).unwrap()
    }

    #[test]
    fn wrapping_touches_nothing_but_the_words_of_the_command() {
        let table = [
            (
                r#"{"mcpServers":{"a":{"command":"npx","args":["-y","x"],"env":{"K":"${V}"}}}}"#,
                r#"{"mcpServers":{"a":{"command":"/bin/rehearse","args":["record", "-o", "/t.jsonl", "--", "npx", "-y","x"],"env":{"K":"${V}"}}}}"#,
            ),
            (
                "{\"servers\": { // ours\n \"a\": {\"args\": [\n  \"x\"\n ], \"command\": \"np\\u0078\", },\n}}",
                "{\"servers\": { // ours\n \"a\": {\"args\": [\"record\", \"-o\", \"/t.jsonl\", \"--\", \"np\\u0078\",\n  \"x\"\n ], \"command\": \"/bin/rehearse\", },\n}}",
            ),
            (
                r#"{"mcp":{"servers":{"a":{"command":"x"}}}}"#,
                r#"{"mcp":{"servers":{"a":{"command":"/bin/rehearse", "args": ["record", "-o", "/t.jsonl", "--", "x"]}}}}"#,
            ),
            (r#"{"mcpServers":{"a":{"url":"http://x"}}}"#, r#"{"mcpServers":{"a":{"url":"http://x"}}}"#),
            (
                r#"{"mcpServers":{"a":{"command":"x","args":null}}}"#,
                r#"{"mcpServers":{"a":{"command":"/bin/rehearse","args":["record", "-o", "/t.jsonl", "--", "x"]}}}"#,
            ),
            // Invalid arguments stay unchanged.
            (
                r#"{"mcpServers":{"a":{"command":"x","args":"y"}}}"#,
                r#"{"mcpServers":{"a":{"command":"x","args":"y"}}}"#,
            ),
            (
                r#"{"mcp":{"a":{"type":"local","command":[ "npx","x"]},"b":{"type":"remote","url":"http://x"}}}"#,
                r#"{"mcp":{"a":{"type":"local","command":["/bin/rehearse", "record", "-o", "/t.jsonl", "--",  "npx","x"]},"b":{"type":"remote","url":"http://x"}}}"#,
            ),
        ];
        for (text, expected) in table {
            assert_eq!(wrapped(text), expected);
            assert_eq!(wrapped(expected), expected, "a second time");
        }
    }

    #[test]
    fn unwrapping_without_a_backup_gives_the_command_back() {
        for text in [
            r#"{"mcpServers":{"a":{"command":"npx","args":["-y","x"]},"b":{"command":"y","args":[]}}}"#,
            r#"{"servers": {"a": {"args": [ "x"], "command": "npx", }, }}"#,
            "{\"servers\": {\"a\": {\"args\": [\n\t\"x\", // so\n\t\"y\"\n], \"command\": \"npx\"}}}",
            "{\"mcp\": {\"a\": {\"command\": [\n  \"npx\", /* so */ \"x\"\n]}, \"b\": {\"command\": [\"y\"]}}}",
        ] {
            assert_eq!(config(&wrapped(text)).unwrapped().unwrap(), text);
        }
    }
}
