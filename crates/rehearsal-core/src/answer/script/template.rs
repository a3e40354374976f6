//! Templates: texts that depend on the request, and JSON values that contain such texts.

use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value as JinjaValue};
use serde_json::{Map, Value};

use super::template_limits::{WRITES_TOO_MUCH, WRITTEN_LIMIT, limit, written_length};
use super::template_rewrite::rewritten;
use crate::json::read_value;

/// Maximum number of steps of one template. A loop over a million elements needs more.
const STEP_LIMIT: u64 = 200_000;

/// The values that templates can read.
#[derive(Debug)]
pub(in crate::answer) struct TemplateScope<'a> {
    /// The arguments of the tool or prompt, or the variables of the resource template.
    pub(in crate::answer) arguments: &'a Value,
    /// The state of the mock.
    pub(in crate::answer) state: &'a Map<String, Value>,
    /// How often the target was requested, from 1.
    pub(in crate::answer) call: u64,
    /// The `name` and `version` of the client.
    pub(in crate::answer) client: &'a Value,
    /// The capabilities of the client.
    pub(in crate::answer) capabilities: &'a Value,
    /// The HTTP headers, by their names in lower case.
    pub(in crate::answer) headers: &'a Value,
    /// The `_meta` of the request.
    pub(in crate::answer) meta: &'a Value,
    /// The input responses, by the names of the input requests.
    pub(in crate::answer) answers: &'a Map<String, Value>,
    /// The URI of the requested resource.
    pub(in crate::answer) uri: Option<&'a str>,
    /// The protocol version.
    pub(in crate::answer) version: &'a str,
}

/// The names that a template can use.
const ROOT_NAMES: [&str; 10] =
    ["arguments", "state", "call", "client", "capabilities", "headers", "meta", "answers", "uri", "version"];

impl TemplateScope<'_> {
    fn root_value(&self, root: &str) -> JinjaValue {
        match root {
            "arguments" => JinjaValue::from(Serde(self.arguments)),
            "state" => JinjaValue::from(Serde(self.state)),
            "call" => JinjaValue::from(self.call),
            "client" => JinjaValue::from(Serde(self.client)),
            "capabilities" => JinjaValue::from(Serde(self.capabilities)),
            "headers" => JinjaValue::from(Serde(self.headers)),
            "meta" => JinjaValue::from(Serde(self.meta)),
            "answers" => JinjaValue::from(Serde(self.answers)),
            "uri" => self.uri.map_or(JinjaValue::UNDEFINED, JinjaValue::from),
            "version" => JinjaValue::from(self.version),
            _ => JinjaValue::UNDEFINED,
        }
    }
}

/// Every template of a mock, compiled.
///
/// There is no loader, so a template cannot read files or other templates. Its steps and its memory are limited.
#[derive(Debug)]
pub(in crate::answer) struct Templates {
    environment: Environment<'static>,
    syntax: SyntaxConfig,
    count: usize,
    reads_headers: bool,
}

/// One template among [`Templates`].
#[derive(Clone, Debug)]
pub(in crate::answer) struct Template {
    name: Arc<str>,
    output: TemplateOutput,
    /// The names of the scope that it reads.
    roots: Arc<[&'static str]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TemplateOutput {
    /// Text.
    Text,
    /// The value of its only expression, of any type.
    Value,
}

/// The variable for the value of a template that is a single expression.
const WHOLE_VARIABLE: &str = "__whole";

impl Templates {
    pub(in crate::answer) fn new() -> Templates {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        // A text keeps its last line end, with or without a template in it. The default marks are always valid.
        let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build().unwrap_or_default();
        environment.set_syntax(syntax.clone());
        environment.set_fuel(Some(STEP_LIMIT));
        limit(&mut environment);
        Templates { environment, syntax, count: 0, reads_headers: false }
    }

