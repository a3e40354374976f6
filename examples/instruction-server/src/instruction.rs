//! One instruction: Markdown with YAML front matter.

use serde::Deserialize;
use serde_saphyr::UserMessageFormatter;

/// The contents of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    /// The path below the folder, without `.md`: `process/retrospective`.
    pub(crate) name: String,
    pub(crate) front_matter: FrontMatter,
    /// Everything after the front matter.
    pub(crate) body: String,
}

/// The YAML between the two lines `---`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct FrontMatter {
    pub(crate) title: String,
    pub(crate) category: String,
    /// One sentence.
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    /// Phrases of users who need it.
    #[serde(default)]
    pub(crate) triggers: Vec<String>,
    /// What people type when they want exactly it: `/pongogo-retro`.
    #[serde(default)]
    pub(crate) commands: Vec<String>,
}

/// Why a file is no instruction.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub(crate) struct BadInstruction {
    /// Counted from 1, in the file.
    pub(crate) line: usize,
    pub(crate) why: String,
}

impl Instruction {
    /// Reads the text of a file.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Instruction, BadInstruction> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (yaml, body) = split(text)?;
        let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
        let front_matter: FrontMatter = serde_saphyr::from_str_with_options(yaml, options).map_err(|error| {
            let line = error.location().map_or(1, |at| usize::try_from(at.line()).unwrap_or(1));
            // The first line of the file is the `---` before the YAML.
            BadInstruction { line: line + 1, why: without_place(&error.render_with_formatter(&UserMessageFormatter)) }
        })?;
        let blank = |(field, value): (&str, &String)| {
            let why = format!("`{field}` is empty");
            value.trim().is_empty().then_some(BadInstruction { line: 1, why })
        };
        let required = [("title", &front_matter.title), ("category", &front_matter.category)];
        if let Some(bad) = required.into_iter().find_map(blank) {
            return Err(bad);
        }
        if let Some(command) = front_matter.commands.iter().find(|command| !is_command(command)) {
            let why = format!("{command:?} is no command: one word that begins with `/`");
            let line = text.lines().position(|line| line.contains(command.as_str())).map_or(1, |index| index + 1);
            return Err(BadInstruction { line, why });
        }
        Ok(Instruction { name: name.to_owned(), front_matter, body: body.trim().replace("\r\n", "\n") })
    }
}

fn is_command(text: &str) -> bool {
    text.strip_prefix('/').is_some_and(|word| !word.is_empty() && !word.contains(char::is_whitespace))
}

/// The YAML and the Markdown.
fn split(text: &str) -> Result<(&str, &str), BadInstruction> {
    let bad = |line, why: &str| BadInstruction { line, why: why.to_owned() };
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| line.trim_end() == "---");
    let start = first.ok_or_else(|| bad(1, "no front matter: the first line must be `---`"))?.len();
    let mut end = start;
    for line in lines {
        if line.trim_end() == "---" {
            return Ok((&text[start..end], &text[end + line.len()..]));
        }
        end += line.len();
    }
    Err(bad(1, "the front matter never ends: no second line `---`"))
}

/// Removes the position from a message of the parser: the parser counts lines from the start of the YAML, not of the file.
fn without_place(message: &str) -> String {
    message.rfind(" at line ").map_or(message, |end| &message[..end]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> (usize, String) {
        let bad = Instruction::parse("bad", text).unwrap_err();
        (bad.line, bad.why)
    }

    #[test]
    fn front_matter_and_body_are_separated() {
        let text = "---\ntitle: Work log\ncategory: docs\ntags: [log]\ncommands: [/log]\n---\n\n# Log\n\n---\nrest\n";
        let instruction = Instruction::parse("work-log", text).unwrap();
        assert_eq!(instruction.front_matter.title, "Work log");
        assert_eq!(instruction.front_matter.commands, ["/log"]);
        assert_eq!(instruction.front_matter.triggers, [""; 0]);
        assert_eq!(instruction.body, "# Log\n\n---\nrest");
    }

    #[test]
    fn a_byte_order_mark_and_windows_line_ends_do_no_harm() {
        let text = "\u{feff}---\r\ntitle: A\r\ncategory: b\r\n---\r\nbody\r\n";
        let instruction = Instruction::parse("a", text).unwrap();
        assert_eq!((instruction.front_matter.title.as_str(), instruction.body.as_str()), ("A", "body"));
    }

    #[test]
    fn an_error_has_its_line_in_the_file() {
        assert_eq!(why("# Only Markdown\n"), (1, "no front matter: the first line must be `---`".to_owned()));
        assert_eq!(why("---\ntitle: A\n"), (1, "the front matter never ends: no second line `---`".to_owned()));
        let (line, text) = why("---\ntitle: A\ncategory: b\ntag: [x]\n---\n");
        assert_eq!(line, 4, "{text}");
        assert!(text.contains("tag") && text.contains("tags"), "{text}");
        let (line, text) = why("---\ntitle: A\ncategory: b\ntags: {x: 1}\n---\n");
        assert_eq!(line, 4, "{text}");
        let (line, text) = why("---\ntitle: A\ncategory: [\n---\n");
        assert!((3..=4).contains(&line), "{line}: {text}");
        let (_, text) = why("---\ntitle: A\n---\n");
        assert!(text.contains("category"), "{text}");
        assert_eq!(why("---\ntitle: ''\ncategory: b\n---\n").1, "`title` is empty");
        let command = why("---\ntitle: A\ncategory: b\ncommands: [retro]\n---\n");
        assert_eq!(command, (4, "\"retro\" is no command: one word that begins with `/`".to_owned()));
    }
}
