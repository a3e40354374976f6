//! What a call of a tool does to the world: the operator's declaration, else the annotations of the server.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde_json::Value;

use super::report::{Effect, EffectFrom};

/// The effect of a tool, and how it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolEffect {
    pub(crate) effect: Effect,
    pub(crate) from: EffectFrom,
    pub(crate) is_reversible: bool,
    pub(crate) notes: Vec<String>,
    /// Whether the annotations contradict each other.
    pub(crate) is_contradictory: bool,
}

/// What an operator declares about a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclaredEffect {
    /// It changes nothing.
    Read,
    /// It adds something.
    Write,
    /// It changes or removes what exists.
    Destructive,
    /// It changes something, and the change can be undone.
    Reversible,
}

impl FromStr for DeclaredEffect {
    type Err = String;

    fn from_str(text: &str) -> Result<DeclaredEffect, String> {
        match text {
            "read" => Ok(DeclaredEffect::Read),
            "write" => Ok(DeclaredEffect::Write),
            "destructive" => Ok(DeclaredEffect::Destructive),
            "reversible" => Ok(DeclaredEffect::Reversible),
            _ => Err(format!("{text:?} is not read, write, destructive or reversible")),
        }
    }
}

/// The operator's declarations, by `server:tool`.
pub(crate) type DeclaredEffects = BTreeMap<String, DeclaredEffect>;

impl ToolEffect {
    /// The effect of a tool of which nothing is known.
    pub(crate) fn unknown() -> ToolEffect {
        ToolEffect::new(Effect::Unknown, EffectFrom::Unknown)
    }

    /// The effect of a tool: `tool` is its element of `tools/list`.
    ///
    /// The defaults of the specification hold only if the server annotates the tool at all. Annotations that contradict each
    /// other count as the worse one.
    pub(crate) fn of_tool(tool: &Value, declared: Option<DeclaredEffect>) -> ToolEffect {
        match declared {
            Some(DeclaredEffect::Read) => return ToolEffect::new(Effect::Read, EffectFrom::Operator),
            Some(DeclaredEffect::Write) => return ToolEffect::new(Effect::Write, EffectFrom::Operator),
            Some(DeclaredEffect::Destructive) => return ToolEffect::new(Effect::Destructive, EffectFrom::Operator),
            Some(DeclaredEffect::Reversible) => {
                let effect = ToolEffect::new(Effect::Write, EffectFrom::Operator);
                return ToolEffect { is_reversible: true, ..effect };
            }
            None => {}
        }
        let Some(annotations) = tool.get("annotations").and_then(Value::as_object).filter(|it| !it.is_empty()) else {
            return ToolEffect::unknown();
        };
        let hint = |name: &str| annotations.get(name).and_then(Value::as_bool);
        let (read_only, destructive) = (hint("readOnlyHint"), hint("destructiveHint"));
        let mut effect = match (read_only, destructive) {
            (Some(true), Some(true)) => {
                ToolEffect { is_contradictory: true, ..ToolEffect::new(Effect::Destructive, EffectFrom::Annotations) }
            }
            (Some(true), _) => ToolEffect::new(Effect::Read, EffectFrom::Annotations),
            (_, Some(true)) => ToolEffect::new(Effect::Destructive, EffectFrom::Annotations),
            (_, Some(false)) => ToolEffect::new(Effect::Write, EffectFrom::Annotations),
            (Some(false), None) => ToolEffect::new(Effect::Destructive, EffectFrom::SpecificationDefault),
            // Only a title, or only hints about other matters: nothing is stated about changes.
            (None, None) if hint("idempotentHint").is_none() && hint("openWorldHint").is_none() => {
                ToolEffect::unknown()
            }
            (None, None) => ToolEffect::new(Effect::Destructive, EffectFrom::SpecificationDefault),
        };
        if effect.effect != Effect::Read && hint("idempotentHint") == Some(true) {
            effect.notes.push("repeatable".to_owned());
        }
        if hint("openWorldHint") == Some(true) {
            effect.notes.push("reaches outside".to_owned());
        }
        effect
    }

    fn new(effect: Effect, from: EffectFrom) -> ToolEffect {
        let is_reversible = effect == Effect::Read;
        ToolEffect { effect, from, is_reversible, notes: Vec::new(), is_contradictory: false }
    }
}

impl Effect {
    /// The name of the effect in a report.
    pub fn word(self) -> &'static str {
        match self {
            Effect::Read => "read",
            Effect::Write => "write",
            Effect::Destructive => "destructive",
            Effect::Unknown => "unknown",
        }
    }

    /// What a tool with this effect does, as a verb.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Effect::Read => "reads",
            Effect::Write => "adds or writes",
            Effect::Destructive => "deletes or overwrites",
            Effect::Unknown => "may change anything:",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_defaults_of_the_specification_hold_only_for_annotated_tools() {
        use Effect::{Destructive, Read, Unknown, Write};
        for (annotations, effect, from) in [
            (json!(null), Unknown, EffectFrom::Unknown),
            (json!({}), Unknown, EffectFrom::Unknown),
            (json!({"title": "List"}), Unknown, EffectFrom::Unknown),
            (json!({"readOnlyHint": true}), Read, EffectFrom::Annotations),
            (json!({"readOnlyHint": true, "destructiveHint": false}), Read, EffectFrom::Annotations),
            (json!({"readOnlyHint": true, "destructiveHint": true}), Destructive, EffectFrom::Annotations),
            (json!({"readOnlyHint": false}), Destructive, EffectFrom::SpecificationDefault),
            (json!({"openWorldHint": true}), Destructive, EffectFrom::SpecificationDefault),
            (json!({"destructiveHint": false}), Write, EffectFrom::Annotations),
            (json!({"destructiveHint": true}), Destructive, EffectFrom::Annotations),
            // A guard written as a string is not a boolean.
            (json!({"readOnlyHint": "true"}), Unknown, EffectFrom::Unknown),
        ] {
            let found = ToolEffect::of_tool(&json!({"annotations": annotations}), None);
            assert_eq!((found.effect, found.from), (effect, from), "{annotations}");
            assert_eq!(found.is_reversible, effect == Read, "{annotations}");
        }
    }

    #[test]
    fn the_operator_wins_over_annotations() {
        let tool = json!({"annotations": {"readOnlyHint": true}});
        let found = ToolEffect::of_tool(&tool, Some(DeclaredEffect::Reversible));
        assert_eq!((found.effect, found.from, found.is_reversible), (Effect::Write, EffectFrom::Operator, true));
    }
}
