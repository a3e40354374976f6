//! What changed since a plan was saved: its text, the tools that it calls, their answers, and its calls.

use std::collections::{BTreeMap, HashMap};

use rehearsal_core::json::{Path, PathQuery, Segment};
use rehearsal_core::matcher::{Difference, DifferenceKind, differences};
use rehearsal_core::report::Severity;
use serde_json::Value;

use super::assemble::finding;
use super::catalogue::ListedTools;
use super::options::DryRunOptions;
use super::report::{
    AnswerOrigin, DryRunReport, Effect, FindingCode, KnownAfterRun, PlanFinding, PlanPlace, ReportedCall,
};
use super::saved::{SavedAnswer, SavedCall, SavedPlan, SavedTool};

/// Maximum number of findings about one schema: a schema that was replaced differs in as many places as it has members.
const MAX_SCHEMA_CHANGES: usize = 20;
/// The keywords of JSON Schema whose lists have no order.
const UNORDERED: [&str; 3] = ["required", "enum", "type"];
/// The beginning of the names that stand for elements of such lists; no name of a schema begins with it.
const SET_ELEMENT: char = '\0';
/// Maximum number of findings about calls and their answers.
const MAX_CALL_CHANGES: usize = 50;

/// Finds what changed since a plan was saved. `report` is that of its dry run today with `options`.
pub(super) fn changes(saved: &SavedPlan, options: &DryRunOptions, report: &DryRunReport) -> Vec<PlanFinding> {
    let mut found = Vec::new();
    let is_edited = saved.plan_hash != report.plan_hash;
    if is_edited {
        let message = "the text of the plan was edited after the plan was saved: its digest is not `plan_hash`";
        let hint = Some("save the plan again with --out, if the report is right".to_owned());
        found.push(PlanFinding { hint, ..finding(FindingCode::PlanEdited, Severity::Warning, message) });
    }
    let servers = changed_tools(saved, options, report, &mut found);
    changed_effects(saved, &servers, report, &mut found);
    // A plan that cannot be compiled has no calls to compare with.
    if report.validation.syntax_valid {
        let mut of_calls = Calls::new(saved, report, is_edited).changes();
        let more = of_calls.len().saturating_sub(MAX_CALL_CHANGES);
        of_calls.truncate(MAX_CALL_CHANGES);
        found.extend(of_calls);
        if more > 0 {
            let message = format!("{more} more changes of calls and answers");
            found.push(finding(FindingCode::CallChanged, Severity::Warning, message));
        }
    }
    found
}

/// Finds tools that no longer exist, and changes of their schemas and annotations. Returns the lists of the servers.
fn changed_tools<'a>(
    saved: &'a SavedPlan,
    options: &DryRunOptions,
    report: &DryRunReport,
    found: &mut Vec<PlanFinding>,
) -> BTreeMap<&'a str, ListedTools> {
    let mut servers: BTreeMap<&str, ListedTools> = BTreeMap::new();
    for (name, before) in &saved.tools {
        let Some((server, tool)) = name.split_once(':') else { continue };
        let place = first_place(report, name);
        let mut add = |code, message| {
            found.push(PlanFinding { place: place.clone(), ..finding(code, Severity::Warning, message) });
        };
        let tools = servers.entry(server).or_insert_with(|| options.listed_tools(server));
        let listed = match (&*tools, tools.get(tool)) {
            (ListedTools::Known(_), Some(listed)) => listed,
            (ListedTools::Known(_), None) => {
                add(
                    FindingCode::ToolRemoved,
                    format!("{name} existed when the plan was saved; {server} has no such tool"),
                );
                continue;
            }
            (ListedTools::Missing, _) => {
                let message = format!("{name} existed when the plan was saved; there is no server {server}");
                add(FindingCode::ToolRemoved, message);
                continue;
            }
            // The report has an error about this server.
            (ListedTools::Unavailable, _) => continue,
        };
        for (code, message) in changed_tool(name, before, listed) {
            add(code, message);
        }
    }
    servers
}

