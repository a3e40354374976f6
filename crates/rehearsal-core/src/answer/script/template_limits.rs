//! Limits how much memory one template may use.
//!
//! ```text
//! template ──rewritten──► filters only ──► bound the result ──► compute ──► count the result
//!                                               └── more than is left: an error, before anything is allocated
//! ```
//!
//! The engine has no limit for memory. Every filter, test and function that makes a value is therefore replaced by
//! one that estimates the memory first. What a template allocates is counted and never subtracted, so the count is
//! an upper bound of the memory in use. Only the length of a list is counted, because its elements are shared.

use std::fmt::{self, Write};
use std::sync::LazyLock;

use minijinja::value::{DynObject, Kwargs, ObjectRepr, Rest, ValueKind, ValueOrKwargs, from_args};
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value, context, escape_formatter,
    filters, functions, tests as builtin,
};

/// Maximum number of bytes that one template may allocate: enough for any test, and small enough for many concurrent
/// requests.
const MADE_LIMIT: usize = 64 << 20;

/// Maximum number of bytes that the templates of an answer may write. A message has the same limit.
pub(super) const WRITTEN_LIMIT: usize = 16 << 20;

/// Maximum depth of a value of a template, which is also the maximum depth of the JSON of a message.
const MAX_DEPTH: usize = 128;

/// The size of a list element, in bytes.
const ELEMENT_BYTES: usize = size_of::<Value>();

/// Maximum number of bytes that a filter needs for one element while it sorts, groups or pairs them.
const WORK_BYTES: usize = 4 * ELEMENT_BYTES;

/// Bytes that are counted for a visit to one value inside another, so that the number of visits has a limit, too.
const VISIT_BYTES: usize = 16;

/// Maximum length of a number as text, in bytes.
const NUMBER_BYTES: usize = 400;

/// The error of an answer whose templates write too much.
pub(super) const WRITES_TOO_MUCH: &str = "the templates of the answer write more than 16 MiB";

