//! The instructions of a folder, and the search in them.

use rehearsal_core::suggest;
use serde_json::{Map, Value};

use crate::engine::{EngineVersion, Engines};
use crate::instruction::Instruction;
use crate::results::{Filtered, Ranked, RankedInstruction, Shown, Why};

/// Instructions with their search indexes.
pub(crate) struct Library {
    instructions: Vec<Instruction>,
    engines: Engines,
}

/// Which instructions are wanted; what is not given does not matter.
pub(crate) struct Filter {
    /// A name, a title or a tag.
    pub(crate) topic: Option<String>,
    pub(crate) category: Option<String>,
    pub(crate) how: Comparison,
}

/// How a filter is compared; upper and lower case never matter.
#[derive(Clone, Copy)]
pub(crate) enum Comparison {
    Whole,
    Part,
}

impl Library {
    pub(crate) fn new(instructions: Vec<Instruction>) -> Library {
        Library { instructions, engines: Engines::default() }
    }

    /// The instructions for a message: first the one whose command it is, then by relevance.
    pub(crate) fn route(
        &self,
        version: EngineVersion,
        message: &str,
        context: Option<&Map<String, Value>>,
        limit: usize,
    ) -> Ranked {
        let command =
            message.split_whitespace().next().filter(|word| version.knows_commands() && word.starts_with('/'));
        let owner = command.and_then(|command| self.owner(command));
        // BM25 counts a word as often as the query has it: the message counts twice, its context once.
        let query = format!("{message} {message} {}", context.map(words).unwrap_or_default());
        let ranked = self.engines.ranked(version, &self.instructions, &query);
        let others = ranked.into_iter().filter(|(number, _)| Some(*number) != owner);
        let chosen = owner.map(|number| (number, Why::Command)).into_iter();
        let chosen = chosen.chain(others.map(|(number, score)| (number, Why::relevance(score)))).take(limit);
        let show = |(number, why)| {
            let instruction: &Instruction = &self.instructions[number];
            RankedInstruction { instruction: Shown::new(instruction, &instruction.body), why }
        };
        let note = command.filter(|_| owner.is_none()).map(|command| self.no_such_command(command));
        Ranked { engine_version: version, instructions: chosen.map(show).collect(), note }
    }

    /// The passages that have most to do with a query, one of each instruction.
    pub(crate) fn search(&self, version: EngineVersion, query: &str, limit: usize) -> Ranked {
        let mut ranked = self.engines.ranked(version, &self.instructions, query);
        ranked.truncate(limit);
        let numbers: Vec<usize> = ranked.iter().map(|(number, _)| *number).collect();
        let excerpts = self.engines.excerpts(&self.instructions, &numbers, query);
        let show = |((number, score), excerpt): ((usize, f32), &str)| RankedInstruction {
            instruction: Shown::new(&self.instructions[number], excerpt),
            why: Why::relevance(score),
        };
        let instructions = ranked.into_iter().zip(excerpts).map(show).collect();
        Ranked { engine_version: version, instructions, note: None }
    }

    /// The instructions that pass a filter.
    pub(crate) fn get(&self, filter: &Filter) -> Filtered {
        let passes = |one: &&Instruction| filter.passes(one);
        let found: Vec<Shown> = self.instructions.iter().filter(passes).map(|one| Shown::new(one, &one.body)).collect();
        let note = found.is_empty().then(|| self.nothing_like(filter));
        Filtered { instructions: found, note }
    }

    fn owner(&self, command: &str) -> Option<usize> {
        let owns = |one: &Instruction| one.front_matter.commands.iter().any(|own| own.eq_ignore_ascii_case(command));
        self.instructions.iter().position(owns)
    }

    /// `There is no command /pongogo-rtro; did you mean /pongogo-retro?`
    fn no_such_command(&self, command: &str) -> String {
        let known = self.instructions.iter().flat_map(|one| &one.front_matter.commands);
        let close = suggest::closest(command, known.map(String::as_str));
        let hint = close.map(|close| format!("; did you mean {close}?")).unwrap_or_else(|| ".".to_owned());
        format!("There is no command {command}{hint}")
    }

    /// `No instruction has the topic "retrospectve"; did you mean "retrospective"? Categories: process, quality.`
    fn nothing_like(&self, filter: &Filter) -> String {
        let mut categories: Vec<&str> =
            self.instructions.iter().map(|one| one.front_matter.category.as_str()).collect();
        categories.sort_unstable();
        categories.dedup();
        let topics: Vec<&str> = self.instructions.iter().flat_map(topics).collect();
        let wanted = [("topic", &filter.topic, &topics), ("category", &filter.category, &categories)];
        let (mut filters, mut hints) = (Vec::new(), Vec::new());
        for (field, value, known) in wanted {
            let Some(value) = value else { continue };
            filters.push(format!("the {field} {value:?}"));
            let there = known.iter().any(|known| filter.how.matches(known, value));
            if let Some(close) = suggest::closest(value, known.iter().copied()).filter(|_| !there) {
                hints.push(format!("; did you mean {close:?}?"));
            }
        }
        if filters.is_empty() || categories.is_empty() {
            return "There are no instructions.".to_owned();
        }
        let end = if hints.is_empty() { "." } else { "" };
        let (filters, hints, categories) = (filters.join(" and "), hints.concat(), categories.join(", "));
        format!("No instruction has {filters}{hints}{end} Categories: {categories}.")
    }
}

