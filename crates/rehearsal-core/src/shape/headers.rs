//! Checks the HTTP headers around a recorded call.

use crate::exchange::Side;
use crate::message::{Reply, Request};
use crate::protocol::{Era, Revision, code, header};
use crate::report::Finding;
use crate::trace::{Entry, EntryBody, HttpHead, RecordedCall, RelatedEvent};

/// The errors in the heads around a client's call, each with its sequence number and its sender.
pub(super) fn check_heads(
    call: &RecordedCall,
    request: &Request,
    inside: &[RelatedEvent],
    revision: Revision,
) -> Vec<(u64, Side, Finding)> {
    let mut found = Vec::new();
    if call.asker != Side::Client {
        return found;
    }
    for event in inside {
        let RelatedEvent::Entry(Entry { seq, what: EntryBody::Http { from, channel, head }, .. }) = event else {
            continue;
        };
        if *channel != call.channel() {
            continue;
        }
        let finding = match from {
            Side::Client => check_request_head(call, request, head, revision),
            Side::Server => check_response_head(call, request, head, revision),
        };
        found.extend(finding.map(|finding| (*seq, *from, finding)));
    }
    found
}

fn check_request_head(call: &RecordedCall, request: &Request, head: &HttpHead, revision: Revision) -> Option<Finding> {
    let method = &request.method;
    let values = |name: &str| -> Vec<String> { head.headers.all(name).map(str::to_owned).collect() };
    let version = header::PROTOCOL_VERSION;
    // With HTTP+SSE the response is on another stream, and there is no such header.
    let answered_here = call.response.as_ref().is_some_and(|response| response.channel == call.channel());
    let wants_version = revision.has_version_header() && *method != *"initialize" && answered_here;
    let wrong = |what: String| Finding::error(format!("wrong headers of {method} in {revision}: {what}"));
    match &values(version)[..] {
        [] if wants_version => {
            let finding = wrong(format!("header {version} is missing"));
            return Some(finding.hint(format!("every POST has the header `{version}: {revision}`")));
        }
        [found] if wants_version && found.trim() != revision.as_str() && is_accepted(call) => {
            let finding = wrong(format!("header {version} is {found:?}"));
            return Some(finding.hint(format!("the version of this request is {revision}")));
        }
        _ => {}
    }
    // A request that was refused for its headers is reported, too.
    let disagreement = match revision.era() {
        Era::Legacy => None,
        Era::Modern => header::check(request, None, values).err(),
    };
    disagreement.map(|disagreement| {
        wrong(disagreement.to_string())
            .hint("headers repeat values of the body; servers reject a request whose headers differ")
    })
}

/// Whether the server accepted the version. A client may request an unknown version, also in the header.
fn is_accepted(call: &RecordedCall) -> bool {
    let reply = call.response.as_ref().and_then(|response| Some(&response.message.as_response()?.reply));
    !matches!(reply, Some(Reply::Error(error)) if error.code == code::UNSUPPORTED_VERSION)
}

fn check_response_head(call: &RecordedCall, request: &Request, head: &HttpHead, revision: Revision) -> Option<Finding> {
    let response = call.response.as_ref()?.message.as_response()?;
    let (Reply::Error(error), Era::Modern, Some(status)) = (&response.reply, revision.era(), head.status) else {
        return None;
    };
    let expected = match error.code {
        code if code::is_modern(code) => 400,
        code::METHOD_NOT_FOUND => 404,
        _ => return None,
    };
    let finding =
        Finding::error(format!("wrong status {status} for error {} of {} in {revision}", error.code, request.method));
    (status != expected).then(|| finding.hint(format!("{} comes with status {expected}", error.code)))
}
