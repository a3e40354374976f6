//! Numbers that no value of Rust holds, on their way through everything.

use rehearsal::Client;
use rehearsal::client::Response;
use rehearsal::core::protocol::Revision;
use rehearsal::generate::{Learned, Learner, generate_mock, generate_python, generate_rust};
use rehearsal::mock::MockServer;
use rehearsal::replay::{Options, Replay};
use rehearsal::store::{BadLines, Input, Recording};
use rehearsal::wire::memory;
use serde_json::value::RawValue;

const ONE: &str = "12345678901234567890123";
const OTHER: &str = "12345678901234567890124";
const HUGE: &str = "1e400";

/// Two calls that differ in their last digit, and one of a number that no float comes near.
fn trace() -> (tempfile::TempDir, Input) {
    let call = |at: usize, digits: &str| {
        let arguments = format!(r#"{{"name":"double","arguments":{{"n":{digits}}},"_meta":{{"progressToken":{at}}}}}"#);
        let result = format!(r#"{{"content":[],"structuredContent":{{"n":{digits}}}}}"#);
        let request =
            format!(r#"{{"seq":{},"at_ms":{at},"id":{at},"method":"tools/call","params":{arguments}}}"#, 3 * at);
        let response = format!(r#"{{"seq":{},"at_ms":{at},"success":true,"result":{result}}}"#, 3 * at + 2);
        format!(r#"{{"request":{request},"response":{response}}}"#)
    };
    let told = |at: usize, digits: &str| {
        let params = format!(r#"{{"progressToken":{at},"progress":{digits}}}"#);
        let place = format!(r#""type":"notification","seq":{},"at_ms":{at},"from":"server""#, 3 * at + 1);
        format!(r#"{{{place},"method":"notifications/progress","params":{params}}}"#)
    };
    let opening = r#"{"request":{"seq":0,"at_ms":0,"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}},"response":{"seq":1,"at_ms":0,"success":true,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"sums","version":"1"}}}}"#;
    let all = || [ONE, OTHER, HUGE].into_iter().enumerate();
    let calls = all().map(|(at, digits)| call(at + 1, digits));
    let calls: Vec<String> = [opening.to_owned()].into_iter().chain(calls).collect();
    let told: Vec<String> = all().map(|(at, digits)| told(at + 1, digits)).collect();
    let [calls, told] = [calls, told].map(|all| all.join(","));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.jsonl");
    let session = format!(r#"{{"format":1,"session_id":"a","calls":[{calls}],"messages":[{told}]}}"#);
    std::fs::write(&path, session + "\n").unwrap();
    (directory, Input::File(path))
}

async fn doubled(client: &Client, digits: &str) -> Response {
    let arguments = RawValue::from_string(format!(r#"{{"n":{digits}}}"#)).unwrap();
    client.call("double").arguments(arguments).with_progress().await.unwrap()
}

fn says(response: &Response, what: &str) -> bool {
    String::from_utf8_lossy(response.bytes()).contains(what)
}

async fn answers_as_recorded(client: &Client) {
    for digits in [OTHER, HUGE, ONE] {
        let response = doubled(client, digits).await;
        assert!(says(&response, &format!(r#""structuredContent":{{"n":{digits}}}"#)), "{response:?}");
        assert_eq!(response.notifications().len(), 1);
    }
    // Equal, however it is written.
    assert!(says(&doubled(client, "1.2345678901234567890124E22").await, OTHER));
    assert!(doubled(client, "12345678901234567890125").await.error().is_some());
}

#[tokio::test]
async fn a_replay_tells_long_numbers_apart_and_gives_them_back_in_every_version() {
    let (_directory, input) = trace();
    let replay = Replay::open(&input, Options::default()).unwrap();
    for version in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let (ours, theirs) = memory::pair();
        let server = replay.server(|_, _| {});
        tokio::spawn(async move { server.serve(theirs).await });
        let client = Client::connection(ours);
        let client = if version == Revision::V2026_07_28 { client.modern() } else { client.legacy(version) };
        let client = client.connect().await.unwrap();
        answers_as_recorded(&client).await;
        let told = doubled(&client, HUGE).await;
        let told = String::from_utf8_lossy(told.notifications()[0].message.raw()).into_owned();
        assert!(told.contains(&format!(r#""progress":{HUGE}"#)), "{told}");
    }
}

fn learned(input: &Input) -> Learned {
    let mut learner = Learner::default();
    for moment in Recording::open(input).unwrap().timeline(BadLines::Refuse) {
        learner.moment(moment.unwrap()).unwrap();
    }
    learner.finish()
}

#[tokio::test]
async fn a_generated_mock_has_every_digit() {
    let (_directory, input) = trace();
    let generated = generate_mock(&learned(&input), "trace.jsonl");
    assert_eq!(generated.left_out, Vec::<String>::new());
    let mock = MockServer::from_text(&generated.files[0].1).unwrap();
    for client in [Client::connection(mock.connection()), Client::url(mock.url())] {
        answers_as_recorded(&client.connect().await.unwrap()).await;
    }
}

#[test]
fn generated_programs_say_which_digits_their_language_loses() {
    let (_directory, input) = trace();
    let learned = learned(&input);
    let python = generate_python(&learned, "trace.jsonl").unwrap();
    assert_eq!(python.left_out, ["some digits of 1e400"]);
    assert!(python.files[0].1.contains(&format!(r#""n": {ONE}"#)), "{}", python.files[0].1);
    let rust = generate_rust(&learned, "trace.jsonl").unwrap();
    assert_eq!(rust.left_out, [ONE, OTHER, HUGE].map(|digits| format!("some digits of {digits}")));
}

#[tokio::test]
async fn a_mock_compares_and_repeats_long_numbers() {
    let mock = MockServer::from_text(&format!(
        r#"
tools:
  - name: double
    input_schema: {{ type: object, properties: {{ n: {{ type: integer, maximum: 1e30 }} }} }}
    answers:
      - when: {{ n: {ONE} }}
        structured_content: {{ n: {OTHER} }}
      - when: {{ n: {{ gt: 1e25 }} }}
        text: "much: {{{{ arguments.n + 1 }}}}"
      - structured_content: {{ n: "{{{{ arguments.n }}}}" }}
"#
    ))
    .unwrap();
    let client = Client::connection(mock.connection()).connect().await.unwrap();
    assert!(says(&doubled(&client, ONE).await, &format!(r#""structuredContent":{{"n":{OTHER}}}"#)));
    assert!(says(&doubled(&client, OTHER).await, &format!(r#""structuredContent":{{"n":{OTHER}}}"#)));
    assert_eq!(
        doubled(&client, "10000000000000000000000000000").await.content(),
        "much: 10000000000000000000000000001"
    );
    assert!(doubled(&client, HUGE).await.is_error(), "more than its schema takes");
}

#[tokio::test]
async fn a_replay_in_another_version_writes_what_it_does_not_change_as_it_was() {
    let odd = r#"{"zero": -0, "half": "\ud800", "more": [1.50, 1E2, "\u00e9"]}"#;
    let result = format!(r#"{{"content":[],"structuredContent":{odd},"_meta":{{"a":"\udfff"}}}}"#);
    let call = format!(
        r#"{{"request":{{"seq":2,"at_ms":0,"id":1,"method":"tools/call","params":{{"name":"odd"}}}},"response":{{"seq":3,"at_ms":0,"success":true,"result":{result}}}}}"#
    );
    let opening = r#"{"request":{"seq":0,"at_ms":0,"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}},"response":{"seq":1,"at_ms":0,"success":true,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}}"#;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.jsonl");
    std::fs::write(&path, format!(r#"{{"format":1,"session_id":"a","calls":[{opening},{call}]}}"#) + "\n").unwrap();
    let replay = Replay::open(&Input::File(path), Options::default()).unwrap();
    for revision in [None, Some(Revision::V2025_11_25), Some(Revision::V2025_06_18)] {
        let (ours, theirs) = memory::pair();
        let server = replay.server(|_, _| {});
        tokio::spawn(async move { server.serve(theirs).await });
        let client = Client::connection(ours);
        let client = match revision {
            Some(revision) => client.legacy(revision),
            None => client.modern(),
        };
        let response = client.connect().await.unwrap().call("odd").await.unwrap();
        assert!(says(&response, &format!(r#""structuredContent":{odd}"#)), "{revision:?}: {response:?}");
        assert!(says(&response, r#""a":"\udfff""#), "{revision:?}: {response:?}");
    }
}
