//! Calls that overtook each other, for clients that make one of them or both.

use std::time::Duration;

use rehearsal::core::answer::Pace;
use rehearsal::replay::Options;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::transcript::{HANDSHAKE, META, Peer, replay, session, unnamed};

/// Both were in hand at once, and answered after a long time, the second first.
const BOTH: [&str; 4] = [
    r#"> {"id":1,"method":"tools/call","params":{"name":"slow"}}"#,
    r#"> {"id":2,"method":"tools/call","params":{"name":"quick"}}"#,
    r#"< {"id":2,"result":{"content":[]}}"#,
    r#"< {"id":1,"result":{"content":[]}}"#,
];

/// The recording, in which answers took 40 s.
fn recorded() -> String {
    let journal = session("a", &[HANDSHAKE, &BOTH.join("\n")].concat());
    let late = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        if line["seq"].as_u64() > Some(4) {
            line["at_ms"] = 40_000.into();
        }
        line.to_string() + "\n"
    };
    journal.lines().map(late).collect()
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_makes_the_other_call_does_not_wait_for_long() {
    let replay = replay(&[recorded()], Options::default());
    let mut peer = Peer::of(&replay);
    peer.play(HANDSHAKE).await;
    let began = Instant::now();
    peer.play(&[BOTH[0], BOTH[3]].join("\n")).await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_makes_both_calls_hears_them_in_their_order() {
    let replay = replay(&[recorded()], Options::default());
    let mut peer = Peer::of(&replay);
    peer.play(&[HANDSHAKE, BOTH[0]].concat()).await;
    // On a busy machine the other takes a while to be asked.
    tokio::time::sleep(Duration::from_millis(900)).await;
    peer.play(&BOTH[1..].join("\n")).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_in_one_batch_overtakes_too() {
    let asked = [1, 2]
        .map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": format!("t{id}")}}));
    let handshake = HANDSHAKE.replace("2025-11-25", "2025-03-26");
    let [first, second] = [r#"< {"id":1,"result":{"content":[]}}"#, r#"< {"id":2,"result":{"content":[]}}"#];
    let batch = format!("> {}", json!(asked));
    let recorded = session("a", &[&handshake, &*batch, second, first].join("\n"));
    let replay = replay(&[recorded], Options::default());
    // A client that makes them one by one.
    let calls = asked.map(|call| format!("> {call}"));
    Peer::of(&replay).play(&[HANDSHAKE, &calls[0], &calls[1], second, first].join("\n")).await;
}

#[tokio::test(start_paused = true)]
async fn what_overtook_in_a_session_of_the_python_interceptor_does_so_again() {
    let call = |name: &str, from: &str, to: &str| {
        let time = |at: &str| format!("2025-10-30T10:30:{at}");
        json!({
            "request": {"method": "call_tool", "args": [name], "kwargs": {}, "timestamp": time(from)},
            "response": {"success": true, "result": {"content": []}, "error": null, "timestamp": time(to)},
        })
    };
    // It writes a call when it is answered.
    let calls = [call("quick", "45.050000", "45.300000"), call("slow", "45.000000", "45.900000")];
    let recorded = json!({"session_id": "a", "server_info": {}, "calls": calls});
    let replay = replay(&[format!("{recorded}\n")], Options::default());
    Peer::of(&replay).play(&[unnamed(), BOTH.join("\n")].concat()).await;
}

/// Within a few milliseconds: each of three tells how far it is and is answered, and at last the one that was asked first.
const TELLING: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"slow"}}
> {"id":2,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":2}}}
> {"id":3,"method":"tools/call","params":{"name":"b","_meta":{"progressToken":3}}}
> {"id":4,"method":"tools/call","params":{"name":"c","_meta":{"progressToken":4}}}
< {"method":"notifications/progress","params":{"progressToken":2,"progress":1}}
< {"id":2,"result":{"content":[]}}
< {"method":"notifications/progress","params":{"progressToken":3,"progress":1}}
< {"id":3,"result":{"content":[]}}
< {"method":"notifications/progress","params":{"progressToken":4,"progress":1}}
< {"id":4,"result":{"content":[]}}
< {"id":1,"result":{"content":[]}}
"#;

#[tokio::test(start_paused = true)]
async fn what_was_overtaken_waits_while_those_before_it_go_on() {
    let whole = [HANDSHAKE, TELLING].concat();
    let replay = replay(&[session("a", &whole)], Options::default());
    Peer::of(&replay).play(&whole).await;
}

/// Nobody overtakes anybody, but the second speaks first, and the first again before the second is answered.
const SPEAKING: [&str; 6] = [
    r#"> {"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1}}}"#,
    r#"> {"id":2,"method":"tools/call","params":{"name":"b","_meta":{"progressToken":2}}}"#,
    r#"< {"method":"notifications/progress","params":{"progressToken":2,"progress":1}}"#,
    r#"< {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
    r#"< {"id":1,"result":{"content":[]}}"#,
    r#"< {"id":2,"result":{"content":[]}}"#,
];

#[tokio::test(start_paused = true)]
async fn what_is_said_of_one_call_comes_after_what_was_said_of_others_before() {
    let whole = [HANDSHAKE, &SPEAKING.join("\n")].concat();
    let replay = replay(&[session("a", &whole)], Options::default());
    let mut peer = Peer::of(&replay);
    peer.play(HANDSHAKE).await;
    peer.play(SPEAKING[0]).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    peer.play(&SPEAKING[1..].join("\n")).await;
    // Who never makes the other call hardly waits.
    let mut peer = Peer::of(&replay);
    peer.play(HANDSHAKE).await;
    let began = Instant::now();
    peer.play(&[SPEAKING[0], SPEAKING[3], SPEAKING[4]].join("\n")).await;
    assert!(began.elapsed() < Duration::from_millis(300), "{:?}", began.elapsed());
}

/// What is asked by rounds of `input_required`, and by requests before.
const ASKING: &str =
    r#"{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#;

/// Both are asked something and go on at once, and the second is done first.
const ROUNDS: [&str; 8] = [
    r#"> {"id":1,"method":"tools/call","params":{"name":"slow",META}}"#,
    r#"< {"id":1,"result":{"resultType":"input_required","requestState":"a","inputRequests":{"q":ASKING}}}"#,
    r#"> {"id":2,"method":"tools/call","params":{"name":"quick",META}}"#,
    r#"< {"id":2,"result":{"resultType":"input_required","requestState":"b","inputRequests":{"q":ASKING}}}"#,
    r#"> {"id":3,"method":"tools/call","params":{"name":"slow","requestState":"a","inputResponses":{"q":{"action":"cancel"}},META}}"#,
    r#"> {"id":4,"method":"tools/call","params":{"name":"quick","requestState":"b","inputResponses":{"q":{"action":"cancel"}},META}}"#,
    r#"< {"id":4,"result":{"resultType":"complete","content":[{"type":"text","text":"quick"}]}}"#,
    r#"< {"id":3,"result":{"resultType":"complete","content":[{"type":"text","text":"slow"}]}}"#,
];

/// An older client, which is asked by requests.
const OLDER: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"recorded","version":"0"}}}
> {"method":"notifications/initialized"}
> {"id":1,"method":"tools/call","params":{"name":"slow"}}
> {"id":2,"method":"tools/call","params":{"name":"quick"}}
< {"id":1,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}
< {"id":2,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}
> {"id":1,"result":{"action":"cancel"}}
"#;

