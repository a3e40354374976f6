//! `--answer` and `--roots`

use crate::fixture::{Fixture, rehearse};

#[test]
fn input_requests_of_a_tool_are_answered_in_both_eras() {
    let answer = r#"--answer elicitation/create='{"action": "accept", "content": {"name": "Ada"}}'"#;
    rehearse!(Fixture::new(), &format!("rehearse call ask question=Who? {answer} -- tiny-server"), @r"
exit: 0
----- stdout -----
Hello, Ada!
");
    rehearse!(Fixture::new(), &format!("rehearse call ask question=Who? {answer} --protocol legacy -- tiny-server"), @r"
exit: 0
----- stdout -----
Hello, Ada!
");
}

#[test]
fn directories_are_roots() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path().join("two words")).unwrap();
    rehearse!(fixture, "rehearse call roots --roots . --roots 'two words' -- tiny-server", @r"
exit: 0
----- stdout -----
file://[DIR]
file://[DIR]/two%20words
");
    rehearse!(fixture, "rehearse call roots --roots nowhere -- tiny-server", @r"
exit: 2
----- stderr -----
error: --roots nowhere: there is no such directory
");
}

#[test]
fn a_call_waits_until_the_server_has_applied_the_roots() {
    let server = r#"
read line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"slow"}}}'
read line; echo '{"jsonrpc":"2.0","id":"roots","method":"roots/list"}'
roots=old
while read line; do
  case "$line" in
    *'"roots":['*) (sleep 0.02; touch applied) & ;;
    *tools/call*)
      if [ -e applied ]; then roots=new; fi
      echo '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"'$roots' roots"}]}}' ;;
  esac
done
"#;
    let fixture = Fixture::new().file("server", server);
    rehearse!(fixture, "rehearse call x --args '{}' --roots . --protocol legacy -- sh server", @r"
exit: 0
----- stdout -----
new roots
");
}

#[test]
fn several_answers_are_sent_in_order_and_the_last_repeats() {
    let initialize = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"curious"}}}"#;
    let roots_request = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"roots/list"}}"#);
    let result = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"thank you"}]}}"#;
    let responses = [
        initialize.to_owned(),
        roots_request("first"),
        roots_request("second"),
        roots_request("third"),
        result.to_owned(),
    ];
    let server = "read line; sed -n 1p responses; read line; read line; \
                  for n in 2 3 4; do sed -n ${n}p responses; read line; done; sed -n 5p responses; cat > /dev/null";
    let fixture = Fixture::new().file("responses", &(responses.join("\n") + "\n")).file("server", server);
    let answers = r#"--answer roots/list='{"roots": []}' --answer roots/list='{"roots": [{"uri": "file:///two"}]}'"#;
    let line = format!(
        "rehearse call x --args '{{}}' {answers} -v --protocol legacy -- sh server 2>&1 | grep -E '^> .*roots.:'"
    );
    rehearse!(fixture, &line, @r#"
exit: 0
----- stdout -----
> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true}},"clientInfo":{"name":"rehearsal","version":"[VERSION]"}}}
> {"jsonrpc":"2.0","id":"first","result":{"roots":[]}}
> {"jsonrpc":"2.0","id":"second","result":{"roots":[{"uri":"file:///two"}]}}
> {"jsonrpc":"2.0","id":"third","result":{"roots":[{"uri":"file:///two"}]}}
"#);
}

#[test]
fn a_server_request_without_an_answer_is_reported_with_a_hint() {
    rehearse!(Fixture::new(), "rehearse call ask question=Who? -- tiny-server", @r#"
exit: 1
----- stderr -----
error: -32021: Missing required client capability
  data: {"requiredCapabilities":{"elicitation":{}}}
hint: answer it: --answer elicitation/create='{"action":"accept","content":{}}'
"#);
    let answers = [
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"bold"}}}"#,
        r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who's there?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"]}}}"#,
        r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"I asked anyway"}]}}"#,
    ];
    let server = "read line; sed -n 1p answers; read line; read line; sed -n 2p answers; read line; sed -n 3p answers; cat > /dev/null";
    let fixture = Fixture::new().file("answers", &(answers.join("\n") + "\n")).file("server", server);
    rehearse!(fixture, "rehearse call greet --args '{}' --protocol legacy -- sh server", @r#"
    exit: 0
    ----- stdout -----
    I asked anyway
    ----- stderr -----
    the server requests elicitation/create (Who's there?); there is no answer to it
    hint: answer it: --answer elicitation/create='{"action":"accept","content":{"name":"…"}}'
    "#);
}

#[test]
fn an_invalid_answer_flag_is_refused_before_the_server_starts() {
    rehearse!(Fixture::new(), "rehearse call ask --answer elicitation/create='{action: accept}' -- tiny-server", @r#"
exit: 2
----- stderr -----
error: --answer, line 1, column 2: not JSON: key must be a string
hint: quote it for the shell: --answer METHOD='{"key": "value"}'
"#);
}
