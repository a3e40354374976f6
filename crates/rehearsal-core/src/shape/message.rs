//! Checks messages against the shapes of a version.

use serde_json::{Map, Value, json};

use super::check::{ShapeMismatch, check};
use super::table::{Expects, MethodShape, Shape, TABLE};
use crate::exchange::Side;
use crate::json::{Path, RawJson};
use crate::matcher::Mismatch;
use crate::message::{ErrorReply, Notification, Reply, Request, Response};
use crate::protocol::{Era, Revision, code};
use crate::report::{Finding, Severity};
use crate::suggest::closest;

/// Maximum number of findings about one message; further ones are dropped.
pub const MAX_FINDINGS: usize = 20;

/// Checks a request of this side in this version.
///
/// ```text
/// error: wrong params of tools/call in 2025-11-25
///   $.params.name: missing, expected a string
/// ```
pub fn check_request(request: &Request, from: Side, revision: Revision) -> Vec<Finding> {
    check_params(request.method.as_str(), request.params.as_ref(), Expects::Answer, from, revision)
}

/// Checks a notification of this side in this version.
pub fn check_notification(notification: &Notification, from: Side, revision: Revision) -> Vec<Finding> {
    check_params(notification.method.as_str(), notification.params.as_ref(), Expects::Nothing, from, revision)
}

/// Checks the response to a request of this side in this version.
pub fn check_response(response: &Response, request: &Request, asker: Side, revision: Revision) -> Vec<Finding> {
    let method = request.method.as_str();
    match &response.reply {
        Reply::Error(error) => wrong_error(error, method, revision),
        Reply::Result(result) => match meaning(method, Expects::Answer, asker, revision) {
            Some(meaning) => fitting(&meaning.result, Some(result), "result", method, revision),
            // The request had an unknown method, which was reported already.
            None => Vec::new(),
        },
    }
}

/// Checks a result that a mock file contains in its wire form. Values that are not fixed, because they contain templates,
/// are not checked. It is correct if it is correct in one of these versions; otherwise the errors in the last version are
/// returned.
pub(crate) fn check_written_result(
    method: &str,
    result: &Map<String, Value>,
    revisions: &[Revision],
    is_fixed: impl Fn(&Value) -> bool,
) -> Vec<Mismatch> {
    let mut errors = Vec::new();
    for revision in revisions {
        let Some(meaning) = meaning(method, Expects::Answer, Side::Client, *revision) else { continue };
        let mut whole = result.clone();
        if revision.era() == Era::Modern {
            // A mock adds these members.
            for (key, usual) in
                [("resultType", json!("complete")), ("ttlMs", json!(0)), ("cacheScope", json!("private"))]
            {
                whole.entry(key).or_insert(usual);
            }
        }
        let whole = Value::Object(whole);
        let found = check(&meaning.result, Some(&whole), *revision, Path::root());
        let found = found.into_iter().filter(|it| it.severity == Severity::Error).map(|it| it.mismatch);
        errors = found.filter(|it| it.path.lookup(&whole).is_none_or(&is_fixed)).collect();
        if errors.is_empty() {
            return errors;
        }
    }
    errors
}

fn meaning(method: &str, wants: Expects, from: Side, revision: Revision) -> Option<&'static MethodShape> {
    let mut all = TABLE.methods(method);
    all.find(|it| it.wants == wants && it.from.is_none_or(|side| side == from) && it.versions.contain(revision))
}

/// Checks a request or notification.
fn check_params(
    method: &str,
    params: Option<&RawJson>,
    wants: Expects,
    from: Side,
    revision: Revision,
) -> Vec<Finding> {
    match meaning(method, wants, from, revision) {
        Some(meaning) => fitting(&meaning.params, params, "params", method, revision),
        None => vec![no_such(method, wants, from, revision)],
    }
}

/// Reports a method that this side cannot use in this version.
fn no_such(method: &str, wants: Expects, from: Side, revision: Revision) -> Finding {
    let kind = |wants| match wants {
        Expects::Answer => "request",
        Expects::Nothing => "notification",
    };
    let all: Vec<&MethodShape> = TABLE.methods(method).collect();
    let now: Vec<&&MethodShape> = all.iter().filter(|it| it.versions.contain(revision)).collect();
    if let Some(other) = now.iter().find(|it| it.wants != wants) {
        let finding = Finding::error(format!("{method} is sent as a {} in {revision}", kind(wants)));
        return finding.hint(match other.wants {
            Expects::Answer => format!("it is a request in {revision}: give it an id"),
            Expects::Nothing => format!("it is a notification in {revision}: leave out its id"),
        });
    }
    if now.iter().any(|it| it.wants == wants) {
        let finding = Finding::error(format!("the {from} sends {method} in {revision}"));
        return finding.hint(format!("only the {} may send it", from.other()));
    }
    if let Some(elsewhere) = all.first() {
        let finding = Finding::error(format!("{revision} has no {} {method}", kind(wants)));
        return finding.hint(format!("`{method}` exists in {}", elsewhere.versions));
    }
    let finding = Finding::warning(format!("no version of the protocol has the {} {method}", kind(wants)));
    let known = TABLE.methods.iter().filter(|it| it.wants == wants && it.versions.contain(revision));
    match closest(method, known.map(|it| it.name)) {
        Some(meant) => finding.hint(format!("did you mean `{meant}`?")),
        None => finding.hint("a client or a server may define methods of its own; no other program supports them"),
    }
}

