//! The lists of a server in their printed form.

use std::io::{self, Write};

use rehearsal::client::{ClientError, Listing, UnusableItem};
use rehearsal::core::protocol::{Prompt, Resource, ResourceTemplate, Tool};
use serde_json::{Map, Value};

use super::parameter::{Parameter, parameters};
use super::table::{Cell, Table};
use super::terminal::Terminal;

/// Maximum length of a description in a table, in characters.
const MAX_DESCRIPTION: usize = 100;

/// The lists of a server; `None` for one that was not requested.
#[derive(Debug, Default)]
pub(crate) struct PrintedLists {
    /// The tools.
    pub(crate) tools: Option<Vec<Tool>>,
    /// The resources.
    pub(crate) resources: Option<Vec<Resource>>,
    /// The resource templates.
    pub(crate) templates: Option<Vec<ResourceTemplate>>,
    /// The prompts.
    pub(crate) prompts: Option<Vec<Prompt>>,
    /// Listed items that cannot be used.
    pub(crate) unusable: Vec<UnusableItem>,
    /// Lists that the server answered with an error, or with an invalid result.
    pub(crate) refused: Vec<ClientError>,
}

impl PrintedLists {
    /// Returns the usable items of a list, and stores the others as unusable.
    pub(crate) fn usable<T>(&mut self, listing: Listing<T>) -> Option<Vec<T>> {
        self.unusable.extend(listing.unusable);
        Some(listing.items)
    }

    /// Prints one object of the lists exactly as the server sent them: `{"tools":[…],"prompts":[…]}`.
    /// For one of several servers, the object begins with its name: `{"server":"weather","tools":[…]}`.
    pub(crate) fn json(&self, server: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
        let mut lists = Map::new();
        lists.extend(server.map(|name| ("server".to_owned(), name.into())));
        let mut put = |key: &str, list: Option<Vec<&Value>>| {
            if let Some(list) = list {
                lists.insert(key.to_owned(), list.into_iter().cloned().collect());
            }
        };
        put("tools", self.tools.as_ref().map(|list| list.iter().map(|tool| &tool.raw).collect()));
        put("resources", self.resources.as_ref().map(|list| list.iter().map(|resource| &resource.raw).collect()));
        put("resourceTemplates", self.templates.as_ref().map(|list| list.iter().map(|one| &one.raw).collect()));
        put("prompts", self.prompts.as_ref().map(|list| list.iter().map(|prompt| &prompt.raw).collect()));
        writeln!(out, "{}", Value::Object(lists))
    }

    /// Prints a table for each list that is not empty:
    ///
    /// ```text
    /// TOOL  ARGUMENTS                            DESCRIPTION
    /// echo  message=string                       Returns its input
    /// slow  steps=integer [delay_ms=integer]     Takes its time
    ///
    /// PROMPT  ARGUMENTS  DESCRIPTION
    /// greet   who        Greets a user
    /// ```
    pub(crate) fn tables(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let mut between = Between { first: true };
        if let Some(tools) = self.tools.as_deref().filter(|list| !list.is_empty()) {
            between.tables(out)?;
            print_tools(tools, terminal, out)?;
        }
        if let Some(resources) = self.resources.as_deref().filter(|list| !list.is_empty()) {
            between.tables(out)?;
            let mut table = Table::new(["RESOURCE", "NAME", "TYPE", "DESCRIPTION"]);
            for Resource { uri, name, mime_type, raw } in resources {
                table.row([cell(Some(uri)), cell(name.as_ref()), cell(mime_type.as_ref()), description(raw)]);
            }
            table.print(terminal, out)?;
        }
        if let Some(templates) = self.templates.as_deref().filter(|list| !list.is_empty()) {
            between.tables(out)?;
            let mut table = Table::new(["TEMPLATE", "NAME", "DESCRIPTION"]);
            for ResourceTemplate { uri_template, name, raw } in templates {
                table.row([cell(Some(uri_template)), cell(name.as_ref()), description(raw)]);
            }
            table.print(terminal, out)?;
        }
        if let Some(prompts) = self.prompts.as_deref().filter(|list| !list.is_empty()) {
            between.tables(out)?;
            let mut table = Table::new(["PROMPT", "ARGUMENTS", "DESCRIPTION"]);
            for Prompt { name, arguments, raw, .. } in prompts {
                let usage = arguments.iter().map(|argument| {
                    if argument.required { argument.name.clone() } else { format!("[{}]", argument.name) }
                });
                table.row([cell(Some(name)), Cell::Words(usage.collect()), description(raw)]);
            }
            table.print(terminal, out)?;
        }
        Ok(())
    }

    /// The requested lists without an element: `tools`, `prompts`.
    pub(crate) fn empty(&self) -> Vec<&'static str> {
        let lists = [
            ("tools", self.tools.as_ref().map(Vec::len)),
            ("resources", self.resources.as_ref().map(Vec::len)),
            ("resource templates", self.templates.as_ref().map(Vec::len)),
            ("prompts", self.prompts.as_ref().map(Vec::len)),
        ];
        lists.into_iter().filter(|(_, length)| *length == Some(0)).map(|(name, _)| name).collect()
    }
}

fn print_tools(tools: &[Tool], terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(["TOOL", "ARGUMENTS", "DESCRIPTION"]);
    for tool in tools {
        let usage = parameters(&tool.input_schema).iter().map(Parameter::usage).collect();
        table.row([cell(Some(&tool.name)), Cell::Words(usage), description(&tool.raw)]);
    }
    table.print(terminal, out)
}

/// An empty line between two tables.
struct Between {
    first: bool,
}

impl Between {
    fn tables(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::take(&mut self.first) { Ok(()) } else { writeln!(out) }
    }
}

fn cell(text: Option<&String>) -> Cell {
    text.map_or_else(Cell::empty, |text| Cell::Name(text.clone()))
}

/// The first line of a description, or the first sentence of a long line. `…` replaces the rest.
fn description(raw: &Value) -> Cell {
    let text = |key: &str| raw.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let text = text("description").or_else(|| text("title")).unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let shown = if line.len() > MAX_DESCRIPTION { first_sentence(line) } else { line }.trim_end();
    let rest = if shown.len() < text.len() { " …" } else { "" };
    Cell::Prose(format!("{shown}{rest}"))
}

fn first_sentence(text: &str) -> &str {
    let begins = |rest: &str| rest.trim_start().starts_with(char::is_uppercase);
    // A dot inside the last word is an abbreviation, such as `e.g.`.
    let ends = |until: &str| until.rsplit(' ').next().is_some_and(|word| !word.contains('.'));
    let mut ends = text.match_indices(". ").filter(|&(at, _)| begins(&text[at + 1..]) && ends(&text[..at]));
    ends.next().map_or(text, |(at, _)| &text[..=at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_cut_after_its_first_sentence() {
        assert_eq!(first_sentence("Read a whole file. Handles encodings."), "Read a whole file.");
        assert_eq!(first_sentence("Reads files, e.g. Markdown"), "Reads files, e.g. Markdown");
        assert_eq!(first_sentence("Takes version 1. 2 is not known"), "Takes version 1. 2 is not known");
        assert_eq!(first_sentence(""), "");
    }
}
