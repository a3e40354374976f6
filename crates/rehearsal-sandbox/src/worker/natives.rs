//! The host functions of the prelude. They take and return primitives only; every frame is built here.

use std::rc::Rc;

use rquickjs::{Ctx, Exception, Function, Object};
use serde_json::value::RawValue;

use super::state::{Run, RunState};
use crate::limits::Limit;
use crate::protocol::{self, CallFrame, ConsoleLine, Lossy, RecordedShape, WorkerOutcome};

/// The most findings that are kept for one value.
const MAX_LOSSY: usize = 100;

/// The most decisions of one site that a later run can follow.
const MAX_SEQUENCE: usize = 1000;

/// The longest text about an exception or a lossy value that is kept.
const MAX_TEXT_BYTES: usize = 4 * 1024;

/// The object `host` of the prelude.
pub(super) fn host<'js>(ctx: &Ctx<'js>, run: &Rc<Run>) -> rquickjs::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    let run_of = run.clone();
    object.set(
        "lossy",
        Function::new(ctx.clone(), move |path: String, message: String| {
            let mut state = run_of.state.borrow_mut();
            if state.lossy.len() < MAX_LOSSY {
                state.lossy.push(Lossy { path: bounded(path), message: bounded(message) });
            }
        })?,
    )?;
    let run_of = run.clone();
    object.set(
        "forget",
        Function::new(ctx.clone(), move || {
            let mut state = run_of.state.borrow_mut();
            state.lossy.clear();
            state.unknown.clear();
        })?,
    )?;
    let run_of = run.clone();
    object.set(
        "used",
        Function::new(ctx.clone(), move |id: u32| {
            run_of.state.borrow_mut().unused.remove(&id);
        })?,
    )?;
    let run_of = run.clone();
    object.set(
        "unknown",
        Function::new(ctx.clone(), move |path: String| {
            let mut state = run_of.state.borrow_mut();
            if state.unknown.len() < MAX_LOSSY {
                state.unknown.push(bounded(path));
            }
        })?,
    )?;
    let run_of = run.clone();
    object.set(
        "call",
        Function::new(
            ctx.clone(),
            move |ctx: Ctx<'js>, server: String, tool: String, json: String, site: String, call_site: String| {
                call(&run_of, server, tool, json, site, call_site)
                    .map_err(|message| Exception::throw_range(&ctx, &message))
            },
        )?,
    )?;
    let run_of = run.clone();
    object.set("log", Function::new(ctx.clone(), move |level: String, text: String| log(&run_of, level, text))?)?;
    let run_of = run.clone();
    object.set(
        "addTimer",
        Function::new(ctx.clone(), move |delay: f64, repeats: bool| {
            run_of.state.borrow_mut().add_timer(delay, repeats)
        })?,
    )?;
    let run_of = run.clone();
    object.set("clearTimer", Function::new(ctx.clone(), move |id: u32| run_of.state.borrow_mut().clear_timer(id))?)?;
    let run_of = run.clone();
    object.set(
        "now",
        Function::new(ctx.clone(), move || {
            let state = run_of.state.borrow();
            state.start.epoch_ms as f64 + state.now_ms.floor()
        })?,
    )?;
    let run_of = run.clone();
    object.set("random", Function::new(ctx.clone(), move || run_of.state.borrow_mut().random.next())?)?;
    let run_of = run.clone();
    object.set(
        "knows",
        Function::new(ctx.clone(), move |server: String, name: String| knows(&run_of.state.borrow(), &server, &name))?,
    )?;
    let run_of = run.clone();
    object.set("names", Function::new(ctx.clone(), move |server: String| names(&run_of.state.borrow(), &server))?)?;
    let run_of = run.clone();
    object.set("done", Function::new(ctx.clone(), move |json: String, _is_undefined: bool| done(&run_of, json))?)?;
    let run_of = run.clone();
    object.set(
        "failed",
        Function::new(ctx.clone(), move |name: String, message: String, stack: String, call: i64| {
            failed(&run_of, exception(name, message, stack, call));
        })?,
    )?;
    let run_of = run.clone();
    object.set("decide", Function::new(ctx.clone(), move |id: u32, yes: bool| decide(&run_of, id, yes))?)?;
    let run_of = run.clone();
    object.set(
        "choice",
        Function::new(ctx.clone(), move |id: u32| {
            keep_first(&run_of, id);
            run_of.state.borrow_mut().forced(id)
        })?,
    )?;
    let run_of = run.clone();
    object.set("count", Function::new(ctx.clone(), move |id: u32, yes: bool| count(&run_of, id, yes))?)?;
    let run_of = run.clone();
    object.set("derived", Function::new(ctx.clone(), move |id: u32, text: String| derived(&run_of, id, &text))?)?;
    let run_of = run.clone();
    object.set("operand", Function::new(ctx.clone(), move |id: u32, text: String| operand(&run_of, id, &text))?)?;
    let run_of = run.clone();
    object.set("shape", Function::new(ctx.clone(), move |call: u32, json: String| shape(&run_of, call, &json))?)?;
    let run_of = run.clone();
    object.set(
        "unhandled",
        Function::new(ctx.clone(), move |name: String, message: String, stack: String, call: i64| {
            run_of.state.borrow_mut().unhandled.push(exception(name, message, stack, call));
        })?,
    )?;
    Ok(object)
}

