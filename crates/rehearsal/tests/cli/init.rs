//! `rehearse init`

use crate::fixture::{Fixture, rehearse};

#[test]
fn without_a_server_there_is_an_example_of_everything() {
    let fixture = Fixture::new();
    rehearse!(fixture, "rehearse init && rehearse check server.mock.yaml", @r"
    exit: 0
    ----- stderr -----
    wrote server.mock.yaml: an example
    hint: `rehearse mock server.mock.yaml` serves it
    1 file checked, no problems
    ");
    rehearse!(fixture, "rehearse call get_forecast city=Oslo -- rehearse mock server.mock.yaml", @"
    exit: 0
    ----- stdout -----
    Rain in Oslo
    ");
}

#[test]
fn an_existing_file_is_overwritten_only_with_force() {
    let fixture = Fixture::new().file("mine.mock.yaml", "precious");
    rehearse!(fixture, "rehearse init -o mine.mock.yaml -- tiny-server; cat mine.mock.yaml", @r"
    exit: 0
    ----- stdout -----
    precious----- stderr -----
    error: mine.mock.yaml exists
    hint: `--force` overwrites it
    ");
    rehearse!(fixture, "rehearse init -o mine.mock.yaml --force -- tiny-server && head -1 mine.mock.yaml", @r"
    exit: 0
    ----- stdout -----
    # A mock of tiny-server, drafted from the live server.
    ----- stderr -----
    wrote mine.mock.yaml: 9 tools, 2 resources, 1 resource template, 1 prompt
    hint: `rehearse mock mine.mock.yaml` serves it
    ");
}

#[test]
fn a_mock_of_a_server_is_printed() {
    rehearse!(Fixture::new(), "rehearse init -o - -- tiny-server | sed '/name: slow/,$d'", @r#"
    exit: 0
    ----- stdout -----
    # A mock of tiny-server, drafted from the live server.
    #
    # An answer may have a condition; the first answer that fits is used:
    #
    #   answers:
    #     - when: { city: Oslo }                   # these arguments; `{ matches: "^B" }` and the like are matchers
    #       text: Rain in Oslo
    #     - times: 1                               # one time, then the next answer
    #       error: { code: -32000, message: the upstream is down }
    #     - text: "Sun in {{ arguments.city }}"    # no `when`: the default. Texts are templates
    #
    # `steps` are progress, log messages and server requests before an answer, `fault` is an injected fault.
    # `rehearse check` reports errors in the file, `rehearse schema mock` prints its schema for editors.
    server: { name: tiny-server, title: Tiny server, version: "[VERSION]" }
    instructions: "Try the tool `echo` first; `ask`, `sample` and `roots` ask you something in return."
    capabilities: { logging: {}, completions: {}, prompts: {}, resources: { subscribe: true }, tools: {} }
    tools:
      - name: echo
        description: Returns the message
        input_schema:
          type: object
          properties: { message: { type: string, description: What to say } }
          required: [message]
        annotations: { read_only_hint: true }
        answers:
          - text: "echo was called with {{ arguments | tojson }}"
      - name: add
        description: Adds two numbers
        input_schema:
          type: object
          properties: { a: { type: number }, b: { type: number } }
          required: [a, b]
        output_schema: { type: object, properties: { sum: { type: number } }, required: [sum] }
        annotations: { read_only_hint: true }
        answers:
          # Made up to fit the output schema
          - structured_content: { sum: 1 }
    "#);
}

#[test]
fn the_printed_mock_passes_check_and_lists_the_same() {
    let line = "rehearse init -o - -- tiny-server | rehearse check - && rehearse init -- tiny-server && \
                rehearse list --json -- tiny-server > real && \
                rehearse list --json -- rehearse mock server.mock.yaml > mock && cmp real mock";
    rehearse!(Fixture::new(), line, @r"
    exit: 0
    ----- stderr -----
    1 file checked, no problems
    wrote server.mock.yaml: 9 tools, 2 resources, 1 resource template, 1 prompt
    hint: `rehearse mock server.mock.yaml` serves it
    ");
}

#[test]
fn init_over_http_prints_the_same_mock() {
    let fixture = Fixture::with_http_server();
    let line = "rehearse init --url http://$ADDRESS/mcp 2>/dev/null && \
                rehearse init -o sse.mock.yaml --url http://$ADDRESS/sse 2>/dev/null && \
                rehearse list --json --url http://$ADDRESS/mcp > real && \
                rehearse list --json -- rehearse mock server.mock.yaml > mock && cmp real mock && \
                rehearse check sse.mock.yaml";
    rehearse!(fixture, line, @r"
    exit: 0
    ----- stderr -----
    1 file checked, no problems
    ");
}
