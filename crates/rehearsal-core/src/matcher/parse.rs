//! Parses a matcher from YAML or JSON.
//!
//! ```text
//! a scalar                             exactly this value
//! an array                             element by element
//! an object                            its keys must match, other keys are allowed
//! an object of operator words only     those operators, all of which must hold
//! ```

use std::ops::Bound;

use serde_json::{Map, Number, Value};

use super::data_or_operators::{ObjectKind, as_data, kind_named};
use super::matcher::{JsonPathMatcher, Matcher};
use super::pattern::{Contains, Pattern, SearchText, TextCase};
use super::range::Range;
use super::schema::Schema;
use crate::json::{Path, PathQuery, PathQueryError, Segment, excerpt};

/// Maximum depth of a written matcher, data included.
pub const DEPTH_LIMIT: usize = 128;

/// How many bytes of a wrong operand an error shows.
const OPERAND_EXCERPT: usize = 40;

impl Matcher {
    /// Parses a matcher.
    pub fn parse(written: &Value) -> Result<Matcher, MatcherError> {
        Parser::new(written)?.matcher(written)
    }

    /// Parses an object whose keys are known to be data, such as the arguments of a tool: at the top, `type` and
    /// `length` are ordinary keys. Below, operators are operators.
    pub fn parse_fields(written: &Map<String, Value>) -> Result<Matcher, MatcherError> {
        Parser::of_keys(written)?.fields(written)
    }

    /// Parses a matcher for arguments, or for input responses by name. Its top-level keys are operators only if all of
    /// them apply to a whole object (`any_of`, `exact` and others). `type`, `length` and similar words are names there,
    /// and so is every key for which `is_name` returns true.
    pub fn parse_arguments(
        written: &Map<String, Value>,
        is_name: impl Fn(&str) -> bool,
    ) -> Result<Matcher, MatcherError> {
        match ObjectKind::of_arguments(written, is_name)? {
            ObjectKind::Data => Matcher::parse_fields(written),
            ObjectKind::Operators => Parser::of_keys(written)?.operators(written),
        }
    }
}

/// Parses a written matcher; `path` is the current path in it.
struct Parser {
    path: Path,
}

impl Parser {
    /// Checks the depth once for the whole matcher, so that everything after may recurse.
    fn new(written: &Value) -> Result<Parser, MatcherError> {
        let mut path = Path::root();
        refuse_depth(written, DEPTH_LIMIT, &mut path)?;
        Ok(Parser { path: Path::root() })
    }

    /// Checks the depth of the values under some keys, whether the keys are data or operators.
    fn of_keys(written: &Map<String, Value>) -> Result<Parser, MatcherError> {
        let mut parser = Parser { path: Path::root() };
        for (key, value) in written {
            parser.below(key.as_str(), |parser| refuse_depth(value, DEPTH_LIMIT - 1, &mut parser.path))?;
        }
        Ok(parser)
    }

    fn below<T>(
        &mut self,
        segment: impl Into<Segment>,
        read: impl FnOnce(&mut Parser) -> Result<T, MatcherError>,
    ) -> Result<T, MatcherError> {
        self.path.push(segment);
        let result = read(self);
        self.path.pop();
        result
    }

    fn matcher(&mut self, written: &Value) -> Result<Matcher, MatcherError> {
        match written {
            Value::Object(fields) => match ObjectKind::from_fields(fields).map_err(|error| self.placed(error))? {
                ObjectKind::Data => self.fields(fields),
                ObjectKind::Operators => self.operators(fields),
            },
            Value::Array(elements) => self.list(elements).map(Matcher::Array),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(Matcher::Exact(written.clone())),
        }
    }

    fn list(&mut self, elements: &[Value]) -> Result<Vec<Matcher>, MatcherError> {
        let elements = elements.iter().enumerate();
        elements.map(|(index, element)| self.below(index, |parser| parser.matcher(element))).collect()
    }

    fn fields(&mut self, fields: &Map<String, Value>) -> Result<Matcher, MatcherError> {
        let fields = fields.iter().map(|(key, value)| {
            let matcher = self.below(key.as_str(), |parser| parser.matcher(value))?;
            Ok((key.clone(), matcher))
        });
        fields.collect::<Result<_, _>>().map(Matcher::Object)
    }