/// Replaces every filter, test and function that makes a value.
pub(super) fn limit(environment: &mut Environment<'static>) {
    environment.set_formatter(write_limited);

    let mut filter = |name: &'static str, bound: Bound, original: Value| {
        environment.add_filter(name, move |state: &mut State<'_, '_>, arguments: Rest<ValueOrKwargs>| {
            let arguments = arguments.into_values();
            let bytes = bound(state, &arguments)?;
            expect(state, bytes)?;
            let result = original.call(state, &arguments)?;
            made(state, result)
        });
    };
    filter("__add", pair, Value::from_function(add));
    filter("__concat", text, Value::from_function(concat));
    filter("__repeat", repeated, Value::from_function(repeat));
    filter("__slice", once, Value::from_function(slice));
    filter("__made", elements, Value::from_function(|value: Value| value));
    filter("batch", batches, Value::from_function(filters::batch));
    filter("capitalize", mapped, Value::from_function(filters::capitalize));
    filter("chain", elements, Value::from_function(filters::chain));
    filter("dictsort", elements, Value::from_function(filters::dictsort));
    filter("e", escaped, Value::from_function(filters::escape));
    filter("escape", escaped, Value::from_function(filters::escape));
    filter("format", formatted, Value::from_function(filters::format));
    filter("groupby", keyed, Value::from_function(filters::groupby));
    filter("indent", indented, Value::from_function(filters::indent));
    filter("items", elements, Value::from_function(filters::items));
    filter("join", joined, Value::from_function(filters::join));
    filter("lines", lines, Value::from_function(filters::lines));
    filter("list", elements, Value::from_function(filters::list));
    filter("lower", mapped, Value::from_function(filters::lower));
    filter("map", elements, Value::from_function(filters::map));
    filter("pprint", pretty, Value::from_function(filters::pprint));
    filter("reject", elements, Value::from_function(filters::reject));
    filter("rejectattr", elements, Value::from_function(filters::rejectattr));
    filter("replace", replaced, Value::from_function(filters::replace));
    filter("reverse", once, Value::from_function(filters::reverse));
    filter("safe", text, Value::from_function(filters::safe));
    filter("select", elements, Value::from_function(filters::select));
    filter("selectattr", elements, Value::from_function(filters::selectattr));
    filter("slice", batches, Value::from_function(filters::slice));
    filter("sort", keyed, Value::from_function(filters::sort));
    filter("split", pieces, Value::from_function(filters::split));
    filter("string", text, Value::from_function(filters::string));
    filter("sum", summed, Value::from_function(filters::sum));
    filter("title", mapped, Value::from_function(filters::title));
    filter("tojson", pretty, Value::from_function(filters::tojson));
    filter("trim", text, Value::from_function(filters::trim));
    filter("unique", keyed, Value::from_function(filters::unique));
    filter("upper", mapped, Value::from_function(filters::upper));
    filter("zip", elements, Value::from_function(filters::zip));

    environment.add_filter("__each", |state: &mut State<'_, '_>, value: Value| {
        // A loop over an object copies its keys.
        let keys = if value.kind() == ValueKind::Map { value.len().unwrap_or(0) } else { 0 };
        expect(state, keys * ELEMENT_BYTES).and_then(|()| count(state, keys * ELEMENT_BYTES)).map(|()| value)
    });
    environment.add_filter("__held", |state: &mut State<'_, '_>, value: ValueOrKwargs| {
        let value = value.into_value();
        shape(state, &value).map(|_| value)
    });
    environment.add_filter("__text", |state: &mut State<'_, '_>, value: Value| {
        // `in` converts its left operand to text if the right one is text.
        text_length(state, &value).map(|_| value)
    });
    environment.add_filter("__in", |state: &mut State<'_, '_>, value: Value, container: Value| {
        text_length(state, &value)?;
        operate("a in b", context! { a => value, b => container })
    });

    let mut test = |name: &'static str, original: Value| {
        environment.add_test(name, move |state: &mut State<'_, '_>, arguments: Rest<Value>| {
            let bytes = text(state, &arguments)?;
            expect(state, bytes)?;
            original.call(state, &arguments).map(|result| result.is_true())
        });
    };
    test("startingwith", Value::from_function(builtin::is_startingwith));
    test("endingwith", Value::from_function(builtin::is_endingwith));
    test("in", Value::from_function(builtin::is_in));

    let mut function = |name: &'static str, original: Value| {
        environment.add_function(name, move |state: &mut State<'_, '_>, arguments: Rest<ValueOrKwargs>| {
            let arguments = arguments.into_values();
            let bytes = elements(state, &arguments)?;
            expect(state, bytes)?;
            count(state, bytes)?;
            original.call(state, &arguments)
        });
    };
    function("dict", Value::from_function(functions::dict));
    function("namespace", Value::from_function(functions::namespace));
    // `debug` prints the state of the engine, which may be of any size.
    environment.remove_global("debug");
}

/// Returns the length of a value as text, up to the limit of what is written.
pub(super) fn written_length(value: &Value) -> Option<usize> {
    let mut counter = Counter { length: 0, limit: WRITTEN_LIMIT };
    write!(counter, "{value}").ok().map(|()| counter.length)
}

/// Bytes that a render has made so far.
#[derive(Default)]
struct Made(usize);

/// Estimates, from the arguments of a filter, how many bytes it needs at most.
type Bound = fn(&mut State<'_, '_>, &[Value]) -> Result<usize, Error>;

fn too_much() -> Error {
    Error::new(ErrorKind::OutOfFuel, "the template makes values of more than 64 MiB")
}

/// Bytes that a template may still make.
fn room(state: &mut State<'_, '_>) -> usize {
    MADE_LIMIT - state.get_or_insert_extension(Made::default()).0
}

/// Fails if there is no room for this many bytes.
fn expect(state: &mut State<'_, '_>, bytes: usize) -> Result<(), Error> {
    if bytes > room(state) { Err(too_much()) } else { Ok(()) }
}

/// Counts bytes that were made.
fn count(state: &mut State<'_, '_>, bytes: usize) -> Result<(), Error> {
    expect(state, bytes)?;
    state.get_or_insert_extension(Made::default()).0 += bytes;
    Ok(())
}