    /// Compiles a text; `None` if it is not a template.
    pub(in crate::answer) fn add(&mut self, text: &str) -> Result<Option<Template>, String> {
        if !["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)) {
            return Ok(None);
        }
        let (source, output) = match whole_expression(text) {
            Some(expression) => (format!("{{% set {WHOLE_VARIABLE} = ({expression}) %}}"), TemplateOutput::Value),
            None => (text.to_owned(), TemplateOutput::Text),
        };
        let name = self.count.to_string();
        let mut added = self.compile(&name, &source);
        let mut output = output;
        if added.is_err() && output == TemplateOutput::Value {
            // `{{ a }} and {{ b }}` looks like one expression from both ends.
            output = TemplateOutput::Text;
            added = self.compile(&name, text);
        }
        added.map_err(|error| error_text(&error))?;
        self.count += 1;
        let template = self.environment.get_template(&name).map_err(|error| error_text(&error))?;
        let used = template.undeclared_variables(false);
        if let Some(unknown) = used.iter().find(|used| !ROOT_NAMES.contains(&used.as_str()) && !self.is_global(used)) {
            let hint = crate::suggest::closest(unknown, ROOT_NAMES).map(|meant| format!("; did you mean `{meant}`?"));
            let hint = hint.unwrap_or_else(|| format!("; the names are {}", ROOT_NAMES.join(", ")));
            return Err(format!("unknown name `{unknown}` in a template{hint}"));
        }
        if let Some(unknown) = filters(text).into_iter().find(|filter| !self.has_filter(filter)) {
            return Err(format!("unknown filter `{unknown}` in a template"));
        }
        self.reads_headers |= used.contains("headers");
        let roots = ROOT_NAMES.into_iter().filter(|root| used.contains(*root)).collect();
        Ok(Some(Template { name: name.into(), output, roots }))
    }

    fn compile(&mut self, name: &str, source: &str) -> Result<(), minijinja::Error> {
        let limited = rewritten(source, self.syntax.clone())?;
        self.environment.add_template_owned(name.to_owned(), limited)
    }

    /// Whether any template reads headers.
    pub(in crate::answer) fn reads_headers(&self) -> bool {
        self.reads_headers
    }

    fn has_filter(&self, name: &str) -> bool {
        let tried = self.environment.render_str(&format!("{{{{ '' | {name} }}}}"), ());
        !tried.is_err_and(|error| error.kind() == ErrorKind::UnknownFilter)
    }

    fn is_global(&self, name: &str) -> bool {
        self.environment.globals().any(|(global, _)| global == name)
    }

    /// The value of a template and its length as text.
    fn render(&self, template: &Template, scope: &TemplateScope<'_>) -> Result<(Value, usize), String> {
        let compiled = self.environment.get_template(&template.name).map_err(|error| error_text(&error))?;
        let context = JinjaValue::from_pairs(template.roots.iter().map(|root| (*root, scope.root_value(root))));
        let absent = || {
            let mut paths: Vec<_> = compiled.undeclared_variables(true).into_iter().collect();
            paths.sort();
            let absent = paths.into_iter().find(|path| is_absent(path, scope));
            absent.map_or_else(|| "the value is absent".to_owned(), |path| format!("`{path}` is absent"))
        };
        let error_text = |error: minijinja::Error| match error.kind() {
            ErrorKind::UndefinedError => absent(),
            _ => error_text(&error),
        };
        match template.output {
            TemplateOutput::Text => {
                let text = compiled.render(context).map_err(error_text)?;
                let length = text.len();
                Ok((Value::from(text), length))
            }
            TemplateOutput::Value => {
                let captured = compiled.render_captured(context).map_err(error_text)?;
                match captured.state().lookup(WHOLE_VARIABLE) {
                    Some(word) if word.is_undefined() => Err(absent()),
                    Some(word) => {
                        let length = written_length(&word).ok_or(WRITES_TOO_MUCH)?;
                        Ok((value_of(&word).map_err(|error| error.to_string())?, length))
                    }
                    None => Err(absent()),
                }
            }
        }
    }
}

/// The value of an expression; a number of more than 64 bits is rounded.
fn value_of(word: &JinjaValue) -> Result<Value, serde_json::Error> {
    serde_json::to_value(word).or_else(|_| read_value(&serde_json::to_vec(word)?))
}

/// Whether a path such as `arguments.city` has no value.
fn is_absent(path: &str, scope: &TemplateScope<'_>) -> bool {
    let mut keys = path.split('.');
    let root = keys.next().map_or(JinjaValue::UNDEFINED, |root| scope.root_value(root));
    keys.try_fold(root, |word, key| word.get_attr(key)).is_ok_and(|word| word.is_undefined())
}

/// The filters that a template uses: the names after a `|` inside its marks, outside of quotes.
fn filters(text: &str) -> Vec<&str> {
    let mut filters = Vec::new();
    // Comments and raw blocks may contain anything.
    if text.contains("{#") || text.contains("endraw") {
        return filters;
    }
    let mut rest = text;
    while let Some(begin) = ["{{", "{%"].into_iter().filter_map(|mark| rest.find(mark)).min() {
        let inner = &rest[begin + 2..];
        let mut quote = None;
        let mut end = inner.len();
        for (at, c) in inner.char_indices() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(c),
                (None, '|') => {
                    let word = inner[at + 1..].trim_start();
                    let length = word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len());
                    filters.extend((length > 0).then(|| &word[..length]));
                }
                (None, '}') if inner[at + 1..].starts_with('}') || inner[..at].ends_with('%') => {
                    end = at;
                    break;
                }
                (None, _) => {}
            }
        }
        rest = &inner[end..];
    }
    filters
}