/// Issues a call and returns its id; the error is the message of the exception.
fn call(run: &Run, server: String, tool: String, json: String, site: String, call_site: String) -> Result<u32, String> {
    let mut state = run.state.borrow_mut();
    let (lossy, unknown) = (std::mem::take(&mut state.lossy), std::mem::take(&mut state.unknown));
    state.new_bytes += json.len() + server.len() + tool.len();
    let limits = &state.start.limits;
    let (calls, open_calls, frame_bytes) = (limits.calls, limits.open_calls, limits.frame_bytes);
    let limit = if state.calls >= calls {
        Some(Limit::Calls(calls))
    } else if state.open.len() >= open_calls as usize {
        Some(Limit::OpenCalls(open_calls))
    } else if state.new_bytes > frame_bytes {
        Some(Limit::Frame(frame_bytes))
    } else {
        None
    };
    if let Some(limit) = limit {
        run.exceed(limit);
        return Err(limit.to_string());
    }
    let (json, changed) = without_lone_surrogates(json);
    let arguments = RawValue::from_string(json).map_err(|error| format!("arguments are no JSON: {error}"))?;
    let mut lossy = lossy;
    if changed {
        lossy.push(Lossy { path: "$".to_owned(), message: "a lone surrogate in a key becomes U+FFFD".to_owned() });
    }
    state.calls += 1;
    let id = state.calls;
    state.open.insert(id);
    state.unused.insert(id);
    state.new_calls.push(CallFrame { id, server, tool, arguments, site, call_site, lossy, unknown });
    Ok(id)
}

fn log(run: &Run, level: String, text: String) {
    let mut state = run.state.borrow_mut();
    state.console_bytes += text.len() + level.len();
    let limit = state.start.limits.console_bytes;
    if state.console_bytes > limit {
        run.exceed(Limit::Console(limit));
    } else {
        state.console.push(ConsoleLine { level, text });
    }
}

/// True if the catalogue has the server, or with a server its tool.
fn knows(state: &RunState, server: &str, name: &str) -> bool {
    let catalogue = &state.start.catalogue;
    if server.is_empty() {
        return catalogue.contains_key(name);
    }
    catalogue.get(server).is_some_and(|tools| tools.iter().any(|tool| tool == name))
}

/// The names of the servers, or of the tools of a server, as a JSON array.
fn names(state: &RunState, server: &str) -> String {
    let catalogue = &state.start.catalogue;
    let mut names: Vec<&String> = match server {
        "" => catalogue.keys().collect(),
        server => catalogue.get(server).map(|tools| tools.iter().collect()).unwrap_or_default(),
    };
    // `ownKeys` must not return a name twice.
    names.sort_unstable();
    names.dedup();
    serde_json::to_string(&names).unwrap_or_else(|_| "[]".to_owned())
}

/// The plan returned a value.
fn done(run: &Run, json: String) {
    let mut state = run.state.borrow_mut();
    if state.outcome.is_some() {
        return;
    }
    let limit = state.start.limits.result_bytes;
    if json.len() > limit {
        run.exceed(Limit::Result { bytes: json.len(), limit });
        return;
    }
    state.outcome_lossy = std::mem::take(&mut state.lossy);
    let (json, _) = without_lone_surrogates(json);
    if let Ok(value) = RawValue::from_string(json) {
        state.outcome = Some(WorkerOutcome::Value(value));
    }
}