/// Counts the result of a filter, and makes a plain list or object of one that is computed element by element.
fn made(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    let value = match value.kind() {
        ValueKind::String => {
            count(state, value.as_str().map_or(0, str::len))?;
            return Ok(value);
        }
        ValueKind::Seq | ValueKind::Iterable
            if value.is_tuple() || value.downcast_object_ref::<Vec<Value>>().is_some() =>
        {
            count(state, value.len().unwrap_or(0).saturating_mul(ELEMENT_BYTES))?;
            value
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let mut list = Vec::new();
            for element in value.try_iter()?.checked() {
                count(state, ELEMENT_BYTES)?;
                list.push(element?);
            }
            Value::from(list)
        }
        ValueKind::Map => {
            let mut pairs = Vec::new();
            for key in value.try_iter()? {
                count(state, WORK_BYTES)?;
                let item = value.get_item(&key)?;
                pairs.push((key, item));
            }
            Value::from_pairs(pairs)
        }
        _ => return Ok(value),
    };
    shape(state, &value)?;
    Ok(value)
}

/// How large a value is.
struct Shape {
    nodes: usize,
    depth: usize,
}

/// Measures a value that becomes part of another one, and counts the work.
///
/// A namespace cannot be part of a value, because it could contain itself. Every value is therefore finite.
fn shape(state: &mut State<'_, '_>, value: &Value) -> Result<Shape, Error> {
    let mut shape = Shape { nodes: 0, depth: 0 };
    let room = room(state) / VISIT_BYTES;
    measure(value, 1, room, &mut shape)?;
    count(state, shape.nodes * VISIT_BYTES)?;
    Ok(shape)
}

fn measure(value: &Value, depth: usize, room: usize, shape: &mut Shape) -> Result<(), Error> {
    shape.nodes += 1;
    shape.depth = shape.depth.max(depth);
    if shape.nodes > room {
        return Err(too_much());
    }
    let Some(object) = value.as_object() else { return Ok(()) };
    if depth > MAX_DEPTH {
        return Err(Error::new(ErrorKind::OutOfFuel, "the template makes a value of more than 128 levels"));
    }
    if is_mutable(object) {
        return Err(Error::new(ErrorKind::InvalidOperation, "a namespace or `loop` cannot be part of a value"));
    }
    match object.repr() {
        ObjectRepr::Seq | ObjectRepr::Iterable => {
            object.try_iter().into_iter().flatten().try_for_each(|child| measure(&child, depth + 1, room, shape))
        }
        ObjectRepr::Map => object.try_iter_pairs().into_iter().flatten().try_for_each(|(key, child)| {
            measure(&key, depth + 1, room, shape)?;
            measure(&child, depth + 1, room, shape)
        }),
        _ => Ok(()),
    }
}

/// True for the engine's types that change after they were made.
fn is_mutable(object: &DynObject) -> bool {
    ["::Namespace", "::Loop"].iter().any(|name| object.type_name().ends_with(name))
}

/// Counts what is written and fails above a limit.
struct Counter {
    length: usize,
    limit: usize,
}

impl Write for Counter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.length += text.len();
        if self.length > self.limit { Err(fmt::Error) } else { Ok(()) }
    }
}

/// The length of a value as text; fails if it is more than there is room for.
fn text_length(state: &mut State<'_, '_>, value: &Value) -> Result<usize, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.len());
    }
    if value.as_object().is_none() {
        return Ok(NUMBER_BYTES);
    }
    let mut counter = Counter { length: 0, limit: room(state) };
    write!(counter, "{value}").map_err(|_| too_much())?;
    Ok(counter.length)
}

/// Writes a value to the output or to a captured block.
fn write_limited(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    let length = match value.as_object() {
        Some(_) => text_length(state, value)?,
        None => value.as_str().map_or(0, str::len),
    };
    // An escaped character has at most six characters.
    let bytes = if matches!(state.auto_escape(), AutoEscape::None) { length } else { length.saturating_mul(6) };
    count(state, bytes)?;
    escape_formatter(out, state, value)
}

/// The arguments as texts, as a filter reads them.
fn texts(state: &mut State<'_, '_>, arguments: &[Value]) -> Result<Vec<String>, Error> {
    expect_text(state, arguments)?;
    Ok(arguments.iter().map(ToString::to_string).collect())
}