    /// All the operators of one object, joined by "and".
    fn operators(&mut self, fields: &Map<String, Value>) -> Result<Matcher, MatcherError> {
        let case = self.case(fields)?;
        let mut matchers = Vec::new();
        if let Some(range) = self.range(fields)? {
            matchers.push(Matcher::Range(range));
        }
        for (key, operand) in fields {
            let word = named(key).expect("only objects of operators come here");
            let matcher = self.below(word, |parser| parser.operator(word, operand, case))?;
            matchers.extend(matcher);
        }
        Ok(match <[Matcher; 1]>::try_from(matchers) {
            Ok([only]) => only,
            Err(several) => Matcher::AllOf(several),
        })
    }

    /// Parses one operator; `None` for an operator that was parsed together with others.
    fn operator(
        &mut self,
        word: &'static str,
        operand: &Value,
        case: TextCase,
    ) -> Result<Option<Matcher>, MatcherError> {
        let matcher = match word {
            "gt" | "gte" | "lt" | "lte" | "ignore_case" => return Ok(None),
            "any" => match operand {
                Value::Bool(true) => Matcher::Any,
                _ => return Err(self.wrong_operand(word, "only `true`", operand)),
            },
            "present" => match operand {
                Value::Bool(true) => Matcher::Any,
                Value::Bool(false) => Matcher::Absent,
                _ => return Err(self.wrong_operand(word, "`true` or `false`", operand)),
            },
            "exact" => Matcher::Exact(operand.clone()),
            "subset" => match operand {
                Value::Object(fields) => self.fields(fields)?,
                _ => return Err(self.wrong_operand(word, "an object", operand)),
            },
            "contains" => Matcher::Contains(Box::new(match operand {
                Value::String(text) => Contains::Text(SearchText::new(text, case)),
                other => Contains::Element(self.matcher(other)?),
            })),
            "matches" => match operand {
                Value::String(written) => {
                    Matcher::Pattern(Pattern::compile(written, case).map_err(|problem| problem.at(&self.path))?)
                }
                _ => return Err(self.wrong_operand(word, "a regular expression", operand)),
            },
            "type" => self.types(operand)?,
            "schema" => match operand {
                Value::Object(_) | Value::Bool(_) => Matcher::Schema(self.schema(operand)?),
                _ => return Err(self.wrong_operand(word, "a JSON Schema", operand)),
            },
            "length" => Matcher::Length(self.length(operand)?),
            "each" => Matcher::each(self.matcher(operand)?),
            "at" => self.places(operand)?,
            "any_of" => Matcher::AnyOf(self.alternatives(word, operand)?),
            "all_of" => Matcher::AllOf(self.alternatives(word, operand)?),
            "not" => !self.matcher(operand)?,
            other => unreachable!("`{other}` is not in the list of operators"),
        };
        Ok(Some(matcher))
    }

    fn alternatives(&mut self, word: &'static str, operand: &Value) -> Result<Vec<Matcher>, MatcherError> {
        match operand {
            Value::Array(elements) if !elements.is_empty() => self.list(elements),
            _ => Err(self.wrong_operand(word, "a list with at least one matcher", operand)),
        }
    }

    fn types(&self, operand: &Value) -> Result<Matcher, MatcherError> {
        let kinds = match operand {
            Value::Array(names) => names.iter().filter_map(kind_named).collect(),
            single => Vec::from_iter(kind_named(single)),
        };
        match kinds.as_slice() {
            [] => Err(self.wrong_operand("type", "the name of a type", operand)),
            [kind] => Ok(Matcher::Type(*kind)),
            several => Ok(Matcher::AnyOf(several.iter().copied().map(Matcher::Type).collect())),
        }
    }

    fn schema(&self, operand: &Value) -> Result<Schema, MatcherError> {
        Schema::compile(operand).map_err(|error| self.placed(error))
    }

    /// An error about the current value, with its path from the root.
    fn placed(&self, error: MatcherError) -> MatcherError {
        let path = self.path.concat(&error.path);
        MatcherError { path, ..error }
    }

