//! What a server offers, in full.

use std::io::{self, Write};

use rehearsal::core::protocol::{Prompt, Resource, ResourceTemplate, Tool};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::lists::Lists;
use super::parameter::{Parameter, parameters, prompt_parameters};
use super::screen::Terminal;
use super::screen::wrapped;
use super::screen::{lines, sanitize_line};

/// How far everything about an entry is from the edge.
const INDENT: usize = 2;
/// The minimum width of a description next to its argument.
const NARROWEST: usize = 24;

impl Lists {
    /// Prints everything with its whole description and what each argument is for:
    ///
    /// ```text
    /// tool slow
    ///   Takes its time and shows how far it is; can be cancelled
    ///
    ///   steps=integer       How many steps
    ///   [delay_ms=integer]  How long a step takes
    /// ```
    pub(crate) fn details(&self, screen: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let mut page = Page { screen, out, first: true };
        for tool @ Tool { name, raw, .. } in self.tools.iter().flatten() {
            page.entry("tool", name, None, raw)?;
            page.parameters(&parameters(&tool.input_schema))?;
        }
        for Resource { uri, mime_type, raw, .. } in self.resources.iter().flatten() {
            page.entry("resource", uri, mime_type.as_deref(), raw)?;
        }
        for ResourceTemplate { uri_template, raw, .. } in self.templates.iter().flatten() {
            page.entry("template", uri_template, raw.get("mimeType").and_then(Value::as_str), raw)?;
        }
        for prompt @ Prompt { name, raw, .. } in self.prompts.iter().flatten() {
            page.entry("prompt", name, None, raw)?;
            page.parameters(&prompt_parameters(prompt))?;
        }
        Ok(())
    }
}

struct Page<'a> {
    screen: &'a Terminal,
    out: &'a mut dyn Write,
    first: bool,
}

impl Page<'_> {
    fn entry(&mut self, what: &str, name: &str, kind: Option<&str>, raw: &Value) -> io::Result<()> {
        if !std::mem::take(&mut self.first) {
            writeln!(self.out)?;
        }
        let (heading, green) = (self.screen.palette.heading, self.screen.palette.name);
        let kind = kind.map(|kind| format!(", {}", sanitize_line(kind))).unwrap_or_default();
        writeln!(self.out, "{heading}{what}{heading:#} {green}{}{green:#}{kind}", sanitize_line(name))?;
        let text = |key: &str| raw.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        match text("description").or_else(|| text("title")) {
            Some(text) => lines(text.trim()).lines().try_for_each(|line| self.prose(line)),
            None => Ok(()),
        }
    }

    /// Prints a line. If it is too long for the terminal, it is broken between words.
    fn prose(&mut self, line: &str) -> io::Result<()> {
        match self.screen.width.filter(|width| line.width() + INDENT > *width) {
            Some(width) => self.lines(&wrapped(line.split(' '), width - INDENT.min(width))),
            None => self.lines(&[line.to_owned()]),
        }
    }

    fn lines(&mut self, lines: &[String]) -> io::Result<()> {
        lines.iter().try_for_each(|line| writeln!(self.out, "{}", indented(line)))
    }

    fn parameters(&mut self, parameters: &[Parameter]) -> io::Result<()> {
        if !parameters.is_empty() {
            writeln!(self.out)?;
        }
        let width = parameters.iter().map(|one| one.usage().chars().count()).max().unwrap_or_default();
        for parameter in parameters {
            let usage = parameter.usage();
            let description = parameter.description.as_deref().unwrap_or_default().split_whitespace();
            let mut description = description.collect::<Vec<_>>().join(" ");
            // Where a table has no room for all choices.
            if usage.contains('…') {
                let gap = if description.is_empty() { "" } else { "; " };
                description = format!("{description}{gap}one of {}", parameter.choices().join(", "));
            }
            self.parameter(&sanitize_line(&usage), width, &sanitize_line(&description))?;
        }
        Ok(())
    }

    /// Prints the description next to the usage, or below it if the terminal is too narrow.
    fn parameter(&mut self, usage: &str, width: usize, description: &str) -> io::Result<()> {
        let (beside, below) = (width + 2, 4);
        let Some(screen) = self.screen.width.filter(|screen| INDENT + beside + description.width() > *screen) else {
            return self.lines(&[format!("{usage:width$}  {description}")]);
        };
        let room = |at: usize| screen.saturating_sub(INDENT + at);
        let words = description.split(' ');
        if room(beside) < NARROWEST {
            self.lines(&[usage.to_owned()])?;
            let lines = wrapped(words, room(below));
            return self.lines(&lines.iter().map(|line| format!("{:below$}{line}", "")).collect::<Vec<_>>());
        }
        let first = std::iter::once(usage).chain(std::iter::repeat(""));
        let lines = wrapped(words, room(beside));
        let lines = first.zip(&lines).map(|(left, line)| format!("{left:width$}  {line}"));
        self.lines(&lines.collect::<Vec<_>>())
    }
}

fn indented(line: &str) -> String {
    format!("{:INDENT$}{line}", "").trim_end().to_owned()
}