const OLDER_ANSWERS: &str = r#"
> {"id":2,"result":{"action":"cancel"}}
< {"id":2,"result":{"content":[{"type":"text","text":"quick"}]}}
< {"id":1,"result":{"content":[{"type":"text","text":"slow"}]}}
"#;

#[tokio::test(start_paused = true)]
async fn calls_that_overtook_each_other_by_rounds_do_so_where_they_are_one() {
    // In hand at once in both rounds, in the second alone, and in none: then the second was asked, answered and done meanwhile.
    for order in [[0, 2, 1, 3, 4, 5, 6, 7], [0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3, 5, 6, 4, 7]] {
        let recorded = order.map(|at| ROUNDS[at]).join("\n").replace("ASKING", ASKING);
        let replay = replay(&[session("a", &recorded)], Options::default());
        let mut peer = Peer::of(&replay);
        peer.play(OLDER).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        peer.play(OLDER_ANSWERS).await;
    }
}

/// One is answered, then the one that was asked last speaks, and then the first.
const AMONG: [&str; 8] = [
    r#"> {"id":1,"method":"tools/call","params":{"name":"first","_meta":{"progressToken":1}}}"#,
    r#"> {"id":2,"method":"tools/call","params":{"name":"mid"}}"#,
    r#"> {"id":3,"method":"tools/call","params":{"name":"second","_meta":{"progressToken":3}}}"#,
    r#"< {"id":2,"result":{"content":[]}}"#,
    r#"< {"method":"notifications/progress","params":{"progressToken":3,"progress":1}}"#,
    r#"< {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
    r#"< {"id":1,"result":{"content":[]}}"#,
    r#"< {"id":3,"result":{"content":[]}}"#,
];