    fn places(&mut self, operand: &Value) -> Result<Matcher, MatcherError> {
        let Value::Object(places) = operand else {
            return Err(self.wrong_operand("at", "an object of JSON paths", operand));
        };
        let matchers = places.iter().map(|(written, operand)| {
            self.below(written.as_str(), |parser| {
                let matcher = parser.matcher(operand)?;
                let at =
                    PathQuery::parse(written).map(|query| Matcher::At(Box::new(JsonPathMatcher { query, matcher })));
                at.map_err(|error| {
                    let hint =
                        "the keys under `at` are JSON paths, which begin with `$`: at: { $.items[*].name: Oslo }";
                    MatcherProblem::BadPath(error).at(&parser.path).hint(hint)
                })
            })
        });
        let matchers = matchers.collect::<Result<Vec<_>, _>>()?;
        match <[Matcher; 1]>::try_from(matchers) {
            Ok([only]) => Ok(only),
            Err(none) if none.is_empty() => Err(self.wrong_operand("at", "at least one JSON path", operand)),
            Err(several) => Ok(Matcher::AllOf(several)),
        }
    }

    fn case(&mut self, fields: &Map<String, Value>) -> Result<TextCase, MatcherError> {
        let Some(operand) = fields.get("ignore_case") else {
            return Ok(TextCase::Sensitive);
        };
        let on_text = fields.get("contains").is_some_and(Value::is_string);
        self.below("ignore_case", |parser| match operand {
            Value::Bool(_) if !on_text && !fields.contains_key("matches") => {
                let problem = MatcherProblem::NeedsPartner {
                    operator: "ignore_case",
                    partners: "`matches`, or `contains` and a string",
                };
                Err(problem.at(&parser.path))
            }
            Value::Bool(true) => Ok(TextCase::Insensitive),
            Value::Bool(false) => Ok(TextCase::Sensitive),
            _ => Err(parser.wrong_operand("ignore_case", "`true` or `false`", operand)),
        })
    }

    /// The range that `gt`, `gte`, `lt` and `lte` make together.
    fn range(&mut self, fields: &Map<String, Value>) -> Result<Option<Range>, MatcherError> {
        let low = self.bound(fields, ["gte", "gt"])?;
        let high = self.bound(fields, ["lte", "lt"])?;
        if let (Bound::Unbounded, Bound::Unbounded) = (&low, &high) {
            return Ok(None);
        }
        let range = Range::new(low, high);
        if range.is_empty() {
            let range = range.to_string();
            return Err(MatcherProblem::EmptyRange { range }.at(&self.path));
        }
        Ok(Some(range))
    }

    fn bound(
        &mut self,
        fields: &Map<String, Value>,
        [included, excluded]: [&'static str; 2],
    ) -> Result<Bound<Number>, MatcherError> {
        let mut number = |word: &'static str| match fields.get(word) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.clone())),
            Some(other) => self.below(word, |parser| Err(parser.wrong_operand(word, "a number", other))),
        };
        match (number(included)?, number(excluded)?) {
            (None, None) => Ok(Bound::Unbounded),
            (Some(number), None) => Ok(Bound::Included(number)),
            (None, Some(number)) => Ok(Bound::Excluded(number)),
            (Some(_), Some(_)) => {
                let (operator, partners) = match excluded {
                    "gt" => ("gt", "`lt` or `lte`, not `gte`"),
                    _ => ("lt", "`gt` or `gte`, not `lte`"),
                };
                Err(MatcherProblem::NeedsPartner { operator, partners }.at(&self.path))
            }
        }
    }

    fn length(&mut self, operand: &Value) -> Result<Range, MatcherError> {
        let wanted = "a whole number or a range such as { gte: 1 }";
        match operand {
            Value::Number(length) if length.is_u64() => Ok(Range::only(length.clone())),
            Value::Object(bounds) => {
                let unknown = bounds.keys().find(|key| !["gt", "gte", "lt", "lte"].contains(&key.as_str()));
                match (unknown, self.range(bounds)?) {
                    (None, Some(range)) => Ok(range),
                    _ => Err(self.wrong_operand("length", wanted, operand)),
                }
            }
            _ => Err(self.wrong_operand("length", wanted, operand)),
        }
    }

    fn wrong_operand(&self, operator: &'static str, wanted: &'static str, got: &Value) -> MatcherError {
        let got = excerpt(got, OPERAND_EXCERPT);
        let problem = MatcherProblem::WrongOperand { operator, wanted, got };
        problem.at(&self.path).hint(as_data(operator))
    }
}

