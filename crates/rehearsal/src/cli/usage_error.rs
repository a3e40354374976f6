//! Errors in the command line, printed like all other errors.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::exit::Failure;

/// Builds the error and the hints for a command line that clap rejects.
///
/// ```text
/// error: missing: --as <WHAT>
/// hint: --as is one of mock, rust, python
/// hint: usage: rehearse generate --as <WHAT> <TRACE>
/// ```
pub(super) fn usage_failure(error: &clap::Error, command: &clap::Command) -> Failure {
    let text = |kind| error.get(kind).map(ContextValue::to_string).unwrap_or_default();
    let list = |kind| match error.get(kind) {
        Some(ContextValue::Strings(values)) => values.clone(),
        Some(ContextValue::String(value)) => vec![value.clone()],
        _ => Vec::new(),
    };
    let argument = || text(ContextKind::InvalidArg);
    let mut hints = Vec::new();
    let message = match error.kind() {
        ErrorKind::MissingRequiredArgument => {
            let missing = list(ContextKind::InvalidArg);
            hints.extend(missing.iter().filter_map(|written| choices(command, written)));
            format!("missing: {}", missing.join(" "))
        }
        ErrorKind::UnknownArgument => format!("there is no argument `{}` here", argument()),
        ErrorKind::InvalidSubcommand => format!("there is no verb `{}`", text(ContextKind::InvalidSubcommand)),
        ErrorKind::InvalidValue if list(ContextKind::ValidValue).is_empty() => format!("{} needs a value", argument()),
        ErrorKind::InvalidValue => {
            hints.push(format!("it is one of {}", list(ContextKind::ValidValue).join(", ")));
            format!("{} cannot be {:?}", argument(), text(ContextKind::InvalidValue))
        }
        ErrorKind::ValueValidation => {
            let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
            format!("{} cannot be {:?}{cause}", argument(), text(ContextKind::InvalidValue))
        }
        ErrorKind::ArgumentConflict => {
            let others = list(ContextKind::PriorArg);
            format!("{} cannot be used together with {}", argument(), others.join(" and "))
        }
        _ => {
            let rendered = error.render().to_string();
            let first = rendered.lines().next().unwrap_or_default();
            first.strip_prefix("error: ").unwrap_or(first).to_owned()
        }
    };
    for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue] {
        if let [close, ..] = &list(kind)[..] {
            hints.push(format!("did you mean `{close}`?"));
        }
    }
    if let Some(usage) = error.get(ContextKind::Usage) {
        let usage = usage.to_string();
        hints.push(format!("usage: {}", usage.trim_start_matches("Usage: ").lines().next().unwrap_or_default()));
    }
    Failure::bad_input(message).hints(hints)
}

/// The values that a missing flag takes: `--as is one of mock, rust, python`.
fn choices(command: &clap::Command, written: &str) -> Option<String> {
    let flag = written.split([' ', '=']).next()?.strip_prefix("--")?;
    let argument = command.get_arguments().find(|argument| argument.get_long() == Some(flag))?;
    let values: Vec<_> = argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    (!values.is_empty()).then(|| format!("--{flag} is one of {}", values.join(", ")))
}