/// The expression of `{{ expression }}`, if the text has nothing else.
fn whole_expression(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    let inner = inner.strip_suffix('-').unwrap_or(inner).trim();
    (!inner.is_empty() && !inner.contains("{{") && !inner.contains("}}")).then_some(inner)
}

/// The text of the engine's error, without the internal name of the template.
fn error_text(error: &minijinja::Error) -> String {
    if error.kind() == ErrorKind::OutOfFuel {
        return error.detail().map_or_else(|| "the template takes more than 200,000 steps".to_owned(), str::to_owned);
    }
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

/// A JSON value whose texts may be templates.
#[derive(Clone, Debug)]
pub(in crate::answer) enum TemplateValue {
    /// A value without templates.
    Fixed(Value),
    /// A template.
    Template(Template),
    /// Elements.
    List(Vec<TemplateValue>),
    /// Keys, which are never templates.
    Object(Vec<(String, TemplateValue)>),
}

impl TemplateValue {
    /// Compiles a value.
    pub(in crate::answer) fn compile(value: &Value, templates: &mut Templates) -> Result<TemplateValue, String> {
        match value {
            Value::String(text) => TemplateValue::text(text, templates),
            Value::Array(elements) => {
                let values: Vec<_> = elements
                    .iter()
                    .map(|element| TemplateValue::compile(element, templates))
                    .collect::<Result<_, _>>()?;
                let fixed = values.iter().all(TemplateValue::is_fixed);
                Ok(if fixed { TemplateValue::Fixed(value.clone()) } else { TemplateValue::List(values) })
            }
            Value::Object(fields) => TemplateValue::object(fields, templates),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(TemplateValue::Fixed(value.clone())),
        }
    }

    /// Compiles an object.
    pub(in crate::answer) fn object(
        fields: &Map<String, Value>,
        templates: &mut Templates,
    ) -> Result<TemplateValue, String> {
        let value = |(key, value): (&String, &Value)| Ok((key.clone(), TemplateValue::compile(value, templates)?));
        Ok(TemplateValue::fields(fields.iter().map(value).collect::<Result<_, String>>()?))
    }

    /// An object of these fields.
    pub(in crate::answer) fn fields(fields: Vec<(String, TemplateValue)>) -> TemplateValue {
        if !fields.iter().all(|(_, value)| value.is_fixed()) {
            return TemplateValue::Object(fields);
        }
        let fixed = fields.into_iter().filter_map(|(key, value)| match value {
            TemplateValue::Fixed(value) => Some((key, value)),
            TemplateValue::Template(_) | TemplateValue::List(_) | TemplateValue::Object(_) => None,
        });
        TemplateValue::Fixed(Value::Object(fixed.collect()))
    }

    /// An array of these elements.
    pub(in crate::answer) fn list(elements: Vec<TemplateValue>) -> TemplateValue {
        if !elements.iter().all(TemplateValue::is_fixed) {
            return TemplateValue::List(elements);
        }
        let fixed = elements.into_iter().filter_map(|value| match value {
            TemplateValue::Fixed(value) => Some(value),
            TemplateValue::Template(_) | TemplateValue::List(_) | TemplateValue::Object(_) => None,
        });
        TemplateValue::Fixed(Value::Array(fixed.collect()))
    }

    /// Compiles a text.
    pub(in crate::answer) fn text(text: &str, templates: &mut Templates) -> Result<TemplateValue, String> {
        Ok(match templates.add(text)? {
            Some(template) => TemplateValue::Template(template),
            None => TemplateValue::Fixed(text.into()),
        })
    }

    /// Compiles a text whose rendered value must be text: `{{ 5 }}` is `"5"`.
    pub(in crate::answer) fn string(text: &str, templates: &mut Templates) -> Result<TemplateValue, String> {
        Ok(match templates.add(text)? {
            // An empty expression in front makes the rendered value a text.
            Some(template) if template.output == TemplateOutput::Value => {
                match templates.add(&format!("{{{{ '' }}}}{text}"))? {
                    Some(template) => TemplateValue::Template(template),
                    None => TemplateValue::Fixed(text.into()),
                }
            }
            Some(template) => TemplateValue::Template(template),
            None => TemplateValue::Fixed(text.into()),
        })
    }

    /// Whether the value contains no template.
    pub(in crate::answer) fn is_fixed(&self) -> bool {
        matches!(self, TemplateValue::Fixed(_))
    }

    /// The value for one request.
    pub(in crate::answer) fn render(&self, templates: &Templates, scope: &TemplateScope<'_>) -> Result<Value, String> {
        self.render_within(templates, scope, &mut { WRITTEN_LIMIT })
    }

    /// The value for one request, whose templates may write `remaining` bytes together.
    fn render_within(
        &self,
        templates: &Templates,
        scope: &TemplateScope<'_>,
        remaining: &mut usize,
    ) -> Result<Value, String> {
        match self {
            TemplateValue::Fixed(value) => Ok(value.clone()),
            TemplateValue::Template(template) => {
                let (value, length) = templates.render(template, scope)?;
                *remaining = remaining.checked_sub(length).ok_or(WRITES_TOO_MUCH)?;
                Ok(value)
            }
            TemplateValue::List(elements) => {
                elements.iter().map(|value| value.render_within(templates, scope, remaining)).collect()
            }
            TemplateValue::Object(fields) => {
                let render = |(key, value): &(String, TemplateValue)| {
                    Ok((key.clone(), value.render_within(templates, scope, remaining)?))
                };
                fields.iter().map(render).collect::<Result<Map<_, _>, String>>().map(Value::Object)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rendered(written: Value, arguments: Value) -> Result<Value, String> {
        let mut templates = Templates::new();
        let value = TemplateValue::compile(&written, &mut templates)?;
        let (empty, nothing) = (Map::new(), json!({}));
        let scope = TemplateScope {
            arguments: &arguments,
            state: &empty,
            call: 3,
            client: &nothing,
            capabilities: &nothing,
            headers: &nothing,
            meta: &nothing,
            answers: &empty,
            uri: None,
            version: "2026-07-28",
        };
        value.render(&templates, &scope)
    }

    #[test]
    fn a_single_expression_keeps_the_type_of_its_value() {
        let arguments = json!({"list": [1, {"b": 2, "a": 1.5}], "yes": true, "text": "5", "none": null});
        for (written, expected) in [
            ("{{ arguments.list }}", json!([1, {"b": 2, "a": 1.5}])),
            ("{{arguments.yes}}", json!(true)),
            ("{{ arguments.text }}", json!("5")),
            ("{{ arguments.none }}", json!(null)),
            ("{{ call }}", json!(3)),
            ("{{ call + 1 }}", json!(4)),
            ("{{ arguments.text }} and {{ call }}", json!("5 and 3")),
            ("call {{ call }}", json!("call 3")),
            ("{{ arguments.list | length }}", json!(2)),
            ("{{ '| x' }}{% raw %}{{ a | b }}{% endraw %}", json!("| x{{ a | b }}")),
            ("{{ arguments.missing | default('x') }}", json!("x")),
            ("{% if arguments.yes %}yes{% else %}no{% endif %}", json!("yes")),
        ] {
            assert_eq!(rendered(json!(written), arguments.clone()), Ok(expected), "{written}");
        }
    }

    #[test]
    fn keys_and_values_without_templates_are_unchanged() {
        let written = json!({"{{ call }}": "{{ call }}", "snake_case": ["{ not }", 1.0, null]});
        let expected = json!({"{{ call }}": 3, "snake_case": ["{ not }", 1.0, null]});
        assert_eq!(rendered(written, json!({})), Ok(expected));
    }

    #[test]
    fn a_template_that_cannot_be_rendered_is_an_error() {
        for (written, expected) in [
            ("{{ arguments.city }}", "`arguments.city` is absent"),
            ("in {{ arguments.city }}", "`arguments.city` is absent"),
            ("{{ arguments.city | nosuch }}", "unknown filter `nosuch` in a template"),
            ("a {{ call }} {% if call | wrong(\"|\") %}{% endif %}", "unknown filter `wrong` in a template"),
            ("{{ argument.city }}", "unknown name `argument` in a template; did you mean `arguments`?"),
            ("{{ arguments.city", "syntax error"),
            (
                "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
                "the template takes more than 200,000 steps",
            ),
            ("{% include 'x' %}", "syntax error"),
        ] {
            let error = rendered(json!(written), json!({})).unwrap_err();
            assert!(error.contains(expected), "{written}: {error}");
        }
    }

    const MADE: &str = "the template makes values of more than 64 MiB";
    const STEPS: &str = "the template takes more than 200,000 steps";

    /// Doubles `x` 34 times, starting with a value.
    fn doubled(first: &str, operation: &str) -> String {
        let doubling = format!("{{% set x = {operation} %}}");
        format!("{{% set x = {first} %}}{}{{{{ x | length }}}}", doubling.repeat(34))
    }

    #[test]
    fn a_template_that_needs_too_much_memory_is_an_error() {
        let arguments = json!({"s": "a".repeat(1 << 20), "a": "a", "b": "b".repeat(1 << 13), "none": null});
        let loops = |body: &str| {
            format!("{{% set ns = namespace(x=['a'], s='abc') %}}{{% for i in range(9999) %}}{body}{{% endfor %}}")
        };
        for (written, expected) in [
            (doubled("'a'", "x ~ x"), MADE),
            (doubled("'a'", "x + x"), MADE),
            (doubled("'a'", "x * 2"), MADE),
            (doubled("'a'", "x | replace('a', 'aa')"), MADE),
            (doubled("['a']", "x + x"), MADE),
            (doubled("['a']", "[x, x]"), MADE),
            (doubled("(1, 2)", "x * 2"), MADE),
            (doubled("{'a': 1}", "{'a': x, 'b': x}"), MADE),
            (doubled("{'a': 1}", "dict(a=x, b=x)"), MADE),
            (doubled("['aaaa']", "[x | string, x | string]"), MADE),
            ("{{ arguments.s | replace(arguments.a, arguments.b) | length }}".to_owned(), MADE),
            ("{{ arguments.s | list | join(arguments.b) }}".to_owned(), MADE),
            ("{{ arguments.s | join(arguments.b) }}".to_owned(), MADE),
            ("{{ ('a\n' * 10000) | indent(1000000) }}".to_owned(), MADE),
            ("{{ '%100000000000d' | format(1) }}".to_owned(), MADE),
            ("{{ '%.*f' | format(1000000000, 1.0) }}".to_owned(), MADE),
            ("{{ [1] | batch(1000000000, 'x') }}".to_owned(), MADE),
            ("{{ [1] | slice(1000000000) | length }}".to_owned(), MADE),
            ("{{ {'a': 1} | tojson(indent=1000000000) }}".to_owned(), MADE),
            ("{{ 'a' * 99999999 }}".to_owned(), MADE),
            ("{{ ('a' * 60000000) | list | length }}".to_owned(), MADE),
            ("{{ ('a,' * 10000000) | split(',') | length }}".to_owned(), MADE),
            ("{{ ('\n' * 10000000) | lines | length }}".to_owned(), MADE),
            ("{{ ('<' * 20000000) | e | length }}".to_owned(), MADE),
            ("{{ range(99999) | map('replace', '1', arguments.b) | list | length }}".to_owned(), MADE),
            ("{{ range(1000000000) | list }}".to_owned(), "range has too many elements"),
            (loops("{% set ns.x = ns.x + [i] %}"), MADE),
            (loops("{% set ns.s = ns.s ~ arguments.b %}"), MADE),
            (loops("{% set ns.x = ns.x + [arguments.s[1:]] %}"), MADE),
            (loops("{% set ns.x = [ns.x] %}"), "more than 128 levels"),
            (loops("{% set ns.x = ns.x | batch(1) %}"), "more than 128 levels"),
            (loops("{% set ns.x = ns %}"), "a namespace or `loop` cannot be part of a value"),
            (loops("{% set ns.x = [loop] %}"), "a namespace or `loop` cannot be part of a value"),
            (loops("{% set block %}{{ arguments.s }}{% endset %}"), MADE),
            (loops(&format!("{{% set block %}}{}{{% endset %}}", "raw ".repeat(5000))), MADE),
            (loops("{% for j in range(9999) %}{{ i }}{% endfor %}"), STEPS),
            ("{% set x = [arguments.s] * 1000 %}{{ x | tojson }}".to_owned(), MADE),
            ("{% set x = [arguments.s] * 1000 %}{{ x in 'a' }}".to_owned(), MADE),
            ("{% set x = [arguments.s] * 1000 %}{{ x }}".to_owned(), MADE),
            ("{{ 'a' * 16777217 }}".to_owned(), WRITES_TOO_MUCH),
            ("a{{ 'a' * 16777216 }}".to_owned(), WRITES_TOO_MUCH),
        ] {
            let shown = written.chars().take(80).collect::<String>();
            let error = rendered(json!(written), arguments.clone()).expect_err(&shown);
            assert!(error.contains(expected), "{shown}: {error}");
        }
    }

    #[test]
    fn the_templates_of_one_answer_share_a_limit() {
        let half = "{{ 'a' * 8388608 }}";
        assert!(rendered(json!([half, {"b": half}]), json!({})).is_ok());
        assert_eq!(rendered(json!([half, half, "{{ 'a' }}"]), json!({})), Err(WRITES_TOO_MUCH.to_owned()));
    }

    #[test]
    fn a_long_chain_of_operators_is_rendered() {
        for (operator, expected) in [(" ~ ", json!("1".repeat(300))), (" + ", json!(300)), (" and ", json!(1))] {
            let written = format!("{{{{ {} }}}}", vec!["1"; 300].join(operator));
            assert_eq!(rendered(json!(written), json!({})), Ok(expected), "{operator}");
        }
    }

    #[test]
    fn a_limited_template_computes_what_the_engine_computes() {
        let environment = Environment::new();
        let arguments = json!({
            "s": "Hello, wörld", "n": 3, "l": [3, 1, 2], "o": {"b": "x", "a": [1, {"c": null}]},
            "items": [{"name": "b", "price": 2}, {"name": "a", "price": 3}, {"name": "b", "price": 0.5}],
        });
        for written in [
            "{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ 7 % 4 }} {{ 2 ** 3 }} {{ -2 ** 2 }} {{ -n }} {{ 1 - 2 - 3 }}",
            "{{ s ~ n ~ none ~ true ~ 1.0 ~ l }} {{ 'a' + 'b' }} {{ 'ab' * n }} {{ [1] * 2 + [3] }} {{ (1, 2) + (3,) }}",
            "{{ s[1:3] }} {{ s[::-1] }} {{ l[1:] }} {{ l[-1] }} {{ l[:2] | join('-') }} {{ s[:-2] }}",
            "{{ 'H' in s }} {{ 3 in l }} {{ 9 not in l }} {{ 'a' in o }} {{ 1 < n <= 3 }} {{ 1 < 2 in [2] }} {{ '3' in l }}",
            "{{ 'x' if n > 2 else 'y' }}{{ 'x' if n > 9 }} {{ not n or l and s }} {{ (n > 2) == true }}",
            "{{ l | sort | join(', ') }} {{ l | sort(reverse=true) }} {{ l | reverse | list }} {{ l | sum }} {{ l | max }}",
            "{{ items | map(attribute='name') | unique | join('/') }} {{ items | selectattr('price', 'gt', 1) | list }}",
            "{% for name, list in items | groupby('name') %}{{ name }}:{{ list | length }};{% endfor %}",
            "{% for k, v in o | dictsort %}{{ k }}={{ v }} {% endfor %}{% for k in o %}{{ k }}{% endfor %}",
            "{% for x in l if x > 1 %}{{ loop.index }}{{ x }}{% if loop.last %}.{% else %},{% endif %}{% else %}none{% endfor %}",
            "{% for x in [[1, [2]], 3] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% endif %}{% endfor %}",
            "{% set ns = namespace(a=1) %}{% for x in l %}{% set ns.a = ns.a + x %}{% endfor %}{{ ns.a }} {{ ns }}",
            "{% set a, b = n, s %}{{ b }}{{ a }}{% with c = a, d = 2 %}{{ c + d }}{% endwith %}",
            "{% set x %}a {{ n }}\n{% endset %}{{ x | upper }}{% set y | lower | trim %} ABC {% endset %}{{ y }}",
            "{% filter upper | replace('A', 'b') %}abc {{ s }}{% endfilter %}{% raw %}{{ no }}{% endraw %}{# c #}",
            "{% if n == 1 %}a{% elif n == 3 %}b{% else %}c{% endif %}{% if not n %}a{% else %}d{% endif %}",
            "{{ '%s is %05.1f %d%%' | format(s, 1.25, n) }} {{ s | split(', ') }} {{ 'a\nb' | lines }} {{ 'a\nb' | indent(2) }}",
            "{{ o | tojson }} {{ o | tojson(indent=2) }} {{ o | items | list }} {{ o.a[1].c }} {{ o['b'] }} {{ o | pprint }}",
            "{{ dict(o, z=1) }} {{ {'a': 1, 'b': [1, (2,)]} }} {{ dict(**o).b }} {{ [] }} {{ {} }} {{ () }} {{ [none] }}",
            "{{ l | batch(2, 0) | list }} {{ l | slice(2) | list }} {{ l | zip(s) | list }} {{ l | chain([9]) | list }}",
            "{{ '<a>' | e }} {{ '<a>' | safe }} {% autoescape true %}{{ '<b>' }}{{ s | e }}{% endautoescape %} {{ 'aé' | title }}",
            "{{ l | length }} {{ arguments.x | default('d') }} {{ n is odd }} {{ s is startingwith('He') }} {{ n is in([3]) }} {{ arguments.x is defined }}",
            "{{ '5' | int + 1 }} {{ 1.5 | round }} {{ -1 | abs }} {{ 'q\"\\\\q' }} {{ \"it's\" }} {{ 1e3 }} {{ 1_000 }} {{ 10000000000000000000000 }}",
            "{%- for i in range(5) -%} {% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }} {% endfor -%} x\n",
            "{{ s | first }}{{ s | last }}{{ s | list | length }}{{ s | upper | lower | capitalize }} {{ (s ~ '!').split }}",
            "{{ items[0].name ~ items[1]['name'] }} {{ items | map('tojson') | join }} {{ l | select('odd') | list }} {{ l | string }}",
        ] {
            // The engine without limits gets the same values as variables of their own.
            let written = written.replace("{{ (s ~ '!').split }}", "");
            let names = ["s", "n", "l", "o", "items"];
            let sets: String = names.iter().map(|name| format!("{{% set {name} = arguments.{name} %}}")).collect();
            let context = JinjaValue::from_pairs([("arguments", JinjaValue::from(Serde(&arguments)))]);
            let expected = environment.render_str(&format!("{sets}{written}|"), context);
            let expected = expected.unwrap_or_else(|error| panic!("{written}: {error:?}"));
            let got = rendered(json!(format!("{sets}{written}|")), arguments.clone());
            assert_eq!(got, Ok(json!(expected)), "{written}");
        }
    }
}
