//! What the tools answer: for programs as JSON, for people as Markdown.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::EngineVersion;
use crate::instruction::Instruction;

/// Instructions that a ranking chose, best first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ranked {
    /// The engine that ranked them.
    pub(crate) engine_version: EngineVersion,
    pub(crate) instructions: Vec<RankedInstruction>,
    /// A note about the query, such as an unknown command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// One instruction and why it is there.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RankedInstruction {
    #[serde(flatten)]
    pub(crate) instruction: Shown,
    #[serde(flatten)]
    pub(crate) why: Why,
}

/// Why an instruction was chosen.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "matched_by", rename_all = "snake_case")]
pub(crate) enum Why {
    /// The message was its command.
    Command,
    /// It has words in common with the query.
    Relevance {
        /// The score of BM25.
        score: f64,
    },
}

impl Why {
    pub(crate) fn relevance(score: f32) -> Why {
        // Three digits, so that the same ranking is the same text everywhere.
        Why::Relevance { score: (f64::from(score) * 1000.0).round() / 1000.0 }
    }
}

/// Instructions that a filter chose, by name.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Filtered {
    pub(crate) instructions: Vec<Shown>,
    /// What there would have been, where nothing was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// An instruction as it is shown.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Shown {
    /// Its path in the folder, without `.md`.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) category: String,
    pub(crate) tags: Vec<String>,
    /// The whole instruction in Markdown, or the passage that fits best.
    pub(crate) text: String,
}

impl Shown {
    pub(crate) fn new(instruction: &Instruction, text: &str) -> Shown {
        let Instruction { name, front_matter, .. } = instruction;
        Shown {
            name: name.clone(),
            title: front_matter.title.clone(),
            category: front_matter.category.clone(),
            tags: front_matter.tags.clone(),
            text: text.to_owned(),
        }
    }
}

/// Which engine ranks from now on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Switched {
    pub(crate) engine_version: EngineVersion,
    pub(crate) previous: EngineVersion,
}

impl fmt::Display for Ranked {
    /// ```text
    /// 1. Retrospective (retrospective, process; its command)
    ///
    /// Hold one when a piece of work is finished …
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ranked { instructions, note, .. } = self;
        let items = instructions.iter().map(|RankedInstruction { instruction, why }| (instruction, why.to_string()));
        entries(f, items, note.as_deref())
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Command => f.write_str("; its command"),
            Why::Relevance { score } => write!(f, "; relevance {score:.3}"),
        }
    }
}

impl fmt::Display for Filtered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        entries(f, self.instructions.iter().map(|shown| (shown, String::new())), self.note.as_deref())
    }
}

impl fmt::Display for Switched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.previous == self.engine_version {
            true => write!(f, "{} was the engine already", self.engine_version),
            false => write!(f, "switched from {} to {}", self.previous, self.engine_version),
        }
    }
}

fn entries<'a>(
    f: &mut fmt::Formatter<'_>,
    items: impl Iterator<Item = (&'a Shown, String)>,
    note: Option<&str>,
) -> fmt::Result {
    let notes = note.map(str::to_owned).into_iter();
    let items = items.enumerate().map(|(index, (shown, why))| {
        let Shown { name, title, category, text, .. } = shown;
        format!("{}. {title} ({name}, {category}{why})\n\n{text}", index + 1)
    });
    let parts: Vec<String> = notes.chain(items).collect();
    match parts.is_empty() {
        true => f.write_str("No instruction has to do with that."),
        false => f.write_str(&parts.join("\n\n")),
    }
}