/// The arguments as text, together.
fn text(state: &mut State<'_, '_>, arguments: &[Value]) -> Result<usize, Error> {
    arguments.iter().try_fold(0, |sum: usize, argument| Ok(sum.saturating_add(text_length(state, argument)?)))
}

fn expect_text(state: &mut State<'_, '_>, arguments: &[Value]) -> Result<(), Error> {
    let length = text(state, arguments)?;
    expect(state, length)
}

/// A character has at most three times as many bytes in the other case.
fn mapped(state: &mut State<'_, '_>, arguments: &[Value]) -> Result<usize, Error> {
    Ok(text(state, arguments)?.saturating_mul(3))
}

/// An escaped character has at most six characters.
fn escaped(state: &mut State<'_, '_>, arguments: &[Value]) -> Result<usize, Error> {
    Ok(text(state, arguments)?.saturating_mul(6))
}

/// How many elements a filter reads from a value.
fn size(value: &Value) -> usize {
    value.as_str().map(|text| text.chars().count()).or_else(|| value.len()).unwrap_or(0)
}

/// The work for every element.
fn elements(_: &mut State<'_, '_>, arguments: &[Value]) -> Result<usize, Error> {
    Ok(arguments.iter().map(size).fold(0, usize::saturating_add).saturating_mul(WORK_BYTES))
}

/// The work and the text of every element, for every key in a list of keys.
fn keyed(state: &mut State<'_, '_>, arguments: &[Value]) -> Result<usize, Error> {
    let whole = elements(state, arguments)?.saturating_add(text(state, arguments)?);
    let keys = named(arguments, "attribute").and_then(|keys| Some(keys.as_str()?.matches(',').count())).unwrap_or(0);
    Ok(whole.saturating_mul(keys + 1))
}

/// One copy of the first argument.
fn once(_: &mut State<'_, '_>, arguments: &[Value]) -> Result<usize, Error> {
    Ok(arguments.first().map_or(0, |value| match value.as_str() {
        Some(text) => text.len(),
        None => size(value).saturating_mul(ELEMENT_BYTES),
    }))
}

/// One copy of both operands.
fn pair(state: &mut State<'_, '_>, arguments: &[Value]) -> Result<usize, Error> {
    Ok(once(state, arguments)?.saturating_add(once(state, arguments.get(1..).unwrap_or_default())?))
}

/// Copies of one operand; the other one is their number.
fn repeated(state: &mut State<'_, '_>, arguments: &[Value]) -> Result<usize, Error> {
    let times = arguments.iter().filter_map(Value::as_usize).max().unwrap_or(0);
    Ok(pair(state, arguments)?.saturating_mul(times))
}

/// The elements, and lists whose number or length is the second argument.
fn batches(state: &mut State<'_, '_>, arguments: &[Value]) -> Result<usize, Error> {
    let lists = arguments.get(1).and_then(Value::as_usize).unwrap_or(0).saturating_mul(WORK_BYTES);
    Ok(elements(state, arguments)?.saturating_add(lists))
}

/// The text with a copy of the new text for each old one.
fn replaced(state: &mut State<'_, '_>, arguments: &[Value]) -> Result<usize, Error> {
    let texts = texts(state, arguments)?;
    let [whole, from, to] = &texts[..] else { return Ok(0) };
    Ok(whole.len().saturating_add(whole.matches(from.as_str()).count().saturating_mul(to.len())))
}

/// The elements as text with a separator between them.
fn joined(state: &mut State<'_, '_>, arguments: &[Value]) -> Result<usize, Error> {
    let [list, separator @ ..] = arguments else { return Ok(0) };
    let mut length = size(list).saturating_mul(text(state, separator)?);
    for element in list.try_iter()? {
        length = length.saturating_add(text_length(state, &element)?);
        expect(state, length)?;
    }
    Ok(length)
}

