//! Elicitations that the user answers at a terminal.

use crate::fixture::{Fixture, rehearse};

const MOCK: &str = r#"
server: { name: booking, version: "1" }
tools:
  - name: book
    answers:
      - steps:
          - ask:
              details:
                elicitation:
                  message: Whose booking is it?
                  requested_schema:
                    type: object
                    properties:
                      name: { type: string, description: Your full name }
                      seat: { type: string, enum: [aisle, window], default: aisle }
                      bags: { type: integer, minimum: 0 }
                    required: [name, seat]
        choose:
          - when: { details: { action: accept } }
            text: "{{ answers.details.content.name }}, {{ answers.details.content.seat }}, bags: {{ answers.details.content.bags }}"
          - text: declined
"#;

fn fixture() -> Fixture {
    Fixture::new().file("m.yaml", MOCK)
}

/// Runs a call with this input on a terminal. Input that arrives before `stty` is echoed, so the output begins at the form.
fn call(input: &str, options: &str) -> String {
    let call = format!("stty -echo cols 120; rehearse call book {options} -- rehearse mock m.yaml");
    format!("printf '{input}' | script -qec '{call}' /dev/null | tr -d '\\r' | sed -n '/the server requests/,$p'")
}

#[test]
fn an_elicitation_is_answered_by_the_user_on_a_terminal() {
    rehearse!(fixture(), &call(r"Ada\n\n2\n", ""), @r#"
    exit: 0
    ----- stdout -----
    the server requests input: Whose booking is it?
    empty input takes the default; !decline or Ctrl-D declines
    name (string), Your full name: seat (aisle or window, default "aisle"): bags (integer, optional): Ada, aisle, bags: 2
    "#);
    rehearse!(fixture(), &call(r"Ada\nsofa\nwindow\n1\n", "--protocol legacy"), @r#"
    exit: 0
    ----- stdout -----
    the server requests input: Whose booking is it?
    empty input takes the default; !decline or Ctrl-D declines
    name (string), Your full name: seat (aisle or window, default "aisle"): error: expected aisle or window, got `sofa`
    seat (aisle or window, default "aisle"): bags (integer, optional): Ada, window, bags: 1
    "#);
}

#[test]
fn the_user_declines_an_elicitation() {
    rehearse!(fixture(), &call(r"!decline\n", ""), @r"
    exit: 0
    ----- stdout -----
    the server requests input: Whose booking is it?
    empty input takes the default; !decline or Ctrl-D declines
    name (string), Your full name: declined
    ");
}

#[test]
fn an_elicitation_off_a_terminal_needs_an_answer_option() {
    rehearse!(fixture(), "rehearse call book -- rehearse mock m.yaml", @r#"
    exit: 1
    ----- stderr -----
    error: -32021: this needs the capability elicitation
      data: {"requiredCapabilities":{"elicitation":{}}}
    hint: answer it: --answer elicitation/create='{"action":"accept","content":{}}'
    "#);
}