/// The changes of a tool that still exists. `listed` is its element of `tools/list`.
pub(crate) fn changed_tool(name: &str, before: &SavedTool, listed: &Value) -> Vec<(FindingCode, String)> {
    let after = SavedTool::from_listed(listed);
    let mut found = Vec::new();
    for (part, code, before, after) in [
        ("input schema", FindingCode::SchemaChanged, &before.input_schema, &after.input_schema),
        ("output schema", FindingCode::SchemaChanged, &before.output_schema, &after.output_schema),
        ("annotations", FindingCode::EffectChanged, &before.annotations, &after.annotations),
    ] {
        let texts = changed_values(before.as_ref(), after.as_ref()).into_iter();
        found.extend(texts.map(|text| (code, format!("{name}: {part}: {text}"))));
    }
    found
}

/// The changes of a schema or of annotations, such as `$.required: added "mode"`.
fn changed_values(before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    let (mut before, mut after) = match (before, after) {
        (None, None) => return Vec::new(),
        (None, Some(_)) => return vec!["added".to_owned()],
        (Some(_), None) => return vec!["removed".to_owned()],
        (Some(before), Some(after)) => (before.clone(), after.clone()),
    };
    lists_to_sets(&mut before, &mut after);
    let found = differences(&before, &after);
    let more = found.len().saturating_sub(MAX_SCHEMA_CHANGES);
    let mut texts: Vec<String> = found.iter().take(MAX_SCHEMA_CHANGES).map(change_text).collect();
    if more > 0 {
        texts.push(format!("{more} more changes"));
    }
    texts
}

/// In two schemas, lists whose order does not count become objects with a member for each element.
fn lists_to_sets(before: &mut Value, after: &mut Value) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, before) in before {
                let Some(after) = after.get_mut(name) else { continue };
                match (&*before, &*after) {
                    (Value::Array(one), Value::Array(other)) if UNORDERED.contains(&name.as_str()) => {
                        let (one, other) = (set(one), set(other));
                        (*before, *after) = (one, other);
                    }
                    _ => lists_to_sets(before, after),
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            before.iter_mut().zip(after).for_each(|(before, after)| lists_to_sets(before, after));
        }
        _ => {}
    }
}

/// An object with a member for each element of a list.
fn set(elements: &[Value]) -> Value {
    let members = elements.iter().map(|element| (format!("{SET_ELEMENT}{element}"), element.clone()));
    Value::Object(members.collect())
}

/// A difference in words:
///
/// ```text
/// $.required: added "mode"
/// $.properties.mode: added {"type":"string"}
/// $.properties.size.type: was "number", is "string"
/// ```
fn change_text(difference: &Difference) -> String {
    let Difference { drift, mismatch, .. } = difference;
    let got = mismatch.got.as_deref().unwrap_or("nothing");
    let mut owner = mismatch.path.clone();
    let is_element = match owner.segments().last() {
        // An index depends on the elements before it.
        Some(Segment::Index(_)) => true,
        Some(Segment::Key(key)) => key.starts_with(SET_ELEMENT),
        None => false,
    };
    if is_element {
        owner.pop();
    }
    match drift {
        DifferenceKind::Added => format!("{owner}: added {got}"),
        DifferenceKind::Removed => format!("{owner}: removed {}", mismatch.expected),
        DifferenceKind::Changed | DifferenceKind::TypeChanged => {
            format!("{}: was {}, is {got}", mismatch.path, mismatch.expected)
        }
    }
}

/// The first of several differences, and the number of the others.
pub(crate) fn first_change(found: &[&Difference]) -> Option<String> {
    let (first, others) = found.split_first()?;
    let more = match others.len() {
        0 => String::new(),
        1 => " (and 1 more change)".to_owned(),
        count => format!(" (and {count} more changes)"),
    };
    Some(change_text(first) + &more)
}

