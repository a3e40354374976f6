//! `rehearse verify` of a server whose lists or server requests have changed.

use crate::fixture::{Fixture, rehearse};

const BEFORE: &str = r#"
server: { name: notes, version: "1" }
tools:
  - name: write
    description: Write a note
    input_schema: { type: object, properties: { text: { type: string } }, required: [text] }
    output_schema: { type: object, properties: { id: { type: integer } } }
    annotations: { destructive_hint: false }
    answers: [{ structured_content: { id: 1 } }]
  - name: clear
    answers: [{ text: cleared }]
"#;

const AFTER: &str = r#"
server: { name: notes, version: "1" }
tools:
  - name: clear
    answers: [{ text: cleared }]
  - name: write
    description: Write a note
    input_schema: { type: object, properties: { text: { type: string, maxLength: 80 }, tag: { type: string } }, required: [text, tag] }
    output_schema: { type: object, properties: { id: { type: string } } }
    annotations: { destructive_hint: true, idempotent_hint: true }
    answers: [{ structured_content: { id: "1" } }]
"#;

#[test]
fn schemas_and_annotations_are_part_of_the_surface_and_order_is_not() {
    let fixture = Fixture::new().file("before.mock.yaml", BEFORE).file("after.mock.yaml", AFTER);
    fixture.run("rehearse list -- rehearse record -q -o trace.jsonl -- rehearse mock before.mock.yaml");
    rehearse!(fixture, "rehearse verify trace.jsonl -- rehearse mock after.mock.yaml", @r#"
    exit: 1
    ----- stdout -----
    ~ tools/list
      error: changed: the tool `write` has $.inputSchema.properties.text.maxLength, $.inputSchema.properties.tag, $.inputSchema.required[1] and 1 more now (message 2)
        $.inputSchema.properties.text.maxLength: expected nothing, got 80
        $.inputSchema.properties.tag: expected nothing, got {"type":"string"}
        $.inputSchema.required[1]: expected nothing, got "tag"
        $.annotations.idempotentHint: expected nothing, got true
      error: changed: the tool `write` (message 2)
        $.outputSchema.properties.id.type: expected "integer", got "string"
        $.annotations.destructiveHint: expected false, got true
    ----- stderr -----
    1 as recorded, 1 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` ignores a value
    "#);
    rehearse!(fixture, "rehearse verify trace.jsonl --ignore '$.result.tools[*].annotations' --ignore '$.result.tools[*].inputSchema' --ignore '$.result.tools[*].outputSchema' -- rehearse mock after.mock.yaml", @"
    exit: 0
    ----- stderr -----
    2 as recorded, 0 different, 0 skipped
    ");
}

#[test]
fn several_elements_come_go_and_change_in_one_array() {
    let mock = |notes: &str| {
        let answer = format!("{{ text: ok, structured_content: {{ notes: {notes} }} }}");
        format!("server: {{ name: notes, version: '1' }}\ntools: [{{ name: all, answers: [{answer}] }}]\n")
    };
    let before = mock("[{ id: 1, text: milk }, { id: 2, text: eggs }, { id: 3, text: tea }, { id: 4, text: jam }]");
    let after = mock(
        "[{ id: 9, text: rice }, { id: 1, text: milk }, { id: 8, text: salt }, { id: 2, text: egg }, { id: 4, text: jam }]",
    );
    let fixture = Fixture::new().file("before.mock.yaml", &before).file("after.mock.yaml", &after);
    fixture.run("rehearse call all -- rehearse record -q -o trace.jsonl -- rehearse mock before.mock.yaml");
    rehearse!(fixture, "rehearse verify trace.jsonl -- rehearse mock after.mock.yaml", @r#"
    exit: 1
    ----- stdout -----
    ~ tools/call all
      error: added (message 4)
        $.result.structuredContent.notes[0]: expected nothing, got {"id":9,"text":"rice"}
      error: changed (message 4)
        $.result.structuredContent.notes[2].id: expected 2, got 8
        $.result.structuredContent.notes[2].text: expected "eggs", got "salt"
        $.result.structuredContent.notes[3].id: expected 3, got 2
        $.result.structuredContent.notes[3].text: expected "tea", got "egg"
    ----- stderr -----
    2 as recorded, 1 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` ignores a value
    "#);
    // Each reported difference can be ignored by its path.
    let ignore = ["notes[0]", "notes[2]", "notes[*].text"].map(|at| format!("--ignore '$..{at}'")).join(" ");
    rehearse!(fixture, &format!("rehearse verify trace.jsonl {ignore} -- rehearse mock after.mock.yaml"), @"
    exit: 0
    ----- stderr -----
    3 as recorded, 0 different, 0 skipped
    ");
}

/// A mock that sends these elicitations before it answers.
fn elicitation_mock(messages: &[&str]) -> String {
    let step = |(at, message): (usize, &&str)| {
        format!(
            "{{ ask: {{ q{at}: {{ elicitation: {{ message: '{message}', requested_schema: {{ type: object, properties: {{}} }} }} }} }} }}"
        )
    };
    let steps: Vec<String> = messages.iter().enumerate().map(step).collect();
    let steps = steps.join(", ");
    format!(
        "server: {{ name: asks, version: '1' }}\ntools: [{{ name: book, answers: [{{ steps: [{steps}], text: booked }}] }}]\n"
    )
}

const ANSWER: &str = r#"--answer 'elicitation/create={"action":"accept","content":{}}'"#;

#[test]
fn a_changed_input_request_text_is_updated_in_both_eras() {
    for protocol in ["modern", "legacy"] {
        let fixture = Fixture::new();
        let fixture = fixture
            .file("one.mock.yaml", &elicitation_mock(&["How?"]))
            .file("two.mock.yaml", &elicitation_mock(&["How then?"]));
        let record = "rehearse record -q -o trace.jsonl -- rehearse mock one.mock.yaml";
        fixture.run(&format!("rehearse call book {ANSWER} --protocol {protocol} -- {record}"));
        insta::allow_duplicates! {
            for option in ["--ignore '$.params.message'", "--match '$..message={\"matches\":\"^How\"}'"] {
                rehearse!(fixture, &format!("rehearse verify trace.jsonl {option} -- rehearse mock two.mock.yaml"), @"
                exit: 0
                ----- stderr -----
                3 as recorded, 0 different, 0 skipped
                ");
            }
            rehearse!(fixture, "rehearse verify trace.jsonl --update -- rehearse mock two.mock.yaml", @r#"
            exit: 0
            ----- stdout -----
            ~ tools/call book
              error: changed: the params of the server request elicitation/create
                $.params.message: expected "How?", got "How then?"
            ----- stderr -----
            2 as recorded, 1 different, 0 skipped
            trace.jsonl has the live answers now
            "#);
            rehearse!(fixture, "rehearse verify trace.jsonl -- rehearse mock two.mock.yaml", @"
            exit: 0
            ----- stderr -----
            3 as recorded, 0 different, 0 skipped
            ");
            // The replay sends the new message.
            let replay = format!("rehearse call book {ANSWER} -v -- rehearse replay -q trace.jsonl 2>&1 | grep -c 'How then?'");
            rehearse!(fixture, &replay, @"
            exit: 0
            ----- stdout -----
            1
            ");
            // The updated trace conforms to the protocol.
            rehearse!(fixture, "rehearse trace check trace.jsonl 2>/dev/null", @"exit: 0");
        }
    }
}

#[test]
fn an_added_or_removed_input_request_must_be_recorded_again() {
    let (one, two) = (elicitation_mock(&["How?"]), elicitation_mock(&["How?", "When?"]));
    let fixture = Fixture::new().file("one.mock.yaml", &one).file("two.mock.yaml", &two);
    for (file, trace) in [("one", "one.jsonl"), ("two", "two.jsonl")] {
        let record = format!("rehearse record -q -o {trace} -- rehearse mock {file}.mock.yaml");
        fixture.run(&format!("rehearse call book {ANSWER} --protocol legacy -- {record}"));
    }
    rehearse!(fixture, &format!("rehearse verify one.jsonl --update {ANSWER} -- rehearse mock two.mock.yaml"), @r"
    exit: 1
    ----- stdout -----
    ~ tools/call book
      error: added: the server requests elicitation/create, which was not recorded
        hint: `--answer elicitation/create=JSON` answers what the recording does not
    ----- stderr -----
    2 as recorded, 1 different, 0 skipped
    one.jsonl is unchanged
    1 server request added or removed: record those calls again
    ");
    rehearse!(fixture, "rehearse verify two.jsonl -- rehearse mock one.mock.yaml 2>&1 | tail -2", @r"
    exit: 0
    ----- stdout -----
    2 as recorded, 1 different, 0 skipped
    hint: record the calls again whose server requests differ
    ");
    rehearse!(fixture, "rehearse verify two.jsonl --update -- rehearse mock one.mock.yaml", @r"
    exit: 1
    ----- stdout -----
    ~ tools/call book
      error: removed: the server no longer requests elicitation/create
    ----- stderr -----
    2 as recorded, 1 different, 0 skipped
    two.jsonl is unchanged
    1 server request added or removed: record those calls again
    ");
}

#[test]
fn the_result_after_an_unanswerable_server_request_is_not_recorded() {
    let silent = elicitation_mock(&[]);
    for protocol in ["modern", "legacy"] {
        let fixture = Fixture::new().file("one.mock.yaml", &silent).file("two.mock.yaml", &elicitation_mock(&["How?"]));
        let record = "rehearse record -q -o one.jsonl -- rehearse mock one.mock.yaml";
        fixture
            .run(&format!("rehearse call book {ANSWER} --protocol {protocol} -- {record}; cp one.jsonl before.jsonl"));
        insta::allow_duplicates! {
            rehearse!(fixture, "rehearse verify one.jsonl --update -- rehearse mock two.mock.yaml 2>&1 | tail -2; cmp one.jsonl before.jsonl", @r"
            exit: 0
            ----- stdout -----
            one.jsonl is unchanged
            1 server request added or removed: record those calls again
            ");
        }
    }
}

#[test]
fn an_added_or_removed_element_is_reported_with_its_path() {
    let mock = |texts: &str, list: &str| {
        let answer = format!("{{ content: [{texts}], structured_content: {{ list: {list} }} }}");
        format!("server: {{ name: lists, version: '1' }}\ntools: [{{ name: get, answers: [{answer}] }}]\n")
    };
    let text = |text: &str| format!("{{ type: text, text: {text} }}");
    let (one, two) = (text("one"), format!("{}, {}", text("zero"), text("one")));
    let fixture = Fixture::new().file("before.mock.yaml", &mock(&one, "[1, 2, 3, 4]"));
    let fixture = fixture.file("after.mock.yaml", &mock(&two, "[1, 3, 4]"));
    fixture.run("rehearse call get -- rehearse record -q -o trace.jsonl -- rehearse mock before.mock.yaml");
    rehearse!(fixture, "rehearse verify trace.jsonl -- rehearse mock after.mock.yaml", @r#"
    exit: 1
    ----- stdout -----
    ~ tools/call get
      error: removed (message 4)
        $.result.structuredContent.list[1]: missing, expected 2
      error: added (message 4)
        $.result.content[0]: expected nothing, got {"type":"text","text":"zero"}
    ----- stderr -----
    2 as recorded, 1 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` ignores a value
    "#);
    let ignored = "--ignore '$.result.structuredContent.list[1]' --ignore '$.result.content[0]'";
    rehearse!(fixture, &format!("rehearse verify trace.jsonl {ignored} -- rehearse mock after.mock.yaml"), @"
    exit: 0
    ----- stderr -----
    3 as recorded, 0 different, 0 skipped
    ");
}

/// A server that uses this version and lists these tools.
fn legacy_server(version: &str, tools: &str) -> String {
    format!(
        r#"read initialize
echo '{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"{version}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}}}'
read initialized
read list
echo '{{"jsonrpc":"2.0","id":2,"result":{{"tools":[{tools}]}}}}'
cat > /dev/null
"#
    )
}

const TOOL: &str = r#"{"name":"a","inputSchema":{"type":"object"}}"#;

#[test]
fn a_tool_that_is_listed_twice_is_reported() {
    let (once, twice) = (legacy_server("2025-11-25", TOOL), legacy_server("2025-11-25", &format!("{TOOL},{TOOL}")));
    let fixture = Fixture::new().file("once.sh", &once).file("twice.sh", &twice);
    fixture.run("rehearse list --protocol legacy -- rehearse record -q -o trace.jsonl -- sh once.sh");
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh twice.sh", @r"
    exit: 1
    ----- stdout -----
    ~ tools/list
      error: added: the tool `a` is listed 2 times (message 3)
        hint: clients identify a tool by its name, and use one of them or refuse both
    ----- stderr -----
    1 as recorded, 1 different, 0 skipped
    hint: `--update` writes the live answers into the recording, `--ignore PATH` ignores a value
    ");
}

#[test]
fn a_version_that_the_server_dropped_is_reported() {
    let tool = r#"{"name":"a","inputSchema":{"type":"object"},"icons":[{"src":"https://example.com/a.png"}]}"#;
    let fixture = Fixture::new().file("new.sh", &legacy_server("2025-11-25", tool));
    let fixture = fixture.file("old.sh", &legacy_server("2025-06-18", TOOL));
    fixture.run("rehearse list --protocol legacy -- rehearse record -q -o trace.jsonl -- sh new.sh");
    // A requested older version limits the comparison to members that it has.
    rehearse!(fixture, "rehearse verify trace.jsonl --protocol 2025-06-18 -- sh old.sh", @"
    exit: 0
    ----- stderr -----
    2 as recorded, 0 different, 0 skipped
    ");
    rehearse!(fixture, "rehearse verify trace.jsonl --update -- sh old.sh", @r#"
    exit: 0
    ----- stdout -----
    ~ initialize
      error: changed (message 0)
        $.result.protocolVersion: expected "2025-11-25", got "2025-06-18"
    ~ tools/list
      error: changed: the tool `a` no longer has $.icons (message 3)
        $.icons: missing, expected [{"src":"https://example.com/a.png"}]
    ----- stderr -----
    0 as recorded, 2 different, 0 skipped
    trace.jsonl has the live answers now
    "#);
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh old.sh", @"
    exit: 0
    ----- stderr -----
    2 as recorded, 0 different, 0 skipped
    ");
}

/// A server of 2026-07-28: `again` requests the input `k` until it gets it, and each call of `chain` has a number.
const IN_ROUNDS: &str = r#"n=0
about='"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}'
ask='"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"form","message":"name?","requestedSchema":{"type":"object","properties":{}}}}}'
while read line; do
  id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  state=$(echo "$line" | sed -n 's/.*"requestState":"\([a-z0-9]*\)".*/\1/p')
  case "$line" in
    *server/discover*) result='"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete","ttlMs":0,"cacheScope":"private"' ;;
    *again*'"k":'*) result='"content":[{"type":"text","text":"done"}],"resultType":"complete"' ;;
    *again*) result="$ask,\"requestState\":\"g\"" ;;
    *chain*requestState*) result="\"content\":[{\"type\":\"text\",\"text\":\"$state\"}],\"resultType\":\"complete\"" ;;
    *) n=$((n+1)); result="$ask,\"requestState\":\"c$n\"" ;;
  esac
  echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{$result,$about}}"
done
"#;

/// A recording of these requests, as a client of 2026-07-28 makes them.
fn in_rounds(requests: &[(&str, &str)]) -> Fixture {
    let about = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;
    let line = |(id, (tool, more)): (usize, &(&str, &str))| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}{more},{about}}}}}"#
        )
    };
    let lines: Vec<String> = requests.iter().enumerate().map(line).collect();
    let fixture = Fixture::new().file("server.sh", IN_ROUNDS).file("requests", &(lines.join("\n") + "\n"));
    fixture.run("rehearse record -q -o trace.jsonl -- sh server.sh < requests");
    fixture
}

#[test]
fn an_input_request_repeated_in_an_empty_round_counts_once() {
    let wrong = r#","requestState":"g","inputResponses":{"wrong":{"action":"accept","content":{}}}"#;
    let right = r#","requestState":"g","inputResponses":{"k":{"action":"accept","content":{}}}"#;
    let fixture = in_rounds(&[("again", ""), ("again", wrong), ("again", right)]);
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server.sh", @"
    exit: 0
    ----- stderr -----
    1 as recorded, 0 different, 0 skipped
    ");
}

#[test]
fn rounds_are_sent_in_the_order_in_which_they_began() {
    let answered = |state: &str| {
        format!(r#","requestState":"{state}","inputResponses":{{"k":{{"action":"accept","content":{{}}}}}}"#)
    };
    let fixture = in_rounds(&[("chain", ""), ("chain", ""), ("chain", &answered("c2")), ("chain", &answered("c1"))]);
    rehearse!(fixture, "rehearse verify trace.jsonl -- sh server.sh", @"
    exit: 0
    ----- stderr -----
    2 as recorded, 0 different, 0 skipped
    ");
    let other =
        "sed 's/n=0/n=5/' server.sh > other.sh; rehearse verify trace.jsonl -- sh other.sh 2>&1 | grep expected";
    rehearse!(fixture, other, @r#"
    exit: 0
    ----- stdout -----
        $.result.content[0].text: expected "c1", got "c6"
        $.result.content[0].text: expected "c2", got "c7"
    "#);
}
