//! Elicitations that the user answers at the terminal.
//!
//! ```text
//! the server requests input: Who are you?
//! empty input takes the default; !decline or Ctrl-D declines
//! name (string), your full name: Ada
//! unit (metric or imperial, default "metric"):
//! ```

use std::io::{self, BufRead};
use std::sync::{Arc, Mutex, PoisonError};

use rehearsal::client::{ClientHandlers, ServerRequest};
use rehearsal::core::message::Method;
use serde_json::{Map, Value, json};

use crate::cli::arguments::typed_value;
use crate::print::{Parameter, StderrPrinter, parameters};

/// The input that declines an elicitation.
const DECLINE: &str = "!decline";

/// Adds a handler that asks the user for the answer to each elicitation, one after the other.
pub(super) fn ask_user(handlers: ClientHandlers, stderr: &StderrPrinter) -> ClientHandlers {
    let form = Arc::new(Mutex::new(Form { stderr: stderr.clone() }));
    handlers.on_user(Method::ELICITATION, move |request: &ServerRequest| {
        let (form, params) = (form.clone(), request.params.clone());
        // A thread, because a read from a terminal cannot be cancelled.
        let answer = tokio::task::spawn_blocking(move || {
            let form = form.lock().unwrap_or_else(PoisonError::into_inner);
            form.answer(&params, &mut io::stdin().lock())
        });
        async move { Ok(answer.await.unwrap_or_else(|_| declined())) }
    })
}

/// A form on the terminal.
struct Form {
    stderr: StderrPrinter,
}

/// The user declined, or closed stdin.
struct Declined;

impl Form {
    /// Returns the result of an elicitation.
    fn answer(&self, params: &Value, input: &mut dyn BufRead) -> Value {
        let text = |key: &str| params.get(key).and_then(Value::as_str).unwrap_or_default();
        self.stderr.end_status();
        self.stderr.note(format_args!("the server requests input: {}", text("message").trim()));
        if text("mode") == "url" {
            self.stderr.note(format_args!("  {}", text("url")));
            self.stderr.prompt("open this URL, then press Enter; !decline or Ctrl-D declines:");
            return self.line(input).map_or_else(|Declined| declined(), |_| json!({"action": "accept"}));
        }
        self.stderr.note(format_args!("empty input takes the default; {DECLINE} or Ctrl-D declines"));
        match self.content(params.get("requestedSchema").unwrap_or(&Value::Null), input) {
            Ok(content) => json!({"action": "accept", "content": content}),
            Err(Declined) => declined(),
        }
    }

    fn content(&self, schema: &Value, input: &mut dyn BufRead) -> Result<Map<String, Value>, Declined> {
        let mut content = Map::new();
        for parameter in parameters(schema) {
            let field = schema.get("properties").and_then(|fields| fields.get(&parameter.name)).unwrap_or(&Value::Null);
            if let Some(value) = self.value(&parameter, field, input)? {
                content.insert(parameter.name, value);
            }
        }
        Ok(content)
    }

    /// Prompts for one field until the input is a value of its type. `None` leaves an optional field out.
    fn value(&self, parameter: &Parameter, field: &Value, input: &mut dyn BufRead) -> Result<Option<Value>, Declined> {
        loop {
            self.stderr.prompt(&field_prompt(parameter, field));
            let line = self.line(input)?;
            let line = line.trim();
            match (line.is_empty(), field.get("default")) {
                (true, Some(default)) => return Ok(Some(default.clone())),
                (true, None) if !parameter.required => return Ok(None),
                (true, None) => self.stderr.error(format_args!("`{}` is required", parameter.name)),
                (false, _) => match read_value(parameter, field, line) {
                    Ok(value) => return Ok(Some(value)),
                    Err(expected) => self.stderr.error(format_args!("expected {expected}, got `{line}`")),
                },
            }
        }
    }

    fn line(&self, input: &mut dyn BufRead) -> Result<String, Declined> {
        let mut line = String::new();
        match input.read_line(&mut line) {
            Ok(0) | Err(_) => {
                // Ctrl-D leaves the cursor behind the prompt.
                self.stderr.note("");
                Err(Declined)
            }
            Ok(_) if line.trim() == DECLINE => Err(Declined),
            Ok(_) => Ok(line),
        }
    }
}

fn declined() -> Value {
    json!({"action": "decline"})
}

/// The prompt for a field: its name, type or choices, default and description.
///
/// ```text
/// unit (metric or imperial, default "metric"), of the temperature:
/// ```
fn field_prompt(parameter: &Parameter, field: &Value) -> String {
    let mut facts = vec![match choices(field) {
        choices if choices.is_empty() => parameter.label().to_owned(),
        choices => choices.iter().map(Choice::shown).collect::<Vec<_>>().join(" or "),
    }];
    if is_list(field) {
        facts.push("several with commas".to_owned());
    }
    match field.get("default") {
        Some(default) => facts.push(format!("default {default}")),
        None if !parameter.required => facts.push("optional".to_owned()),
        None => {}
    }
    let about = parameter.description.as_deref().or_else(|| field.get("title").and_then(Value::as_str));
    let about = about.map(|about| about.split_whitespace().collect::<Vec<_>>().join(" "));
    let about = about.filter(|about| !about.is_empty()).map(|about| format!(", {about}")).unwrap_or_default();
    format!("{} ({}){about}:", parameter.name, facts.join(", "))
}