/// Finds tools that still exist and have another effect, whether annotations or the operator declare it.
fn changed_effects(
    saved: &SavedPlan,
    servers: &BTreeMap<&str, ListedTools>,
    report: &DryRunReport,
    found: &mut Vec<PlanFinding>,
) {
    let of_calls = saved.calls.iter().map(|call| (call.tool.as_str(), call.effect));
    let possible = saved.not_run.iter().filter_map(|call| Some((call.tool.as_deref()?, call.effect)));
    let before: BTreeMap<&str, Effect> = of_calls.chain(possible).collect();
    let of_calls = report.tools_called.iter().map(|call| (call.tool.as_str(), call.effect));
    let possible = report.not_run.iter().filter_map(|call| Some((call.tool.as_deref()?, call.effect)));
    let after: BTreeMap<&str, Effect> = of_calls.chain(possible).collect();
    let exists = |name: &str| {
        let found = name.split_once(':').and_then(|(server, tool)| servers.get(server)?.get(tool));
        found.is_some()
    };
    for (tool, before) in before.into_iter().filter(|(tool, _)| exists(tool)) {
        if let Some(after) = after.get(tool).filter(|after| **after != before) {
            let message = format!("{tool}: its effect was {}, is {}", before.word(), after.word());
            let place = first_place(report, tool);
            found.push(PlanFinding { place, ..finding(FindingCode::EffectChanged, Severity::Warning, message) });
        }
    }
}

fn first_place(report: &DryRunReport, tool: &str) -> Option<PlanPlace> {
    let called = report.tools_called.iter().find(|call| call.tool == tool).and_then(|call| call.place.as_ref());
    let possible = || report.not_run.iter().find(|call| call.tool.as_deref() == Some(tool)).map(|call| &call.place);
    called.or_else(possible).cloned()
}

/// The tool and the place of a call, without its file. If the text was edited, places cannot be compared.
type Site = (String, Option<(u32, Option<u32>, Vec<(u32, u32)>)>);

/// The calls of a plan when it was saved and today, by their places.
struct Calls<'a> {
    saved: &'a SavedPlan,
    report: &'a DryRunReport,
    is_edited: bool,
    /// In the order of the first call from each place.
    sites: Vec<Site>,
    before: HashMap<Site, Vec<&'a SavedCall>>,
    after: HashMap<Site, Vec<&'a ReportedCall>>,
}