/// Records a decision, and returns its outcome: that of the plan, unless the run forces another one or follows an earlier run.
fn decide(run: &Run, id: u32, yes: bool) -> bool {
    let outcome = run.state.borrow_mut().outcome_of(id, yes);
    keep_first(run, id);
    count(run, id, outcome);
    if let Some(record) = run.state.borrow_mut().site(id)
        && record.sequence.len() < MAX_SEQUENCE
    {
        record.sequence.push(if outcome { '1' } else { '0' });
    }
    outcome
}

/// Keeps the operands of the first decision.
fn keep_first(run: &Run, id: u32) {
    if let Some(record) = run.state.borrow_mut().site(id)
        && record.first_operands == 0
    {
        record.first_operands = record.operands;
    }
}

/// Counts an outcome.
fn count(run: &Run, id: u32, yes: bool) {
    if let Some(record) = run.state.borrow_mut().site(id) {
        let count = if yes { &mut record.yes } else { &mut record.no };
        *count = count.saturating_add(1);
        record.decisions = hash(record.decisions, &[u8::from(yes)]);
    }
}

/// Records the value of a derivation.
fn derived(run: &Run, id: u32, text: &str) {
    keep_first(run, id);
    if let Some(record) = run.state.borrow_mut().site(id) {
        record.yes = record.yes.saturating_add(1);
        record.decisions = hash(hash(record.decisions, &text.len().to_le_bytes()), text.as_bytes());
    }
}

/// Records a value that takes part in a decision.
fn operand(run: &Run, id: u32, text: &str) {
    if let Some(record) = run.state.borrow_mut().site(id) {
        // The length keeps values apart.
        record.operands = hash(hash(record.operands, &text.len().to_le_bytes()), text.as_bytes());
    }
}

/// FNV-1a, continued from an earlier hash.
fn hash(before: u64, bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(before ^ 0xcbf2_9ce4_8422_2325, mix)
}

/// Keeps the shape of a recorder.
fn shape(run: &Run, call: u32, json: &str) {
    let mut state = run.state.borrow_mut();
    if let Ok(example) = serde_json::from_str(json) {
        state.shapes.push(RecordedShape { call, example });
    }
}

/// The plan threw.
fn failed(run: &Run, exception: protocol::Exception) {
    let mut state = run.state.borrow_mut();
    if state.outcome.is_some() {
        return;
    }
    if exception.name == "RangeError" && exception.message == "Maximum call stack size exceeded" {
        run.exceed(Limit::Stack(state.start.limits.stack_bytes));
        return;
    }
    state.outcome = Some(WorkerOutcome::Exception(exception));
}

/// An exception with texts of bounded length.
fn exception(name: String, message: String, stack: String, call: i64) -> protocol::Exception {
    let [name, message, stack] = [name, message, stack].map(bounded);
    protocol::Exception { name, message, stack, call: u32::try_from(call).ok() }
}

/// The beginning of a long text.
fn bounded(mut text: String) -> String {
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text.push('…');
    }
    text
}

/// Replaces escapes of lone surrogates in JSON of the engine, which escapes no other surrogate.
fn without_lone_surrogates(json: String) -> (String, bool) {
    if !json.contains("\\ud") {
        return (json, false);
    }
    let mut text = String::with_capacity(json.len());
    let mut changed = false;
    let mut rest = json.as_str();
    while let Some(at) = rest.find('\\') {
        let escape = &rest[at..];
        text.push_str(&rest[..at]);
        let length = if escape.as_bytes().get(1) == Some(&b'u') { 6 } else { 2 }.min(escape.len());
        let surrogate =
            escape.starts_with("\\ud") && matches!(escape.as_bytes().get(3), Some(b'8'..=b'9' | b'a'..=b'f'));
        changed |= surrogate;
        text.push_str(if surrogate { "\\ufffd" } else { &escape[..length] });
        rest = &escape[length..];
    }
    text.push_str(rest);
    (text, changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_escapes_of_lone_surrogates_are_replaced() {
        let replaced = |json: &str| without_lone_surrogates(json.to_owned());
        assert_eq!(replaced(r#"{"\ud800":"\\ud800\n"}"#), (r#"{"\ufffd":"\\ud800\n"}"#.to_owned(), true));
        assert_eq!(replaced(r#""\ud7ff""#), (r#""\ud7ff""#.to_owned(), false));
    }
}