fn refuse_depth(written: &Value, left: usize, path: &mut Path) -> Result<(), MatcherError> {
    let mut descend = |segment: Segment, value: &Value| {
        if left == 0 {
            return Err(MatcherProblem::TooDeep { limit: DEPTH_LIMIT }.at(path));
        }
        path.push(segment);
        refuse_depth(value, left - 1, path)?;
        path.pop();
        Ok(())
    };
    match written {
        Value::Array(elements) => {
            elements.iter().enumerate().try_for_each(|(index, element)| descend(index.into(), element))
        }
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| descend(key.as_str().into(), value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// A written matcher that is invalid, with the path in it.
///
/// ```text
/// $.city.matches: not a regular expression: unclosed group
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct MatcherError {
    /// The path in the written matcher.
    pub path: Path,
    /// What is wrong at the path.
    pub problem: MatcherProblem,
    /// A correction, if there is a likely one.
    pub hint: Option<String>,
}

debug_as_display!(MatcherError);

/// What can be wrong with a written matcher.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MatcherProblem {
    /// An object has both operators and ordinary keys.
    #[error("operator `{operator}` is mixed with the ordinary key `{key}`")]
    MixedKeys {
        /// The operator.
        operator: String,
        /// The ordinary key.
        key: String,
    },
    /// The operand of an operator has the wrong type.
    #[error("`{operator}` takes {wanted}, not {got}")]
    WrongOperand {
        /// The operator.
        operator: &'static str,
        /// The operands that it takes.
        wanted: &'static str,
        /// An excerpt of the written operand.
        got: String,
    },
    /// A modifier has no operator that it belongs to.
    #[error("`{operator}` goes only with {partners}")]
    NeedsPartner {
        /// The modifier, such as `ignore_case`.
        operator: &'static str,
        /// The operators that it belongs to.
        partners: &'static str,
    },
    /// `type` names no JSON type.
    #[error("`{name}` is not a type")]
    UnknownType {
        /// The written name.
        name: String,
    },
    /// The regular expression of `matches` is invalid.
    #[error("not a regular expression: {reason}")]
    BadPattern {
        /// The error.
        reason: String,
    },
    /// The JSON Schema of `schema` is invalid.
    #[error("not a JSON Schema: {reason}")]
    BadSchema {
        /// The error.
        reason: String,
    },
    /// A key of `at` is no JSON path.
    #[error("not a JSON path: {0}")]
    BadPath(PathQueryError),
    /// The bounds of a range exclude every number.
    #[error("no number is {range}")]
    EmptyRange {
        /// The range, such as `>= 10 and < 5`.
        range: String,
    },
    /// The matcher has more levels than allowed.
    #[error("nested more than {limit} levels deep")]
    TooDeep {
        /// The maximum number of levels.
        limit: usize,
    },
}

impl MatcherProblem {
    /// This problem at a place, without a hint.
    pub(super) fn at(self, path: &Path) -> MatcherError {
        MatcherError { path: path.clone(), problem: self, hint: None }
    }
}

impl MatcherError {
    /// Whether the key at the path is wrong, and not its value.
    pub(crate) fn is_about_key(&self) -> bool {
        matches!(self.problem, MatcherProblem::BadPath(_))
    }

    /// Adds a hint to the error.
    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> MatcherError {
        self.hint = Some(hint.into());
        self
    }
}

/// Every operator, in the order in which the reference lists them.
pub(super) const WORDS: [&str; 19] = [
    "any",
    "present",
    "exact",
    "subset",
    "contains",
    "ignore_case",
    "matches",
    "type",
    "schema",
    "gt",
    "gte",
    "lt",
    "lte",
    "length",
    "each",
    "at",
    "any_of",
    "all_of",
    "not",
];

/// Operators on whole objects, which are hardly ever names of arguments.
pub(super) const OBJECT_OPERATORS: [&str; 8] = ["any", "exact", "subset", "schema", "at", "any_of", "all_of", "not"];

/// Operators on whole objects that are never data in an object with ordinary keys.
pub(super) const COMBINATIONS: [&str; 3] = ["any_of", "all_of", "not"];

/// Names of types in other languages, with their names in JSON Schema.
const TYPE_ALIASES: [(&str, &str); 9] = [
    ("bool", "boolean"),
    ("int", "integer"),
    ("float", "number"),
    ("double", "number"),
    ("str", "string"),
    ("list", "array"),
    ("map", "object"),
    ("dict", "object"),
    ("none", "null"),
];

/// The operator with this name.
pub(super) fn named(word: &str) -> Option<&'static str> {
    WORDS.into_iter().find(|operator| *operator == word)
}

/// The operator that is closest to an unknown word.
///
/// Short words are ignored: `lat` is more likely data than a misspelled `at`.
pub(crate) fn closest(word: &str) -> Option<&'static str> {
    nearest(word, WORDS).filter(|operator| *operator != word)
}