#[tokio::test(start_paused = true)]
async fn who_spoke_before_is_waited_for_though_another_was_answered() {
    let whole = [HANDSHAKE, &AMONG.join("\n")].concat();
    let replay = replay(&[session("a", &whole)], Options::default());
    let mut peer = Peer::of(&replay);
    peer.play(HANDSHAKE).await;
    for request in &AMONG[..2] {
        peer.play(request).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    peer.play(&AMONG[2..].join("\n")).await;
}

/// A transcript of 2026-07-28 in which each request has a token of its own: `META3` is that of the third.
fn with_tokens(lines: &[&str]) -> String {
    let token = |text: String, token: usize| {
        let about = META.replace(r#""progressToken":1"#, &format!(r#""progressToken":{token}"#));
        text.replace(&format!("META{token}"), &about)
    };
    (1..4).fold(lines.join("\n").replace("ASKING", ASKING), token)
}

/// One that goes on while a client thinks speaks after it has come back, in the first; and is answered before, in the second.
const AROUND: [[&str; 8]; 2] = [
    [
        r#"> {"id":1,"method":"tools/call","params":{"name":"plain",META1}}"#,
        r#"> {"id":2,"method":"tools/call","params":{"name":"ask",META2}}"#,
        r#"< {"id":2,"result":{"resultType":"input_required","inputRequests":{"q":ASKING}}}"#,
        r#"> {"id":3,"method":"tools/call","params":{"name":"ask","inputResponses":{"q":{"action":"cancel"}},META3}}"#,
        r#"< {"method":"notifications/progress","params":{"progressToken":3,"progress":1}}"#,
        r#"< {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
        r#"< {"id":3,"result":{"resultType":"complete","content":[]}}"#,
        r#"< {"id":1,"result":{"resultType":"complete","content":[]}}"#,
    ],
    [
        r#"> {"id":1,"method":"tools/call","params":{"name":"plain",META1}}"#,
        r#"> {"id":2,"method":"tools/call","params":{"name":"ask",META2}}"#,
        r#"< {"id":2,"result":{"resultType":"input_required","inputRequests":{"q":ASKING}}}"#,
        r#"< {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
        r#"< {"id":1,"result":{"resultType":"complete","content":[]}}"#,
        r#"> {"id":3,"method":"tools/call","params":{"name":"ask","inputResponses":{"q":{"action":"cancel"}},META3}}"#,
        r#"< {"method":"notifications/progress","params":{"progressToken":3,"progress":1}}"#,
        r#"< {"id":3,"result":{"resultType":"complete","content":[]}}"#,
    ],
];

#[tokio::test(start_paused = true)]
async fn what_is_said_around_rounds_keeps_its_order() {
    for (lines, said) in AROUND.iter().zip([[0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 5, 3, 4, 6, 7]]) {
        let replay = replay(&[session("a", &with_tokens(lines))], Options::default());
        // The client comes back at once.
        Peer::of(&replay).play(&with_tokens(&said.map(|at| lines[at]))).await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_not_spoken_yet_is_waited_for_where_time_is_kept() {
    let lines = [SPEAKING[0], SPEAKING[1], SPEAKING[3], SPEAKING[2], SPEAKING[4], SPEAKING[5]].join("\n");
    // The first took 300 ms to speak, and the second 100 since it was asked.
    let times = [(0, 0), (1, 0), (2, 0), (3, 0), (4, 200), (5, 300), (6, 301), (7, 302), (8, 303)];
    let timed = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        if let Some((_, at)) = times.iter().find(|(seq, _)| line["seq"] == *seq) {
            line["at_ms"] = (*at).into();
        }
        line.to_string() + "\n"
    };
    let journal: String = session("a", &[HANDSHAKE, &lines].concat()).lines().map(timed).collect();
    let replay = replay(&[journal], Options { pace: Pace::Times(1.0), ..Options::default() });
    Peer::of(&replay).play(&[HANDSHAKE, &lines].concat()).await;
}

/// A round that asks for nothing, and then the other is done before it goes on.
const STATE_ALONE: [&str; 7] = [
    r#"> {"id":1,"method":"tools/call","params":{"name":"quick",META1}}"#,
    r#"> {"id":2,"method":"tools/call","params":{"name":"slow",META2}}"#,
    r#"< {"id":2,"result":{"resultType":"input_required","requestState":"s"}}"#,
    r#"> {"id":3,"method":"tools/call","params":{"name":"slow","requestState":"s",META3}}"#,
    r#"< {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
    r#"< {"id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"quick"}]}}"#,
    r#"< {"id":3,"result":{"resultType":"complete","content":[{"type":"text","text":"slow"}]}}"#,
];

const STATE_ALONE_OLDER: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"quick","_meta":{"progressToken":1}}}
> {"id":2,"method":"tools/call","params":{"name":"slow"}}
< {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
< {"id":1,"result":{"content":[{"type":"text","text":"quick"}]}}
< {"id":2,"result":{"content":[{"type":"text","text":"slow"}]}}
"#;

#[tokio::test(start_paused = true)]
async fn a_round_that_asks_for_nothing_keeps_the_order_where_it_is_part_of_a_call() {
    let replay = replay(&[session("a", &with_tokens(&STATE_ALONE))], Options::default());
    let mut peer = Peer::of(&replay);
    peer.play(OLDER.split("> {\"id\":1").next().unwrap()).await;
    let began = Instant::now();
    peer.play(STATE_ALONE_OLDER).await;
    assert!(began.elapsed() < Duration::from_millis(300), "{:?}", began.elapsed());
}

/// Two questions at once, by one that has told how far it is.
const TWO_QUESTIONS: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1}}}
> {"id":2,"method":"tools/call","params":{"name":"b","_meta":{"progressToken":2}}}
< {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
< {"method":"notifications/progress","params":{"progressToken":2,"progress":1}}
< {"id":1,"method":"elicitation/create","params":{"message":"1","requestedSchema":{"type":"object","properties":{}}}}
< {"id":2,"method":"elicitation/create","params":{"message":"2","requestedSchema":{"type":"object","properties":{}}}}
< {"method":"notifications/progress","params":{"progressToken":2,"progress":2}}
< {"id":2,"result":{"content":[]}}
> {"id":1,"result":{"action":"cancel"}}
> {"id":2,"result":{"action":"cancel"}}
< {"method":"notifications/progress","params":{"progressToken":1,"progress":2}}
< {"id":1,"result":{"content":[]}}
"#;

#[tokio::test(start_paused = true)]
async fn nothing_comes_between_questions_that_were_asked_together() {
    let whole = [OLDER.split("> {\"id\":1").next().unwrap(), TWO_QUESTIONS].concat();
    let replay = replay(&[session("a", &whole)], Options::default());
    Peer::of(&replay).play(&whole).await;
}

/// One after the other.
const ONE_BY_ONE: [&str; 5] = [
    r#"> {"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1}}}"#,
    r#"< {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
    r#"< {"id":1,"result":{"content":[]}}"#,
    r#"> {"id":2,"method":"tools/call","params":{"name":"b"}}"#,
    r#"< {"id":2,"result":{"content":[]}}"#,
];

#[tokio::test(start_paused = true)]
async fn what_was_asked_when_the_other_had_been_answered_does_not_overtake_it() {
    let replay = replay(&[session("a", &[HANDSHAKE, &ONE_BY_ONE.join("\n")].concat())], Options::default());
    let mut peer = Peer::of(&replay);
    peer.play(HANDSHAKE).await;
    peer.play(&[0, 3, 1, 2, 4].map(|at| ONE_BY_ONE[at]).join("\n")).await;
    // Who makes the second alone waits for nobody.
    let mut peer = Peer::of(&replay);
    peer.play(HANDSHAKE).await;
    let began = Instant::now();
    peer.play(&ONE_BY_ONE[3..].join("\n")).await;
    assert!(began.elapsed() < Duration::from_millis(10), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_last_round_of_another_call_comes_first_though_something_was_asked_after_it() {
    let question = r#"{"day":{"method":"elicitation/create","params":{"message":"Which day?","requestedSchema":{"type":"object","properties":{}}}}}"#;
    let slow = r#"> {"id":1,"method":"tools/call","params":{"name":"slow",META}}"#;
    let book = format!(
        r#"
> {{"id":2,"method":"tools/call","params":{{"name":"book",META}}}}
< {{"id":2,"result":{{"resultType":"input_required","inputRequests":{question}}}}}
"#
    );
    let back = r#"> {"id":3,"method":"tools/call","params":{"name":"book","inputResponses":{"day":{"action":"accept","content":{}}},META}}"#;
    let [booked, read, slept] = [(3, "booked"), (4, "read"), (1, "slept")].map(|(id, text)| {
        format!(r#"< {{"id":{id},"result":{{"resultType":"complete","content":[{{"type":"text","text":"{text}"}}]}}}}"#)
    });
    let reads = r#"> {"id":4,"method":"resources/read","params":{"uri":"a:b",META}}"#;
    let recorded = session("a", &[slow, &book, back, &booked, reads, &read, &slept].join("\n"));
    let replay = replay(&[recorded], Options::default());
    let mut peer = Peer::of(&replay);
    // A client that reads while it thinks about the question.
    peer.play(&[slow, &book, reads].join("\n")).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    peer.play(&[back, &booked, &read, &slept].join("\n")).await;
}