impl Filter {
    fn passes(&self, instruction: &Instruction) -> bool {
        let is = |value: &str, wanted: &Option<String>| {
            wanted.as_deref().is_none_or(|wanted| self.how.matches(value, wanted))
        };
        is(&instruction.front_matter.category, &self.category)
            && (self.topic.is_none() || topics(instruction).any(|topic| is(topic, &self.topic)))
    }
}

impl Comparison {
    fn matches(self, value: &str, wanted: &str) -> bool {
        let (value, wanted) = (value.to_lowercase(), wanted.trim().to_lowercase());
        match self {
            Comparison::Whole => value == wanted,
            Comparison::Part => value.contains(&wanted),
        }
    }
}

/// What an instruction is about.
fn topics(instruction: &Instruction) -> impl Iterator<Item = &str> {
    let Instruction { name, front_matter, .. } = instruction;
    [name, &front_matter.title].into_iter().chain(&front_matter.tags).map(String::as_str)
}

/// All strings in the values of a context, however deep.
fn words(context: &Map<String, Value>) -> String {
    let mut found = Vec::new();
    let mut values: Vec<&Value> = context.values().rev().collect();
    while let Some(value) = values.pop() {
        match value {
            Value::String(text) => found.push(text.as_str()),
            Value::Array(items) => values.extend(items.iter().rev()),
            Value::Object(fields) => values.extend(fields.values().rev()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found.join(" ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::folder::Folder;

    const ENGINE: EngineVersion = EngineVersion::LATEST;

    fn samples() -> Library {
        let folder = Folder::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions")).unwrap();
        assert!(folder.left_out.is_empty(), "{:?}", folder.left_out);
        Library::new(folder.instructions)
    }

    fn names(ranked: &Ranked) -> Vec<&str> {
        ranked.instructions.iter().map(|one| one.instruction.name.as_str()).collect()
    }

    #[test]
    fn every_trigger_of_the_samples_leads_to_its_instruction() {
        let library = samples();
        for instruction in &library.instructions {
            for trigger in &instruction.front_matter.triggers {
                let found = library.route(ENGINE, trigger, None, 2);
                assert!(names(&found).contains(&instruction.name.as_str()), "{trigger}: {:?}", names(&found));
            }
        }
    }

    #[test]
    fn every_command_finds_its_instruction_first_in_any_case() {
        let library = samples();
        for instruction in &library.instructions {
            for command in &instruction.front_matter.commands {
                let found = library.route(ENGINE, &format!("{} now", command.to_uppercase()), None, 1);
                assert_eq!(names(&found), [instruction.name.as_str()]);
                assert!(matches!(found.instructions[0].why, Why::Command));
            }
        }
    }

    #[test]
    fn an_unknown_command_gets_a_suggestion() {
        let found = samples().route(ENGINE, "/pongogo-rtro", None, 5);
        assert_eq!(found.note.as_deref(), Some("There is no command /pongogo-rtro; did you mean /pongogo-retro?"));
        assert_eq!(samples().route(EngineVersion::Durian05, "/pongogo-rtro", None, 5).note, None);
    }

    #[test]
    fn a_filter_compares_whole_or_in_part() {
        let library = samples();
        let get = |topic: Option<&str>, category: Option<&str>, how| {
            let (topic, category) = (topic.map(str::to_owned), category.map(str::to_owned));
            let found = library.get(&Filter { topic, category, how });
            (found.instructions.into_iter().map(|one| one.name).collect::<Vec<_>>(), found.note)
        };
        assert_eq!(get(Some("RETRO"), None, Comparison::Part).0, ["retrospective"]);
        assert_eq!(get(Some("retrospective"), Some("process"), Comparison::Whole).0, ["retrospective"]);
        assert_eq!(get(None, None, Comparison::Part).0.len(), library.instructions.len());
        let (found, note) = get(Some("retrospectve"), None, Comparison::Whole);
        let expected = r#"No instruction has the topic "retrospectve"; did you mean "retrospective"? Categories: "#;
        assert!(found.is_empty() && note.as_ref().is_some_and(|note| note.starts_with(expected)), "{note:?}");
        let (_, note) = get(Some("incident"), Some("process"), Comparison::Part);
        let expected = r#"No instruction has the topic "incident" and the category "process". Categories: "#;
        assert!(note.as_ref().is_some_and(|note| note.starts_with(expected)), "{note:?}");
    }
}