impl<'a> Calls<'a> {
    fn new(saved: &'a SavedPlan, report: &'a DryRunReport, is_edited: bool) -> Calls<'a> {
        let (sites, before, after) = (Vec::new(), HashMap::new(), HashMap::new());
        let mut calls = Calls { saved, report, is_edited, sites, before, after };
        for call in &report.tools_called {
            let site = calls.add_site(&call.tool, call.place.as_ref());
            calls.after.entry(site).or_default().push(call);
        }
        for call in &saved.calls {
            let site = calls.add_site(&call.tool, call.place.as_ref());
            calls.before.entry(site).or_default().push(call);
        }
        calls
    }

    fn site(&self, tool: &str, place: Option<&PlanPlace>) -> Site {
        let at = place.filter(|_| !self.is_edited).map(|place| {
            let via = place.via.iter().map(|via| (via.line, via.column));
            (place.line, place.column, via.collect())
        });
        (tool.to_owned(), at)
    }

    fn add_site(&mut self, tool: &str, place: Option<&PlanPlace>) -> Site {
        let site = self.site(tool, place);
        if !self.before.contains_key(&site) && !self.after.contains_key(&site) {
            self.sites.push(site.clone());
        }
        site
    }

    fn changes(&self) -> Vec<PlanFinding> {
        let mut found = Vec::new();
        for site in &self.sites {
            let before = self.before.get(site).map(Vec::as_slice).unwrap_or_default();
            let after = self.after.get(site).map(Vec::as_slice).unwrap_or_default();
            found.extend(self.changed_count(site, before, after));
            for (before, after) in before.iter().zip(after) {
                self.changed_call(before, after, &mut found);
            }
        }
        for call in &self.report.not_run {
            let Some(tool) = &call.tool else { continue };
            let site = self.site(tool, Some(&call.place));
            if !self.is_saved(&site) {
                let message = format!("{tool} may be called now: {}", call.reason);
                let place = Some(call.place.clone());
                found.push(PlanFinding { place, ..finding(FindingCode::CallChanged, self.newly_found(), message) });
            }
        }
        found
    }

    /// Whether the saved plan has a possible call from this place.
    fn may_have_run(&self, site: &Site) -> bool {
        let mut possible = self.saved.not_run.iter().filter(|call| call.tool.as_ref() == Some(&site.0));
        possible.any(|call| is_at(site, Some(&call.place)))
    }

    /// Whether the saved plan has a call or a possible call from this place, whatever function called it.
    fn is_saved(&self, site: &Site) -> bool {
        let mut calls = self.saved.calls.iter().filter(|call| call.tool == site.0);
        calls.any(|call| is_at(site, call.place.as_ref())) || self.may_have_run(site)
    }

    /// More or fewer calls from one place. It is a note if the saved plan has their number only as an example, and if its text
    /// is the same.
    fn changed_count(&self, site: &Site, before: &[&SavedCall], after: &[&ReportedCall]) -> Option<PlanFinding> {
        if before.len() == after.len() {
            return None;
        }
        let is_example = |call: &&SavedCall| call.repeats || !call.conditional_on.is_empty();
        let is_open = !self.is_edited && before.iter().any(is_example);
        let is_possible = !self.is_edited && before.is_empty() && self.may_have_run(site);
        let severity = if is_open || is_possible { Severity::Note } else { Severity::Warning };
        let tool = &site.0;
        let message = match (before.len(), after.len()) {
            (0, _) if is_possible => format!("{tool} is called; when the plan was saved, the call was only possible"),
            (0, _) => format!("{tool} is called; it was not when the plan was saved"),
            (before, 0) => format!("{tool} is not called; it was called {} when the plan was saved", times(before)),
            (before, after) => {
                format!("{tool} is called {}; it was called {} when the plan was saved", times(after), times(before))
            }
        };
        let place = after.first().map(|call| &call.place).or_else(|| Some(&before.first()?.place));
        let place = place.cloned().flatten();
        Some(PlanFinding { place, ..finding(FindingCode::CallChanged, severity, message) })
    }

    /// Finds other arguments and another answer of a call.
    fn changed_call(&self, before: &SavedCall, after: &ReportedCall, found: &mut Vec<PlanFinding>) {
        let tool = &after.tool;
        let mut add = |code, severity, message| {
            let (call, place) = (Some(after.call), after.place.clone());
            found.push(PlanFinding { call, place, ..finding(code, severity, message) });
        };
        let (open, unknown) = (unknown_paths(&before.known_after_run), unknown_paths(&after.known_after_run));
        let changed = differences(&before.arguments, &after.arguments);
        let is_open = |path: &Path| open.iter().any(|open| path.is_within(open));
        let is_unknown = |path: &Path| is_open(path) || unknown.iter().any(|unknown| path.is_within(unknown));
        let other: Vec<&Difference> = changed.iter().filter(|change| !is_unknown(&change.mismatch.path)).collect();
        if let Some(text) = first_change(&other) {
            add(FindingCode::CallChanged, Severity::Warning, format!("{tool}: arguments: {text}"));
        }
        for path in unknown.iter().filter(|path| !is_open(path)) {
            let message = format!("{tool}: arguments: {path} was known when the plan was saved, is known after run");
            add(FindingCode::CallChanged, self.newly_found(), message);
        }
        // The answer to other arguments is another one in any case.
        if changed.is_empty()
            && let Some((severity, text)) = changed_answer(&before.answer, after)
        {
            add(FindingCode::AnswerChanged, severity, format!("{tool}: {text}"));
        }
    }

    /// The severity of a dependence that the saved plan lacks: if its search was incomplete, it may have been there before.
    fn newly_found(&self) -> Severity {
        if self.saved.not_done.is_empty() { Severity::Warning } else { Severity::Note }
    }
}

/// Whether a call has the line and column of a site. The places from which its function was called do not count.
fn is_at((_, at): &Site, place: Option<&PlanPlace>) -> bool {
    let place = place.map(|place| (place.line, place.column));
    at.as_ref().is_none_or(|(line, column, _)| place == Some((*line, *column)))
}

fn times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

pub(crate) fn unknown_paths(known: &[KnownAfterRun]) -> Vec<Path> {
    known.iter().filter_map(|known| PathQuery::parse(&known.path).ok()?.single().cloned()).collect()
}