fn fitting(
    shape: &'static Shape,
    raw: Option<&RawJson>,
    member: &str,
    method: &str,
    revision: Revision,
) -> Vec<Finding> {
    let value = match raw.map(RawJson::value).transpose() {
        Ok(value) => value,
        Err(error) => return vec![Finding::note(format!("{member} of {method} cannot be checked: {error}"))],
    };
    findings(check(shape, value.as_ref(), revision, Path::root().join(member)), member, method, revision)
}

fn findings(misfits: Vec<ShapeMismatch>, member: &str, method: &str, revision: Revision) -> Vec<Finding> {
    let of = if member == "error" { "for" } else { "of" };
    let finding = |ShapeMismatch { severity, mismatch, hint }: ShapeMismatch| {
        let message = match severity {
            Severity::Error => format!("wrong {member} {of} {method} in {revision}"),
            Severity::Warning => format!("odd {member} {of} {method} in {revision}"),
            Severity::Note => format!("{member} {of} {method} with a key that {revision} does not define"),
        };
        let finding = Finding { severity, ..Finding::error(message) }.because([mismatch]);
        match hint {
            Some(hint) => finding.hint(hint),
            None => finding,
        }
    };
    let hidden = misfits.len().saturating_sub(MAX_FINDINGS);
    let worst = misfits.iter().skip(MAX_FINDINGS).map(|misfit| misfit.severity).max();
    let mut findings: Vec<Finding> = misfits.into_iter().take(MAX_FINDINGS).map(finding).collect();
    if let Some(severity) = worst {
        let message = format!("{hidden} more mismatches in the {member} {of} {method} in {revision}");
        findings.push(Finding { severity, ..Finding::error(message) });
    }
    findings
}

fn wrong_error(error: &ErrorReply, method: &str, revision: Revision) -> Vec<Finding> {
    let code = error.code;
    let rows = || TABLE.codes.iter().filter(|row| row.code == code);
    if let Some(row) = rows().find(|row| row.versions.contain(revision)) {
        let data = match error.data.as_ref().map(RawJson::value).transpose() {
            Ok(data) => data,
            Err(error) => return vec![Finding::note(format!("error for {method} cannot be checked: {error}"))],
        };
        let path = Path::root().join("error").join("data");
        let misfits = match (&row.data, &data) {
            (Shape::Any, _) => Vec::new(),
            (shape, Some(data)) => check(shape, Some(data), revision, path),
            (shape, None) => check(shape, Some(&Value::Object(Map::new())), revision, path),
        };
        return findings(misfits, "error", method, revision);
    }
    let finding = match (rows().next(), revision.era()) {
        (Some(row), Era::Modern) => Finding::error(format!("wrong code {code} for {method} in {revision}"))
            .hint(format!("{code} exists in {}{}", row.versions, replacement_hint(code))),
        (None, Era::Modern) if (-32099..=-32020).contains(&code) => {
            Finding::warning(format!("odd code {code} for {method} in {revision}"))
                .hint("the protocol reserves -32020 to -32099")
        }
        (None, _) if (-32768..=-32100).contains(&code) && !JSON_RPC.contains(&code) => {
            Finding::warning(format!("odd code {code} for {method} in {revision}"))
                .hint("JSON-RPC reserves -32768 to -32000, except -32000 to -32099")
        }
        (Some(_) | None, _) => return Vec::new(),
    };
    vec![finding]
}

const JSON_RPC: [i64; 5] =
    [code::PARSE_ERROR, code::INVALID_REQUEST, code::METHOD_NOT_FOUND, code::INVALID_PARAMS, code::INTERNAL_ERROR];

fn replacement_hint(code: i64) -> &'static str {
    match code {
        code::RESOURCE_NOT_FOUND => "; a resource that is not there is -32602",
        code::URL_ELICITATION_REQUIRED => "; answer `input_required` instead",
        _ => "",
    }
}
