//! The lists of a server with all details.

use std::io::{self, Write};

use rehearsal::core::protocol::{Prompt, Resource, ResourceTemplate, Tool};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::lists::PrintedLists;
use super::parameter::prompt_parameters;
use super::schema_fields::{SchemaField, schema_fields};
use super::terminal::Terminal;
use super::terminal::wrapped;
use super::terminal::{lines, sanitize_line};

/// The indentation of the lines below a heading, and of nested fields.
const INDENT: usize = 2;
/// The minimum width of a description next to its field.
const MIN_DESCRIPTION: usize = 24;

impl PrintedLists {
    /// Prints every item with its whole description, its annotations and the fields of its schemas:
    ///
    /// ```text
    /// tool slow
    ///   Counts to a number; can be cancelled
    ///   annotations: readOnlyHint=true
    ///
    ///   steps=integer       How many steps; from 1 to 100
    ///   [delay_ms=integer]  How long a step takes; default 10
    ///
    ///   output
    ///     count=integer
    /// ```
    pub(crate) fn details(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let mut page = Page { terminal, out, first: true };
        for tool @ Tool { name, raw, .. } in self.tools.iter().flatten() {
            page.entry("tool", name, None, raw)?;
            page.fields(&schema_fields(&tool.input_schema))?;
            if let Some(schema) = raw.get("outputSchema").filter(|schema| schema.is_object()) {
                page.output(&schema_fields(schema))?;
            }
        }
        for Resource { uri, mime_type, raw, .. } in self.resources.iter().flatten() {
            page.entry("resource", uri, mime_type.as_deref(), raw)?;
        }
        for ResourceTemplate { uri_template, raw, .. } in self.templates.iter().flatten() {
            page.entry("template", uri_template, raw.get("mimeType").and_then(Value::as_str), raw)?;
        }
        for prompt @ Prompt { name, raw, .. } in self.prompts.iter().flatten() {
            page.entry("prompt", name, None, raw)?;
            page.fields(&prompt_parameters(prompt).iter().map(SchemaField::flat).collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

struct Page<'a> {
    terminal: &'a Terminal,
    out: &'a mut dyn Write,
    first: bool,
}

impl Page<'_> {
    fn entry(&mut self, what: &str, name: &str, kind: Option<&str>, raw: &Value) -> io::Result<()> {
        if !std::mem::take(&mut self.first) {
            writeln!(self.out)?;
        }
        let (heading, green) = (self.terminal.palette.heading, self.terminal.palette.name);
        let kind = kind.map(|kind| format!(", {}", sanitize_line(kind))).unwrap_or_default();
        writeln!(self.out, "{heading}{what}{heading:#} {green}{}{green:#}{kind}", sanitize_line(name))?;
        let text = |key: &str| raw.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        if let Some(text) = text("description").or_else(|| text("title")) {
            lines(text.trim()).lines().try_for_each(|line| self.prose(line))?;
        }
        match annotations(raw) {
            Some(annotations) => self.prose(&sanitize_line(&format!("annotations: {annotations}"))),
            None => Ok(()),
        }
    }

    /// Prints a line. If it is too long for the terminal, it is broken between words.
    fn prose(&mut self, line: &str) -> io::Result<()> {
        match self.terminal.width.filter(|width| line.width() + INDENT > *width) {
            Some(width) => self.lines(&wrapped(line.split(' '), width - INDENT.min(width))),
            None => self.lines(&[line.to_owned()]),
        }
    }

    fn lines(&mut self, lines: &[String]) -> io::Result<()> {
        lines.iter().try_for_each(|line| writeln!(self.out, "{}", indented(line)))
    }

    fn fields(&mut self, fields: &[SchemaField]) -> io::Result<()> {
        if !fields.is_empty() {
            writeln!(self.out)?;
        }
        self.field_lines(fields, 0)
    }

    /// Prints the fields of the output schema of a tool below a heading.
    fn output(&mut self, fields: &[SchemaField]) -> io::Result<()> {
        let heading = self.terminal.palette.heading;
        writeln!(self.out, "\n{:INDENT$}{heading}output{heading:#}", "")?;
        self.field_lines(fields, 1)
    }

    /// Prints one line for each field, with the texts in one column; `depth` is that of the outermost field.
    fn field_lines(&mut self, fields: &[SchemaField], depth: usize) -> io::Result<()> {
        let usage = |field: &SchemaField| {
            let indent = (depth + field.depth) * INDENT;
            format!("{:indent$}{}", "", sanitize_line(&field.usage))
        };
        let width = fields.iter().map(|field| usage(field).width()).max().unwrap_or_default();
        fields.iter().try_for_each(|field| self.field(&usage(field), width, &sanitize_line(&field.text)))
    }

    /// Prints the description next to the usage, or below it if the terminal is too narrow.
    fn field(&mut self, usage: &str, width: usize, description: &str) -> io::Result<()> {
        let (beside, below) = (width + 2, 4);
        let Some(terminal) = self.terminal.width.filter(|terminal| INDENT + beside + description.width() > *terminal)
        else {
            return self.lines(&[format!("{usage:width$}  {description}")]);
        };
        let room = |at: usize| terminal.saturating_sub(INDENT + at);
        let words = description.split(' ');
        if room(beside) < MIN_DESCRIPTION {
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

/// The annotations of an item: `readOnlyHint=true, title="Forecast"`.
fn annotations(raw: &Value) -> Option<String> {
    let annotations = raw.get("annotations")?.as_object().filter(|annotations| !annotations.is_empty())?;
    Some(annotations.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", "))
}

fn indented(line: &str) -> String {
    format!("{:INDENT$}{line}", "").trim_end().to_owned()
}
