//! `rehearse verify` of recordings with redacted secrets.

use crate::fixture::{Fixture, rehearse};

const DOOR: &str = r#"
server: { name: door, version: "1" }
tools:
  - name: open
    input_schema: { type: object, properties: { pin: { type: integer } } }
    answers: [{ when: { pin: 4711 }, text: open }, { text: wrong }]
"#;

#[test]
fn the_replacement_of_a_secret_number_is_not_sent() {
    let fixture = Fixture::new().file("door.mock.yaml", DOOR);
    fixture.run("rehearse call open pin=4711 -- rehearse record -q -o trace.jsonl -- rehearse mock door.mock.yaml");
    let trace = std::fs::read_to_string(fixture.path().join("trace.jsonl")).unwrap();
    assert!(trace.contains(r#""pin":99900"#) && !trace.contains("4711"), "a number stays a number: {trace}");
    rehearse!(fixture, "rehearse verify trace.jsonl -- rehearse mock door.mock.yaml", @"
    exit: 0
    ----- stdout -----
    . tools/call open: skipped, a secret was redacted from its params; a recording made with --no-redact has it
    ----- stderr -----
    2 as recorded, 0 different, 1 skipped
    ");
}

fn bank(balance: &str, owner: &str) -> String {
    let answer = format!("{{ text: ok, structured_content: {{ balance: {balance}, owner: {owner}, open: true }} }}");
    format!("server: {{ name: bank, version: '1' }}\ntools: [{{ name: look, answers: [{answer}] }}]\n")
}

#[test]
fn a_value_redacted_by_a_rule_is_recognized_without_the_rule() {
    let fixture =
        Fixture::new().file("bank.mock.yaml", &bank("120.5", "Ada")).file("other.mock.yaml", &bank("7", "Bob"));
    let rule = "--redact '$.result.structuredContent'";
    fixture.run(&format!(
        "rehearse call look -- rehearse record -q {rule} -o trace.jsonl -- rehearse mock bank.mock.yaml"
    ));
    let read = || std::fs::read_to_string(fixture.path().join("trace.jsonl")).unwrap();
    assert!(!read().contains("120.5") && !read().contains("Ada"), "{}", read());
    for rule in ["", rule] {
        insta::allow_duplicates! {
            rehearse!(fixture, &format!("rehearse verify trace.jsonl {rule} -- rehearse mock bank.mock.yaml"), @"
            exit: 0
            ----- stderr -----
            3 as recorded, 0 different, 0 skipped
            ");
            // Another secret is a difference, and its value is not shown.
            rehearse!(fixture, &format!("rehearse verify trace.jsonl {rule} -- rehearse mock other.mock.yaml"), @r#"
            exit: 1
            ----- stdout -----
            ~ tools/call look
              error: changed (message 4)
                $.result.structuredContent.balance: expected 999001272137382, got 999003477667753
                $.result.structuredContent.owner: expected "[redacted:cadbbebb]", got "[redacted:d42f3280]"
            ----- stderr -----
            2 as recorded, 1 different, 0 skipped
            hint: `--update` writes the live answers into the recording, `--ignore PATH` ignores a value
            "#);
        }
    }
    let updated = fixture.run("rehearse verify trace.jsonl --update -- rehearse mock other.mock.yaml");
    assert!(updated.starts_with("exit: 0"), "{updated}");
    assert!(!read().contains("Bob"), "a redacted value is not written: {}", read());
}

#[test]
fn secrets_are_redacted_from_lists_handshakes_and_server_requests() {
    let mock = |secret: &str| {
        let ask = format!(
            "{{ elicitation: {{ message: 'Use {secret}?', requested_schema: {{ type: object, properties: {{}} }} }} }}"
        );
        format!(
            "server: {{ name: keys, version: '1' }}\ninstructions: 'Use {secret}.'\ntools: [{{ name: ask, description: 'Uses {secret}.', answers: [{{ steps: [{{ ask: {{ q: {ask} }} }}], text: done }}] }}]\n"
        )
    };
    let fixture = Fixture::new().file("keys.mock.yaml", &mock("ghp_0123456789abcdefghijABCDEFGHIJ012345"));
    let answer = r#"--answer 'elicitation/create={"action":"accept","content":{}}'"#;
    for protocol in ["modern", "legacy"] {
        let record = format!("rehearse record -q -o {protocol}.jsonl -- rehearse mock keys.mock.yaml");
        fixture.run(&format!("rehearse call ask {answer} --protocol {protocol} -- {record}"));
        let trace = std::fs::read_to_string(fixture.path().join(format!("{protocol}.jsonl"))).unwrap();
        assert!(!trace.contains("ghp_"), "{trace}");
        insta::allow_duplicates! {
            rehearse!(fixture, &format!("rehearse verify {protocol}.jsonl -- rehearse mock keys.mock.yaml"), @"
            exit: 0
            ----- stderr -----
            3 as recorded, 0 different, 0 skipped
            ");
        }
    }
}

#[test]
fn secrets_are_redacted_before_text_is_shortened() {
    let (token, long) = ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "x ".repeat(140));
    let fixture =
        Fixture::new().file("door.mock.yaml", DOOR).file("noisy.sh", &format!("echo '{long}{token}'\nexec \"$@\"\n"));
    // The recording has the unredacted request, and the server returns another response.
    let call = format!("rehearse call open --args '{{\"pin\":4711,\"for\":\"{}{token}\"}}'", "y ".repeat(75));
    fixture.run(&format!("{call} -- rehearse record -q --no-redact -o trace.jsonl -- rehearse mock door.mock.yaml"));
    fixture.run("sed -i s/open/shut/ door.mock.yaml");
    let output = fixture.run("rehearse verify trace.jsonl -- sh noisy.sh rehearse mock door.mock.yaml");
    assert!(output.contains("sent with"), "{output}");
    assert!(!output.contains("ghp_0123"), "{output}");
}
