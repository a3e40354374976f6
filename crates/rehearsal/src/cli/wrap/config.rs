//! The servers in a client's configuration, and the edits that wrap and unwrap them.

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::document::Node;
use super::error::WrapError;

/// What `rehearse wrap` keeps the file in as it was.
const BACKUP: &str = ".rehearsal-backup";

/// A configuration as it was read.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) path: PathBuf,
    pub(super) text: String,
    root: Node,
}

/// What stands before the command of a server that is wrapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    /// Us.
    pub(super) program: String,
    /// `record`, its options, and `--`.
    pub(super) words: Vec<String>,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// By a command.
    Command,
    /// By a command that is recorded already.
    Wrapped(Prefix),
    /// At a URL.
    Url(String),
    /// In no way that we know.
    Unknown,
}

impl Config {
    pub(super) fn read(path: &Path) -> Result<Config, WrapError> {
        let text =
            std::fs::read_to_string(path).map_err(|cause| WrapError::Unreadable { path: path.to_owned(), cause })?;
        Config::parse(path, text)
    }

    pub(super) fn parse(path: &Path, text: String) -> Result<Config, WrapError> {
        let root = Node::parse(&text).map_err(|bad| {
            let before = &text[..bad.at];
            let start = before.rfind('\n').map_or(0, |end| end + 1);
            WrapError::NotJson {
                path: path.to_owned(),
                line: before.matches('\n').count() + 1,
                column: before[start..].chars().count() + 1,
                expected: bad.expected,
            }
        })?;
        Ok(Config { path: path.to_owned(), text, root })
    }

    /// Where the file is kept as it was.
    pub(super) fn backup(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(BACKUP);
        path.into()
    }

    /// The servers by their names: under `mcpServers`, or `servers` as VS Code has it.
    pub(super) fn servers(&self) -> Result<Vec<(&str, &Node)>, WrapError> {
        let places = [
            self.root.field("mcpServers"),
            self.root.field("servers"),
            self.root.field("mcp").and_then(|mcp| mcp.field("servers")),
        ];
        let servers = places.into_iter().flatten().find_map(Node::fields);
        let servers = servers.ok_or_else(|| WrapError::NoServers { path: self.path.clone() })?;
        Ok(servers.iter().map(|(name, node)| (name.as_str(), node)).collect())
    }

    /// The text with some of its servers wrapped.
    pub(super) fn wrapped(&self, prefix: impl Fn(&str) -> Option<Prefix>) -> Result<String, WrapError> {
        let mut edits = Vec::new();
        for (name, server) in self.servers()? {
            let Some(prefix) = prefix(name).filter(|_| reached(server) == Reached::Command) else { continue };
            let Some(command) = server.field("command") else { continue };
            let words: Vec<String> = prefix.words.iter().map(|word| quoted(word)).collect();
            let mut words = words.join(", ");
            words.push_str(", ");
            words.push_str(&self.text[command.span.clone()]);
            edits.push((command.span.clone(), quoted(&prefix.program)));
            match server.field("args") {
                Some(list) => {
                    let inside = list.span.start + 1;
                    if list.elements().is_some_and(|elements| !elements.is_empty()) {
                        let on_its_own_line =
                            self.text[inside..].trim_start_matches([' ', '\t', '\r']).starts_with('\n');
                        words.push_str(if on_its_own_line { "," } else { ", " });
                    }
                    edits.push((inside..inside, words));
                }
                None => edits.push((command.span.end..command.span.end, format!(", \"args\": [{words}]"))),
            }
        }
        Ok(edited(&self.text, edits))
    }

    /// The text with all of its servers unwrapped.
    pub(super) fn unwrapped(&self) -> Result<String, WrapError> {
        let mut edits = Vec::new();
        for (_, server) in self.servers()? {
            let (Reached::Wrapped(prefix), Some(command), Some(list)) =
                (reached(server), server.field("command"), server.field("args"))
            else {
                continue;
            };
            let elements = list.elements().unwrap_or_default();
            let Some(original) = elements.get(prefix.words.len()) else { continue };
            edits.push((command.span.clone(), self.text[original.span.clone()].to_owned()));
            let end = match elements.get(prefix.words.len() + 1) {
                Some(next) => self.after_comma(original.span.end..next.span.start),
                None => original.span.end,
            };
            edits.push((list.span.start + 1..end, String::new()));
        }
        Ok(edited(&self.text, edits))
    }

    /// Where what was put before an element ends: after the comma, and the space behind it where we put one.
    fn after_comma(&self, between: Range<usize>) -> usize {
        let Some(comma) = self.text[between.clone()].find(',') else { return between.end };
        let after = between.start + comma + 1;
        after + usize::from(self.text[after..].starts_with(' '))
    }

    /// Writes another text in place of this one, in one step, with the same permissions.
    pub(super) fn replace(&self, text: &str) -> Result<(), WrapError> {
        let write = || {
            // What a link points at is replaced, not the link.
            let path = std::fs::canonicalize(&self.path)?;
            let directory = path.parent().unwrap_or(Path::new("/"));
            let mut file = tempfile::NamedTempFile::new_in(directory)?;
            file.write_all(text.as_bytes())?;
            file.as_file().set_permissions(std::fs::metadata(&path)?.permissions())?;
            file.persist(&path).map_err(|error| error.error).map(drop)
        };
        write().map_err(|cause| WrapError::Unwritable { path: self.path.clone(), cause })
    }
}

/// How a server is reached.
pub(super) fn reached(server: &Node) -> Reached {
    let text = |name| server.field(name).and_then(Node::text);
    match (text("command"), text("url").or_else(|| text("serverUrl"))) {
        (Some(program), _) => prefix(program, server).map_or(Reached::Command, Reached::Wrapped),
        (None, Some(url)) => Reached::Url(url.to_owned()),
        (None, None) => Reached::Unknown,
    }
}

/// What stands before the command, where it is us who record it.
fn prefix(program: &str, server: &Node) -> Option<Prefix> {
    let ours = Path::new(program).file_name().is_some_and(|name| name == "rehearse");
    let words = server.field("args")?.elements()?;
    let first = words.first().and_then(Node::text);
    let end = words.iter().position(|word| word.text() == Some("--"))?;
    let recorded = ours && first == Some("record") && words.len() > end + 1;
    recorded.then(|| Prefix {
        program: program.to_owned(),
        words: words[..=end].iter().filter_map(|word| word.text().map(str::to_owned)).collect(),
    })
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
        let prefix = Prefix { program: "/bin/rehearse".into(), words: WORDS.map(str::to_owned).to_vec() };
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
        ] {
            assert_eq!(config(&wrapped(text)).unwrapped().unwrap(), text);
        }
    }

    #[test]
    fn a_place_that_is_no_json_is_told() {
        let error = Config::parse(Path::new("x.json"), "{\n  \"ä\" 1}".to_owned()).unwrap_err();
        assert_eq!(error.to_string(), "x.json:2:7: not JSON: expected `:`");
    }
}