/// The text with spaces in front of each line.
fn indented(state: &mut State<'_, '_>, arguments: &[Value]) -> Result<usize, Error> {
    let texts = texts(state, &arguments[..arguments.len().min(1)])?;
    let lines = texts.first().map_or(0, |text| text.matches('\n').count() + 1);
    let width = number(arguments, "width").unwrap_or(4);
    Ok(text(state, arguments)?.saturating_add(lines.saturating_mul(width.saturating_add(1))))
}

/// The value as text, where each element may be on a line of its own.
fn pretty(state: &mut State<'_, '_>, arguments: &[Value]) -> Result<usize, Error> {
    let [value, ..] = arguments else { return Ok(0) };
    let whole = shape(state, value)?;
    let spaces = number(arguments, "indent").unwrap_or(4).saturating_add(1).saturating_mul(whole.depth);
    Ok(escaped(state, &arguments[..1])?.saturating_add(whole.nodes.saturating_mul(spaces)))
}

/// A list of the parts of a text.
fn pieces(state: &mut State<'_, '_>, arguments: &[Value]) -> Result<usize, Error> {
    let texts = texts(state, arguments)?;
    let Some(whole) = texts.first() else { return Ok(0) };
    let parts = match arguments.get(1).and_then(Value::as_str) {
        Some(separator) => whole.matches(separator).count() + 1,
        None => whole.split_whitespace().count(),
    };
    Ok(parts.saturating_mul(WORK_BYTES).saturating_add(whole.len()))
}

/// A list of the lines of a text.
fn lines(state: &mut State<'_, '_>, arguments: &[Value]) -> Result<usize, Error> {
    let texts = texts(state, arguments)?;
    Ok(texts.iter().map(|text| text.len() + (text.matches('\n').count() + 1) * WORK_BYTES).sum())
}

/// The sum of texts or lists is as long as they are together.
fn summed(state: &mut State<'_, '_>, arguments: &[Value]) -> Result<usize, Error> {
    let whole = text(state, arguments)?;
    let mut nodes: usize = 0;
    for argument in arguments {
        nodes = nodes.saturating_add(shape(state, argument)?.nodes);
    }
    Ok(whole.saturating_add(nodes.saturating_mul(ELEMENT_BYTES)))
}

/// The format with the longest argument, and the largest width, for each `%`.
fn formatted(state: &mut State<'_, '_>, arguments: &[Value]) -> Result<usize, Error> {
    let Some(format) = arguments.first().and_then(Value::as_str) else { return Ok(0) };
    let digits = format.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let widths = digits.map(|digits| digits.parse().unwrap_or(usize::MAX)).fold(0, usize::saturating_add);
    let mut longest = NUMBER_BYTES.saturating_add(widths);
    for argument in &arguments[1..] {
        longest = longest.max(text_length(state, argument)?);
        // The width may be an argument: `%*d`.
        if format.contains('*') {
            longest =
                longest.saturating_add(argument.as_i64().map_or(0, |width| usize::try_from(width.abs()).unwrap_or(0)));
        }
    }
    Ok(format.len().saturating_add(format.matches('%').count().saturating_mul(longest)))
}

/// A keyword argument.
fn named(arguments: &[Value], name: &str) -> Option<Value> {
    let (_, named) = from_args::<(&[Value], Kwargs)>(arguments).ok()?;
    named.get(name).ok()
}

/// The second argument, or the keyword argument of this name, if it is a number.
fn number(arguments: &[Value], name: &str) -> Option<usize> {
    arguments.get(1).and_then(Value::as_usize).or_else(|| named(arguments, name)?.as_usize())
}

/// The engine without limits, for its operators.
static OPERATORS: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment
});

fn operate(expression: &'static str, operands: Value) -> Result<Value, Error> {
    OPERATORS.compile_expression(expression)?.eval(operands)
}

fn add(a: Value, b: Value) -> Result<Value, Error> {
    operate("a + b", context! { a, b })
}

fn concat(a: Value, b: Value) -> Result<Value, Error> {
    operate("a ~ b", context! { a, b })
}

fn repeat(a: Value, b: Value) -> Result<Value, Error> {
    operate("a * b", context! { a, b })
}

fn slice(a: Value, start: Value, stop: Value, step: Value) -> Result<Value, Error> {
    operate("a[start:stop:step]", context! { a, start, stop, step })
}