/// How the answer of a call with equal arguments changed. Another example of a schema is no change.
fn changed_answer(before: &SavedAnswer, call: &ReportedCall) -> Option<(Severity, String)> {
    let after = &call.answer;
    // A call that a server refuses has an invented answer, whatever is recorded, and an error of its own.
    if after.source == AnswerOrigin::None || (call.fails && !after.is_error) {
        return None;
    }
    if before.source != after.source {
        let text = format!(
            "its answer was {}, is {}",
            source_text(before.source, before.cached_at.as_deref()),
            source_text(after.source, after.cached_at.as_deref())
        );
        let severity = if is_invented(before.source) { Severity::Note } else { Severity::Warning };
        return Some((severity, text));
    }
    if is_invented(before.source) {
        return None;
    }
    let subject = match after.cached_at.as_deref() {
        Some(at) => format!("its answer, recorded at {at}, is another one"),
        None => "its answer is another one".to_owned(),
    };
    let text = other_answer(before, &after.value, after.is_error, &subject)?;
    Some((Severity::Warning, text))
}

/// How a value or an error differs from a saved answer, after the text `subject`.
pub(crate) fn other_answer(before: &SavedAnswer, value: &Value, is_error: bool, subject: &str) -> Option<String> {
    if before.is_error == is_error && before.is_value(value) {
        return None;
    }
    let text = match (before.is_error, is_error) {
        (true, false) => "it was an error".to_owned(),
        (false, true) => "it is an error".to_owned(),
        _ if before.value_hash.is_some() => return Some(subject.to_owned()),
        _ => {
            let found = differences(&before.value, value);
            first_change(&found.iter().collect::<Vec<_>>())?
        }
    };
    Some(format!("{subject}: {text}"))
}

pub(crate) fn is_invented(source: AnswerOrigin) -> bool {
    match source {
        AnswerOrigin::Override | AnswerOrigin::CapabilityCache | AnswerOrigin::Live => false,
        AnswerOrigin::SchemaMock | AnswerOrigin::Placeholder | AnswerOrigin::None => true,
    }
}

fn source_text(source: AnswerOrigin, cached_at: Option<&str>) -> String {
    match source {
        AnswerOrigin::Override => "from an override".to_owned(),
        AnswerOrigin::CapabilityCache => match cached_at {
            Some(at) => format!("recorded at {at}"),
            None => "recorded".to_owned(),
        },
        AnswerOrigin::SchemaMock => "an example of the schema".to_owned(),
        AnswerOrigin::Live => "live".to_owned(),
        AnswerOrigin::Placeholder => "a placeholder".to_owned(),
        AnswerOrigin::None => "not known".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_change_of_a_schema_has_its_path_and_its_kind() {
        let before = json!({
            "type": "object", "required": ["path", "text"], "additionalProperties": false,
            "properties": {"path": {"type": "string"}, "text": {"type": "string"}, "size": {"type": "number", "maximum": 10}},
        });
        let after = json!({
            "type": "object", "required": ["mode", "path"], "additionalProperties": {},
            "properties": {"path": {"type": "string"}, "mode": {"enum": ["a"]}, "size": {"type": "string", "maximum": 5}},
        });
        assert_eq!(
            changed_values(Some(&before), Some(&after)),
            [
                "$.required: removed \"text\"",
                "$.required: added \"mode\"",
                "$.additionalProperties: was false, is {}",
                "$.properties.text: removed {\"type\":\"string\"}",
                "$.properties.size.type: was \"number\", is \"string\"",
                "$.properties.size.maximum: was 10, is 5",
                "$.properties.mode: added {\"enum\":[\"a\"]}",
            ]
        );
        assert_eq!(changed_values(None, Some(&after)), ["added"]);
        assert_eq!(changed_values(Some(&before), None), ["removed"]);
    }

    #[test]
    fn the_order_of_required_members_is_no_change() {
        let schema = |required: &[&str]| json!({"anyOf": [{"required": required, "type": ["null", "object"]}]});
        let (before, after) = (schema(&["a", "b"]), schema(&["b", "a"]));
        assert_eq!(changed_values(Some(&before), Some(&after)), [""; 0]);
    }

    #[test]
    fn a_replaced_schema_has_a_limited_number_of_changes() {
        let schema = |name: &str| -> Value {
            let members = (0..100).map(|index| (format!("{name}{index}"), json!({})));
            json!({"properties": members.collect::<serde_json::Map<_, _>>()})
        };
        let texts = changed_values(Some(&schema("a")), Some(&schema("b")));
        assert_eq!((texts.len(), texts[MAX_SCHEMA_CHANGES].as_str()), (MAX_SCHEMA_CHANGES + 1, "180 more changes"));
    }
}
