//! What was recorded, as the data of a program.

use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use rehearsal_core::message::{ErrorReply, Method};
use serde_json::{Map, Value, json};

use super::generated::TemplateError;
use super::learned::{Before, Learned, Said};

/// The data of a program that answers like a recording.
pub(super) struct Recorded {
    /// By method: a list of `params` and their `responses`, each a `result` or an `error`.
    pub(super) responses: Map<String, Value>,
    /// What is not in it, in words.
    pub(super) left_out: Vec<String>,
}

impl Recorded {
    pub(super) fn of(learned: &Learned) -> Recorded {
        let (mut responses, mut told, mut asked) = (Map::new(), 0, 0);
        for request in &learned.requests {
            let mut params = request.params.clone();
            let takes = request.method == Method::TOOLS_CALL || request.method == Method::PROMPTS_GET;
            if let Some(object) = params.as_object_mut().filter(|object| takes && !object.contains_key("arguments")) {
                object.insert("arguments".to_owned(), json!({}));
            }
            for before in request.answers.iter().flat_map(|answer| &answer.before) {
                match before {
                    Before::Told { .. } => told += 1,
                    Before::Asked(questions) => asked += questions.len(),
                    Before::SentAway => {}
                }
            }
            let mut answers: Vec<Value> = request.answers.iter().map(|answer| response(&answer.said)).collect();
            // The last is given again, so what repeats it at the end need not be there.
            while answers.len() > 1 && answers[answers.len() - 1] == answers[answers.len() - 2] {
                answers.pop();
            }
            let list = responses.entry(request.method.as_str()).or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(json!({"params": params, "responses": answers}));
            }
        }
        let mut left_out = learned.left_out.clone();
        let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        if told > 0 {
            left_out.push(format!("{} while a call ran: `--as mock` has them", plural(told, "notification")));
        }
        if asked > 0 {
            left_out.push(format!("{} to the client: `--as mock` asks them", plural(asked, "question")));
        }
        Recorded { responses, left_out }
    }
}

fn response(said: &Said) -> Value {
    match said {
        Said::Result(result) => json!({"result": result}),
        Said::Error(ErrorReply { code, message, data }) => {
            let mut error = json!({"code": code, "message": message});
            if let Some(data) = data.as_ref().and_then(|data| data.value().ok()) {
                error["data"] = data;
            }
            json!({"error": error})
        }
    }
}

/// Fills in a template of ours. What goes in is never read as a template.
pub(super) fn rendered(template: &str, context: &minijinja::Value) -> Result<String, TemplateError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    // The last line end of a template is not part of what it gives.
    Ok(environment.render_str(template, context)? + "\n")
}

/// Words for a comment, whatever a file is called.
pub(super) fn plain_words(text: &str) -> String {
    let kept = |c: char| if c.is_alphanumeric() || " ._-".contains(c) { c } else { '?' };
    text.chars().take(80).map(kept).collect()
}