/// A value that a field may have, and its title.
struct Choice<'a> {
    value: &'a Value,
    title: Option<&'a str>,
}

impl Choice<'_> {
    fn shown(&self) -> String {
        let value = self.value.as_str().map_or_else(|| self.value.to_string(), str::to_owned);
        self.title.map_or_else(|| value.clone(), |title| format!("{value} = {title}"))
    }

    fn is(&self, input: &str) -> bool {
        let value = self.value.as_str().map_or_else(|| self.value.to_string(), str::to_owned);
        value == input || self.title == Some(input)
    }
}

fn is_list(field: &Value) -> bool {
    field.get("type").is_some_and(|kind| kind == "array")
}

/// The choices of a field, or those of the elements of its list.
fn choices(field: &Value) -> Vec<Choice<'_>> {
    let field = if is_list(field) { field.get("items").unwrap_or(&Value::Null) } else { field };
    let list = |key: &str| field.get(key).and_then(Value::as_array).into_iter().flatten();
    let titles: Vec<_> = list("enumNames").map(Value::as_str).collect();
    let plain = list("enum").enumerate();
    let plain = plain.map(|(index, value)| Choice { value, title: titles.get(index).copied().flatten() });
    let titled = list("oneOf").chain(list("anyOf"));
    let titled = titled
        .filter_map(|one| Some(Choice { value: one.get("const")?, title: one.get("title").and_then(Value::as_str) }));
    plain.chain(titled).collect()
}

/// Reads the input as a value of the field. `Err` is what was expected.
fn read_value(parameter: &Parameter, field: &Value, input: &str) -> Result<Value, String> {
    let choices = choices(field);
    let chosen = |input: &str| {
        let found = choices.iter().find(|choice| choice.is(input)).map(|choice| choice.value.clone());
        found.ok_or_else(|| choices.iter().map(Choice::shown).collect::<Vec<_>>().join(" or "))
    };
    match (choices.is_empty(), is_list(field)) {
        (false, true) => input.split(',').map(|part| chosen(part.trim())).collect(),
        (false, false) => chosen(input),
        (true, _) => typed_value(input, &parameter.kinds).ok_or_else(|| parameter.expected()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::{Palette, Terminal};

    fn answer(schema: &Value, input: &str) -> Value {
        let stderr = StderrPrinter::new(Terminal { palette: Palette::PLAIN, width: None });
        Form { stderr }.answer(&json!({"message": "Who?", "requestedSchema": schema}), &mut input.as_bytes())
    }

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer"},
            "unit": {"type": "string", "enum": ["C", "F"], "enumNames": ["Celsius", "Fahrenheit"], "default": "C"},
            "days": {"type": "array", "items": {"anyOf": [{"const": "mo", "title": "Monday"}, {"const": "tu"}]}},
        }, "required": ["name", "unit"]})
    }

    #[test]
    fn input_is_read_by_the_type_of_each_field() {
        let content = json!({"name": "Ada", "unit": "F", "age": 36, "days": ["mo", "tu"]});
        let accepted = json!({"action": "accept", "content": content});
        assert_eq!(answer(&schema(), "Ada\nFahrenheit\n36\nMonday, tu\n"), accepted);
    }

    #[test]
    fn empty_input_takes_the_default_or_leaves_an_optional_field_out() {
        let accepted = json!({"action": "accept", "content": {"name": "Ada", "unit": "C"}});
        assert_eq!(answer(&schema(), "\nAda\n\n\n\n"), accepted, "the prompt for a required field is repeated");
    }

    #[test]
    fn the_prompt_is_repeated_after_a_wrong_value() {
        let accepted = json!({"action": "accept", "content": {"name": "5", "unit": "C", "age": 7}});
        assert_eq!(answer(&schema(), "5\nK\nC\nmany\n7\n\n"), accepted);
    }

    #[test]
    fn a_word_or_the_end_of_input_declines() {
        assert_eq!(answer(&schema(), "Ada\n!decline\n"), json!({"action": "decline"}));
        assert_eq!(answer(&schema(), "Ada\n"), json!({"action": "decline"}));
    }

    #[test]
    fn the_prompt_has_the_choices_the_default_and_the_description() {
        let schema = json!({"properties": {
            "unit": {"type": "string", "description": "Of the\ntemperature", "enum": ["C", "F"], "default": "C"},
        }});
        let parameter = parameters(&schema).remove(0);
        let text = field_prompt(&parameter, &schema["properties"]["unit"]);
        assert_eq!(text, r#"unit (C or F, default "C"), Of the temperature:"#);
    }
}
