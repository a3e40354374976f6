//! Ranking: BM25 of the `bm25` crate over the fields of an instruction.

use std::fmt;
use std::sync::OnceLock;

use bm25::{Document, Language, SearchEngine, SearchEngineBuilder};
use rehearsal_core::suggest;
use schemars::JsonSchema;
use serde::Serialize;

use crate::instruction::Instruction;

/// The engines that there are, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) enum EngineVersion {
    /// Ranks by the body alone and knows no commands.
    #[serde(rename = "durian-0.5")]
    Durian05,
    /// Ranks by title, triggers, tags, description and body, and knows commands.
    #[serde(rename = "durian-0.6")]
    Durian06,
}

impl EngineVersion {
    pub(crate) const ALL: [EngineVersion; 2] = [EngineVersion::Durian05, EngineVersion::Durian06];
    pub(crate) const LATEST: EngineVersion = EngineVersion::Durian06;

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            EngineVersion::Durian05 => "durian-0.5",
            EngineVersion::Durian06 => "durian-0.6",
        }
    }

    /// Whether `/word` leads straight to the instruction that lists it.
    pub(crate) fn knows_commands(self) -> bool {
        match self {
            EngineVersion::Durian05 => false,
            EngineVersion::Durian06 => true,
        }
    }

    /// What the engine reads of an instruction.
    ///
    /// A field counts as many times as it is repeated. Weighting how often a word occurs, before BM25 dampens that, is
    /// what BM25F does; so the crate needs to know nothing of fields.
    fn text(self, instruction: &Instruction) -> String {
        let Instruction { front_matter, body, .. } = instruction;
        let weighted: &[(usize, &[String])] = match self {
            EngineVersion::Durian05 => &[],
            EngineVersion::Durian06 => &[
                (4, std::slice::from_ref(&front_matter.title)),
                (3, &front_matter.triggers),
                (2, &front_matter.tags),
                (2, std::slice::from_ref(&front_matter.description)),
            ],
        };
        let repeated = weighted.iter().flat_map(|(weight, field)| std::iter::repeat_n(*field, *weight)).flatten();
        repeated.chain([body]).map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for EngineVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// No engine has that name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown engine version {name:?}; there are {}{}", known(), did_you_mean(.name))]
pub(crate) struct UnknownEngine {
    name: String,
}

fn known() -> String {
    EngineVersion::ALL.map(EngineVersion::as_str).join(" and ")
}

fn did_you_mean(name: &str) -> String {
    let close = suggest::closest(name, EngineVersion::ALL.map(EngineVersion::as_str));
    close.map(|close| format!("; did you mean {close}?")).unwrap_or_default()
}

impl std::str::FromStr for EngineVersion {
    type Err = UnknownEngine;

    fn from_str(text: &str) -> Result<EngineVersion, UnknownEngine> {
        let found = EngineVersion::ALL.into_iter().find(|version| version.as_str() == text);
        found.ok_or_else(|| UnknownEngine { name: text.to_owned() })
    }
}

/// Texts that are ready to be ranked; `K` identifies the text.
struct Index<K>(SearchEngine<K>);

impl<K: Copy + Ord + std::hash::Hash> Index<K> {
    fn new(texts: impl IntoIterator<Item = (K, String)>) -> Index<K> {
        let documents = texts.into_iter().map(|(key, text)| Document::new(key, text));
        Index(SearchEngineBuilder::with_documents(Language::English, documents).build())
    }

    /// Everything that shares a word with the query, best first; equals in the order of their keys.
    fn ranked(&self, query: &str) -> Vec<(K, f32)> {
        let found = self.0.search(query, None);
        let mut ranked: Vec<_> = found.into_iter().map(|result| (result.document.id, result.score)).collect();
        ranked.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        ranked
    }
}

/// All engines for one set of instructions.
///
/// An index is built on first use, so that the handshake does not wait for it.
#[derive(Default)]
pub(crate) struct Engines {
    durian_05: OnceLock<Index<usize>>,
    durian_06: OnceLock<Index<usize>>,
    passages: OnceLock<Index<(usize, usize)>>,
}

impl Engines {
    /// The numbers of the instructions that have to do with the query, best first, and how much.
    pub(crate) fn ranked(
        &self,
        version: EngineVersion,
        instructions: &[Instruction],
        query: &str,
    ) -> Vec<(usize, f32)> {
        let index = match version {
            EngineVersion::Durian05 => &self.durian_05,
            EngineVersion::Durian06 => &self.durian_06,
        };
        let texts = || instructions.iter().enumerate().map(|(number, one)| (number, version.text(one)));
        index.get_or_init(|| Index::new(texts())).ranked(query)
    }

    /// For each instruction of `numbers`, its passage that has most to do with the query; its first where none has.
    pub(crate) fn excerpts<'a>(&self, instructions: &'a [Instruction], numbers: &[usize], query: &str) -> Vec<&'a str> {
        let ranked = self.passages.get_or_init(|| Index::new(all_passages(instructions))).ranked(query);
        let best = |&number: &usize| {
            let part = ranked.iter().find(|((one, _), _)| *one == number).map_or(0, |((_, part), _)| *part);
            passages(&instructions[number]).nth(part).unwrap_or_default()
        };
        numbers.iter().map(best).collect()
    }
}

fn all_passages(instructions: &[Instruction]) -> impl Iterator<Item = ((usize, usize), String)> {
    instructions.iter().enumerate().flat_map(|(number, instruction)| {
        passages(instruction).enumerate().map(move |(part, text)| ((number, part), text.to_owned()))
    })
}

/// The paragraphs of an instruction, without its headings.
fn passages(instruction: &Instruction) -> impl Iterator<Item = &str> {
    instruction.body.split("\n\n").map(str::trim).filter(|text| !text.is_empty() && !text.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instruction(name: &str, front_matter: &str, body: &str) -> Instruction {
        let text = format!("---\ntitle: {name}\ncategory: test\n{front_matter}\n---\n{body}\n");
        Instruction::parse(name, &text).unwrap()
    }

    fn order(version: EngineVersion, instructions: &[Instruction], query: &str) -> Vec<String> {
        let ranked = Engines::default().ranked(version, instructions, query);
        ranked.into_iter().map(|(number, _)| instructions[number].name.clone()).collect()
    }

    #[test]
    fn title_trigger_tag_and_text_have_decreasing_weight() {
        let same = "Nothing about it here, only words of the same number.";
        let instructions = [
            instruction("body", "tags: [filler]", "A rollback is mentioned, beside words of the same number."),
            instruction("tag", "tags: [rollback]", same),
            instruction("trigger", "triggers: [rollback]", same),
            instruction("rollback", "tags: [filler]", same),
        ];
        assert_eq!(order(EngineVersion::Durian06, &instructions, "rollback"), ["rollback", "trigger", "tag", "body"]);
        assert_eq!(order(EngineVersion::Durian05, &instructions, "rollback"), ["body"]);
    }

    #[test]
    fn an_excerpt_is_the_passage_that_fits_best() {
        let body = "# Heading about cats\n\nFirst about dogs.\n\nThen about cats.\n\nAt last birds.";
        let instructions = [instruction("animals", "", body)];
        let excerpts = |query| Engines::default().excerpts(&instructions, &[0], query);
        assert_eq!(excerpts("cat"), ["Then about cats."]);
        assert_eq!(excerpts("fish"), ["First about dogs."]);
    }
}