/// The type that is closest to an unknown name.
pub(super) fn closest_type(name: &str) -> Option<&'static str> {
    let alias = TYPE_ALIASES.into_iter().find(|(alias, _)| *alias == name);
    let names = crate::json::JsonType::ALL.map(crate::json::JsonType::name);
    alias.map(|(_, meant)| meant).or_else(|| nearest(name, names))
}

fn nearest<const N: usize>(word: &str, words: [&'static str; N]) -> Option<&'static str> {
    let allowed = match word.chars().count() {
        0..=3 => return None,
        4..=6 => 1,
        _ => 2,
    };
    let lowercase = word.to_lowercase();
    words
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lowercase, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && candidate.len() > 3)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::super::arbitrary::json_value;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn error(written: Value) -> (String, Option<String>) {
        let error = Matcher::parse(&written).unwrap_err();
        (error.to_string(), error.hint)
    }

    #[test]
    fn a_bad_matcher_is_refused_with_its_place() {
        for (written, message) in [
            (json!({"city": {"matches": "("}}), "$.city.matches: not a regular expression: unclosed group"),
            (json!({"city": {"matches": 1}}), "$.city.matches: `matches` takes a regular expression, not 1"),
            (json!([{"any": false}]), "$[0].any: `any` takes only `true`, not false"),
            (json!({"present": "yes"}), "$.present: `present` takes `true` or `false`, not \"yes\""),
            (json!({"subset": [1]}), "$.subset: `subset` takes an object, not [1]"),
            (json!({"any_of": []}), "$.any_of: `any_of` takes a list with at least one matcher, not []"),
            (json!({"any_of": [1, {"not": {"lt": "x"}}]}), "$.any_of[1].not.lt: `lt` takes a number, not \"x\""),
            (json!({"gte": 5, "lt": 5}), "$: no number is >= 5 and < 5"),
            (json!({"gt": 5, "gte": 5}), "$: `gt` goes only with `lt` or `lte`, not `gte`"),
            (json!({"length": -1}), "$.length: `length` takes a whole number or a range such as { gte: 1 }, not -1"),
            (
                json!({"length": {"min": 1}}),
                "$.length: `length` takes a whole number or a range such as { gte: 1 }, not {\"min\":1}",
            ),
            (json!({"at": "10:00"}), "$.at: `at` takes an object of JSON paths, not \"10:00\""),
            (
                json!({"schema": {"type": "strng"}}),
                "$.schema.type: not a JSON Schema: \"strng\" is not valid under any of the schemas listed in the 'anyOf' keyword",
            ),
            (
                json!({"ignore_case": true, "length": 3}),
                "$.ignore_case: `ignore_case` goes only with `matches`, or `contains` and a string",
            ),
            (
                json!({"contains": 3, "ignore_case": true}),
                "$.ignore_case: `ignore_case` goes only with `matches`, or `contains` and a string",
            ),
            (json!({"type": "int"}), "$.type: `int` is not a type"),
        ] {
            assert_eq!(error(written.clone()).0, message, "{written}");
        }
    }

    #[test]
    fn operators_beside_ordinary_keys_are_refused_with_advice() {
        let (message, hint) = error(json!({"box": {"length": 3, "wide": 4}}));
        assert_eq!(message, "$.box: operator `length` is mixed with the ordinary key `wide`");
        let advice = "if `length` is a key of the data, wrap the object: { subset: { length: …, wide: … } }";
        assert_eq!(hint.as_deref(), Some(advice));
        let (message, hint) = error(json!({"type": "string", "contians": "x"}));
        assert_eq!(message, "$: operator `type` is mixed with the ordinary key `contians`");
        assert_eq!(hint.as_deref(), Some("did you mean the operator `contains`?"));
    }

    #[test]
    fn a_content_block_is_data_although_it_has_a_type() {
        for (written, actual) in [
            (json!({"type": "text", "text": {"contains": "rain"}}), json!({"type": "text", "text": "heavy rain"})),
            (json!({"type": "image"}), json!({"type": "image", "data": "…"})),
            (json!({"type": "object", "properties": {}}), json!({"type": "object", "properties": {"a": 1}})),
        ] {
            assert!(Matcher::parse(&written).unwrap().matches(&actual), "{written}");
        }
    }

    #[test]
    fn the_keys_of_arguments_are_never_operators() {
        let written = json!({"type": "string", "length": {"gte": 3}});
        let matcher = Matcher::parse_fields(written.as_object().unwrap()).unwrap();
        assert!(matcher.matches(&json!({"type": "string", "length": 4})));
        let error = Matcher::parse_fields(json!({"at": {"matches": "("}}).as_object().unwrap());
        assert_eq!(error.unwrap_err().path.to_string(), "$.at.matches");
    }

    #[test]
    fn operators_for_a_whole_object_are_operators_of_the_arguments_too() {
        let read = |written: Value, names: &[&str]| {
            Matcher::parse_arguments(written.as_object().unwrap(), |key| names.contains(&key))
        };
        for (written, fits, differs) in [
            (json!({"any_of": [{"city": "A"}, {"city": "B"}]}), json!({"city": "B"}), json!({"city": "C"})),
            (json!({"not": {"city": "C"}}), json!({"city": "A"}), json!({"city": "C"})),
            (json!({"exact": {"city": "A"}}), json!({"city": "A"}), json!({"city": "A", "days": 1})),
            (json!({"subset": {"not": 1}}), json!({"not": 1}), json!({"not": 2})),
            (json!({"at": {"$.a[0]": 1}}), json!({"a": [1]}), json!({"a": [2]})),
            (json!({"type": "string", "contains": "x"}), json!({"type": "string", "contains": "x"}), json!({})),
            (json!({"schema": "public", "table": "x"}), json!({"schema": "public", "table": "x"}), json!({})),
        ] {
            let matcher = read(written.clone(), &[]).unwrap();
            assert!(matcher.matches(&fits) && !matcher.matches(&differs), "{written}");
        }
        let named = read(json!({"at": "10:00", "not": {"gte": 1}}), &["at", "not"]).unwrap();
        assert!(named.matches(&json!({"at": "10:00", "not": 1})));
        for (written, message) in [
            (json!({"any_of": 5}), "$.any_of: `any_of` takes a list with at least one matcher, not 5"),
            (json!({"at": "10:00"}), "$.at: `at` takes an object of JSON paths, not \"10:00\""),
            (json!({"any_of": [{"a": 1}], "city": "A"}), "$: operator `any_of` is mixed with the ordinary key `city`"),
        ] {
            let error = read(written, &[]).unwrap_err();
            assert_eq!(error.to_string(), message);
            assert!(error.hint.is_some());
        }
    }

    #[test]
    fn a_matcher_nested_too_deep_is_refused_with_its_place() {
        let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({"not": inner}));
        assert!(Matcher::parse(&nested(DEPTH_LIMIT)).is_ok());
        let error = Matcher::parse(&nested(DEPTH_LIMIT + 1)).unwrap_err();
        assert_eq!(error.problem, MatcherProblem::TooDeep { limit: DEPTH_LIMIT });
        assert_eq!(error.path.segments().len(), DEPTH_LIMIT);
        let data = (0..DEPTH_LIMIT + 1).fold(json!(1), |inner, _| json!([inner]));
        assert!(Matcher::parse(&json!({"exact": data})).is_err());
        assert!(Matcher::parse_fields(json!({"a": data}).as_object().unwrap()).is_err());
    }

    proptest! {
        #[test]
        fn any_value_is_parsed_or_refused_at_a_path_in_it(written in json_value()) {
            if let Err(error) = Matcher::parse(&written) {
                prop_assert!(error.path.lookup(&written).is_some(), "{}", error);
            }
        }
    }

    #[test]
    fn a_misspelled_operator_is_recognised() {
        for (word, meant) in [
            ("contians", Some("contains")),
            ("mathces", Some("matches")),
            ("anyOf", Some("any_of")),
            ("Contains", Some("contains")),
            ("contains", None),
            ("text", None),
            ("data", None),
            ("lat", None),
            ("city", None),
            ("properties", None),
            ("required", None),
        ] {
            assert_eq!(closest(word), meant, "{word}");
        }
    }

    #[test]
    fn a_type_of_another_language_is_translated() {
        for (name, meant) in [
            ("strng", Some("string")),
            ("int", Some("integer")),
            ("dict", Some("object")),
            ("text", None),
            ("image", None),
            ("resource_link", None),
        ] {
            assert_eq!(closest_type(name), meant, "{name}");
        }
    }
}
