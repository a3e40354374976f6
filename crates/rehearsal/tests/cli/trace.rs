//! `rehearse trace`

use crate::fixture::{Fixture, rehearse};

/// A session with a call, progress, a server request, a garbled line, an error, stderr and an unanswered call.
const WEATHER: &str = concat!(
    r#"{"format":1,"session_id":"weather-1","server_info":{"command":"node","arguments":["server.js"],"name":"weather","version":"1.2"},"#,
    r#""started_at":"2026-07-28T12:00:00Z","metadata":{"client":"desktop"},"calls":["#,
    r#"{"request":{"seq":0,"at_ms":0.5,"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}},"response":{"seq":1,"at_ms":12.6,"success":true,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"weather","version":"1.2"}}},"duration_ms":12.1},"#,
    r#"{"request":{"seq":6,"at_ms":300,"from":"server","id":0,"method":"sampling/createMessage","params":{}},"response":{"seq":7,"at_ms":601,"success":true,"result":{"role":"assistant"}},"duration_ms":301},"#,
    r#"{"request":{"seq":3,"at_ms":20,"id":1,"method":"tools/call","params":{"name":"get_forecast","arguments":{"city":"Oslo"},"_meta":{"progressToken":7}}},"response":{"seq":9,"at_ms":1300,"success":true,"result":{"content":[{"type":"text","text":"Rain"}]}},"duration_ms":1280},"#,
    r#"{"request":{"seq":11,"at_ms":1400,"id":2,"method":"tools/call","params":{"name":"get_forecast","arguments":{"city":"Nowhere"}}},"response":{"seq":12,"at_ms":1400.842,"success":true,"result":{"isError":true,"content":[{"type":"text","text":"no such\u001b[2Jcity"}]}},"duration_ms":0.842},"#,
    r#"{"request":{"seq":13,"at_ms":1500,"id":3,"method":"resources/read","params":{"uri":"file:///notes.md"}},"response":{"seq":14,"at_ms":1502,"success":false,"error":{"code":-32002,"message":"not found"}},"duration_ms":2},"#,
    r#"{"request":{"seq":15,"at_ms":1600,"id":4,"method":"tools/call","params":{"name":"slow"}},"response":null,"duration_ms":null}],"#,
    r#""messages":[{"type":"notification","seq":2,"at_ms":13,"from":"client","method":"notifications/initialized"},"#,
    r#"{"type":"stderr","seq":4,"at_ms":25,"line":"listening"},"#,
    r#"{"type":"notification","seq":5,"at_ms":200,"from":"server","method":"notifications/progress","params":{"progressToken":7,"progress":2,"total":5,"message":"reading"}},"#,
    r#"{"type":"notification","seq":8,"at_ms":700,"from":"server","method":"notifications/message","params":{"level":"warning","logger":"db","data":"almost full"}},"#,
    r#"{"type":"garbled","seq":10,"at_ms":1350,"from":"server","reason":"not JSON: expected value at line 1 column 1","text":"Server running on stdio"}],"#,
    r#""ended_at":"2026-07-28T12:00:05Z","end":{"how":"client_closed","status":0}}"#,
    "\n",
);

const SECOND: &str = concat!(
    r#"{"format":1,"session_id":"time-2","server_info":{"url":"http://127.0.0.1:3000/mcp"},"started_at":"2026-07-28T11:00:00Z","metadata":{},"calls":["#,
    r#"{"request":{"seq":1,"at_ms":1,"channel":1,"id":1,"method":"tools/list"},"response":{"seq":3,"at_ms":3,"success":true,"result":{"tools":[]}},"duration_ms":2}],"#,
    r#""messages":[{"type":"http","seq":0,"at_ms":0,"from":"client","channel":1,"http":{"method":"POST","target":"/mcp","headers":[["accept","application/json"]]}},"#,
    r#"{"type":"http","seq":2,"at_ms":2,"from":"server","channel":1,"http":{"status":200,"headers":[]}},"#,
    r#"{"type":"channel_ended","seq":4,"at_ms":4,"channel":1},"#,
    r#"{"type":"http","seq":5,"at_ms":5,"from":"server","channel":2,"http":{"status":401,"headers":[]}}],"#,
    r#""ended_at":null,"end":null}"#,
    "\n",
);

fn fixture() -> Fixture {
    Fixture::new().file("trace.jsonl", WEATHER)
}

#[test]
fn a_session_is_shown_in_recorded_order() {
    rehearse!(fixture(), "rehearse trace show", @r"
    exit: 0
    ----- stdout -----
    session 1  weather-1  weather 1.2  node server.js
    started 2026-07-28T12:00:00Z  client=desktop
    CALL  MESSAGES      TIME
       1  0, 1         0.000  → initialize                              12.1 ms  ok  2025-11-25
          2            0.013  → notifications/initialized
       2  3, 9         0.020  → tools/call get_forecast                  1.28 s  ok
          5            0.200    ← notifications/progress  40 % (2 of 5) reading
          6, 7         0.300    ← sampling/createMessage                 301 ms  ok
          8            0.700    ← notifications/message  [warning] db: almost full
          4            0.025  stderr  listening
          10           1.350  ← garbled  not JSON: expected value at line 1 column 1: Server running on stdio
       3  11, 12       1.400  → tools/call get_forecast                  842 µs  the tool failed: no such�[2Jcity
       4  13, 14       1.500  → resources/read file:///notes.md         2.00 ms  error -32002: not found
       5  15           1.600  → tools/call slow                                  no answer
    ended 2026-07-28T12:00:05Z, after 5.00 s: the client closed it, and the server exited with 0
    6 calls, 3 failed, 4 other messages
    ");
}

#[test]
fn params_and_results_are_shown_on_demand() {
    rehearse!(fixture(), "rehearse trace show --values | head -8", @r#"
    exit: 0
    ----- stdout -----
    session 1  weather-1  weather 1.2  node server.js
    started 2026-07-28T12:00:00Z  client=desktop
    CALL  MESSAGES      TIME
       1  0, 1         0.000  → initialize                              12.1 ms  ok  2025-11-25
                                params {"protocolVersion":"2025-11-25"}
                                result {"protocolVersion":"2025-11-25","serverInfo":{"name":"weather","version":"1.2"}}
          2            0.013  → notifications/initialized
       2  3, 9         0.020  → tools/call get_forecast                  1.28 s  ok
    "#);
}

#[test]
fn a_timeline_is_json_for_programs() {
    rehearse!(fixture(), "rehearse trace show --json trace.jsonl | sed -n '1p;4,6p;$p'", @r#"
    exit: 0
    ----- stdout -----
    {"type":"start","session":1,"session_id":"weather-1","server_info":{"command":"node","arguments":["server.js"],"name":"weather","version":"1.2"},"started_at":"2026-07-28T12:00:00Z","metadata":{"client":"desktop"}}
    {"type":"call","session":1,"session_id":"weather-1","call":2,"seq":3,"response_seq":9,"at_ms":20.0,"from":"client","id":1,"method":"tools/call","subject":"get_forecast","duration_ms":1280.0,"status":"ok"}
    {"type":"notification","session":1,"session_id":"weather-1","seq":5,"at_ms":200.0,"inside":3,"from":"server","method":"notifications/progress","text":"40 % (2 of 5) reading"}
    {"type":"call","session":1,"session_id":"weather-1","seq":6,"response_seq":7,"at_ms":300.0,"inside":3,"from":"server","id":0,"method":"sampling/createMessage","duration_ms":301.0,"status":"ok"}
    {"type":"finish","session":1,"session_id":"weather-1","ended_at":"2026-07-28T12:00:05Z","end":"the client closed it, and the server exited with 0","calls":6,"failed":3,"other_messages":4}
    "#);
}

#[test]
fn one_of_many_sessions_is_shown_by_its_number_or_name() {
    let fixture = Fixture::new().file("both.jsonl", &format!("{WEATHER}{SECOND}"));
    rehearse!(fixture, "rehearse trace show both.jsonl --session 2", @r"
    exit: 0
    ----- stdout -----
    session 2  time-2  http://127.0.0.1:3000/mcp
    started 2026-07-28T11:00:00Z
    CALL  MESSAGES      TIME
       1  1, 3         0.001  → tools/list                              2.00 ms  ok
          5            0.005  ← http 401
    ended: no end was recorded
    1 call, none failed, 0 other messages
    ");
    rehearse!(fixture, "rehearse trace show both.jsonl --session time --http", @r"
    exit: 0
    ----- stdout -----
    session 2  time-2  http://127.0.0.1:3000/mcp
    started 2026-07-28T11:00:00Z
    CALL  MESSAGES      TIME
       1  1, 3         0.001  → tools/list                              2.00 ms  ok
          0            0.000    → http POST /mcp
          2            0.002    ← http 200
          4            0.004  the stream ended
          5            0.005  ← http 401
    ended: no end was recorded
    1 call, none failed, 0 other messages
    ");
}

#[test]
fn a_journal_is_shown_like_a_trace() {
    let journal = concat!(
        r#"{"type":"start","format":1,"session_id":"a","server_info":{},"started_at":"2026-07-28T12:00:00Z","metadata":{}}"#,
        "\n",
        r#"{"type":"request","seq":0,"at_ms":1,"from":"client","id":1,"method":"ping"}"#,
        "\n",
        r#"{"type":"response","seq":1,"at_ms":2,"from":"server","id":1,"result":{}}"#,
        "\n",
        r#"{"type":"request","seq":2,"at_ms":3,"from":"cli"#,
    );
    rehearse!(Fixture::new().file("a.journal", journal), "cat a.journal | rehearse trace show -", @r"
    exit: 0
    ----- stdout -----
    session 1  a
    started 2026-07-28T12:00:00Z
    CALL  MESSAGES      TIME
       1  0, 1         0.001  → ping                                    1.00 ms  ok
    ended 2026-07-28T12:00:00.002Z, after 2.00 ms: no end was recorded
    1 call, none failed, 0 other messages
    ");
}

#[test]
fn an_empty_trace_has_no_sessions() {
    rehearse!(Fixture::new().file("trace.jsonl", "\n"), "rehearse trace show", @"
    exit: 0
    ----- stderr -----
    trace.jsonl has no sessions
    ");
    rehearse!(Fixture::new().file("trace.jsonl", ""), "rehearse trace stats", @"
    exit: 0
    ----- stdout -----
    0 sessions, 0 calls, 0 failed, 0 notifications, 0 bytes
    ");
}

#[test]
fn a_file_that_is_no_recording_is_reported() {
    let fixture = Fixture::new().file("notes.md", "# Notes\n");
    rehearse!(fixture, "rehearse trace show notes.md", @r##"
    exit: 2
    ----- stderr -----
    error: notes.md: not a recording: it begins with "# Notes"
    hint: a trace has one session a line, a journal one message a line; `rehearse record` writes both
    "##);
    rehearse!(fixture, "rehearse trace show", @"
    exit: 2
    ----- stderr -----
    error: cannot read trace.jsonl: No such file or directory (os error 2)
    hint: `rehearse record -- COMMAND` writes trace.jsonl
    ");
}

#[test]
fn a_malformed_line_is_reported_with_its_number() {
    let fixture = Fixture::new()
        .file("bad.jsonl", &format!("{SECOND}{{\"format\":1,\"session_id\":5}}\n{WEATHER}"))
        .file("cut.jsonl", &WEATHER[..700])
        .file("newer.jsonl", "{\"format\":3}\n");
    rehearse!(fixture, "rehearse trace show bad.jsonl", @r"
    exit: 2
    ----- stdout -----
    session 1  time-2  http://127.0.0.1:3000/mcp
    started 2026-07-28T11:00:00Z
    CALL  MESSAGES      TIME
       1  1, 3         0.001  → tools/list                              2.00 ms  ok
          5            0.005  ← http 401
    ended: no end was recorded
    1 call, none failed, 0 other messages
    ----- stderr -----
    error: bad.jsonl, line 2, column 26: invalid type: integer `5`, expected a string
    hint: `--skip-bad` continues with the next line
    ");
    rehearse!(fixture, "rehearse trace stats bad.jsonl --skip-bad | head -1", @"
    exit: 0
    ----- stdout -----
    2 sessions, 7 calls, 3 failed, 3 notifications, 1 garbled, 1 line of stderr, 1.4 kB
    ----- stderr -----
    skipped: bad.jsonl, line 2, column 26: invalid type: integer `5`, expected a string
    ");
    rehearse!(fixture, "rehearse trace show cut.jsonl", @r"
    exit: 2
    ----- stdout -----
    session 1  weather-1  weather 1.2  node server.js
    started 2026-07-28T12:00:00Z  client=desktop
    CALL  MESSAGES      TIME
    ----- stderr -----
    error: cut.jsonl, line 1, column 701: expected the rest of the session instead of the end of the file
    hint: `--skip-bad` continues with the next line
    ");
    rehearse!(fixture, "rehearse trace show newer.jsonl", @"
    exit: 2
    ----- stderr -----
    error: newer.jsonl, line 1: cannot read trace format 3; this rehearse reads up to 1
    hint: update rehearse, or record again
    ");
}

#[test]
fn trace_stats_shows_counts_and_latencies() {
    let fixture = fixture().file("second.jsonl", SECOND);
    rehearse!(fixture, "rehearse trace stats trace.jsonl second.jsonl", @"
    exit: 0
    ----- stdout -----
    2 sessions, 7 calls, 3 failed, 3 notifications, 1 garbled, 1 line of stderr, 1.4 kB
    from 2026-07-28T11:00:00Z to 2026-07-28T12:00:05Z

    METHOD                       NAME              COUNT  FAILED  P50      P95      MAX      SIZE
    → initialize                                   1      0       12.1 ms  12.1 ms  12.1 ms  202 bytes
    → resources/read             file:///notes.md  1      1       2.00 ms  2.00 ms  2.00 ms  156 bytes
    → tools/call                 get_forecast      2      1       842 µs   1.28 s   1.28 s   430 bytes
    → tools/call                 slow              1      1                                  71 bytes
    → tools/list                                   1      0       2.00 ms  2.00 ms  2.00 ms  92 bytes
    ← sampling/createMessage                       1      0       301 ms   301 ms   301 ms   124 bytes
    → notifications/initialized                    1                                         54 bytes
    ← notifications/message                        1                                         114 bytes
    ← notifications/progress                       1                                         123 bytes
    ");
    rehearse!(fixture, "rehearse trace stats --json second.jsonl", @r#"
    exit: 0
    ----- stdout -----
    {"sessions":1,"calls":1,"failed":0,"notifications":0,"garbled":0,"stderr_lines":0,"bytes":92,"started_at":"2026-07-28T11:00:00Z","ended_at":null,"methods":[{"type":"call","from":"client","method":"tools/list","subject":null,"count":1,"failed":0,"p50_ms":2.0,"p95_ms":2.0,"max_ms":2.0,"bytes":92}]}
    "#);
}

#[test]
fn calls_and_messages_are_found_by_their_text() {
    rehearse!(fixture(), "rehearse trace grep 'Oslo|running'", @r"
    exit: 0
    ----- stdout -----
    session 1  weather-1  weather 1.2  node server.js
    started 2026-07-28T12:00:00Z  client=desktop
    CALL  MESSAGES      TIME
       2  3, 9         0.020  → tools/call get_forecast                  1.28 s  ok
          10           1.350  ← garbled  not JSON: expected value at line 1 column 1: Server running on stdio
    ");
    rehearse!(fixture(), "rehearse trace grep . --errors --tool get_forecast", @r"
    exit: 0
    ----- stdout -----
    session 1  weather-1  weather 1.2  node server.js
    started 2026-07-28T12:00:00Z  client=desktop
    CALL  MESSAGES      TIME
       3  11, 12       1.400  → tools/call get_forecast                  842 µs  the tool failed: no such�[2Jcity
    ");
    rehearse!(fixture(), "rehearse trace grep . --from server --method sampling/createMessage --json", @r#"
    exit: 0
    ----- stdout -----
    {"type":"start","session":1,"session_id":"weather-1","server_info":{"command":"node","arguments":["server.js"],"name":"weather","version":"1.2"},"started_at":"2026-07-28T12:00:00Z","metadata":{"client":"desktop"}}
    {"type":"call","session":1,"session_id":"weather-1","seq":6,"response_seq":7,"at_ms":300.0,"from":"server","id":0,"method":"sampling/createMessage","duration_ms":301.0,"status":"ok"}
    "#);
    rehearse!(fixture(), "rehearse trace grep oslo", @"exit: 1");
    rehearse!(fixture(), "rehearse trace grep oslo -i | wc -l", @r"
    exit: 0
    ----- stdout -----
    4
    ");
    rehearse!(fixture(), "rehearse trace grep 'a('", @r#"
    exit: 2
    ----- stderr -----
    error: "a(" is not a regular expression: unclosed group
    hint: `.` finds everything; a backslash escapes a special character
    "#);
}

#[test]
fn two_recordings_are_compared_call_by_call() {
    let after =
        WEATHER.replace("Rain", "Sun").replace("file:///notes.md", "file:///other.md").replace("\"slow\"", "\"fast\"");
    let fixture =
        fixture().file("after.jsonl", &after).file("same.jsonl", &WEATHER.replace("\"id\":1", "\"id\":\"x\""));
    rehearse!(fixture, "rehearse trace diff trace.jsonl after.jsonl", @r#"
    exit: 1
    ----- stdout -----
    ~ tools/call get_forecast
        $.result.content[0].text: expected "Rain", got "Sun"
    - resources/read file:///notes.md {"uri":"file:///notes.md"}
    - tools/call slow {"name":"slow"}
    + resources/read file:///other.md {"uri":"file:///other.md"}
    + tools/call fast {"name":"fast"}
    ----- stderr -----
    1 changed, 2 removed, 2 added, 3 alike
    "#);
    rehearse!(fixture, "rehearse trace diff trace.jsonl after.jsonl --json --limit 1", @r#"
    exit: 1
    ----- stdout -----
    {"change":"changed","from":"client","method":"tools/call","subject":"get_forecast","before":{"seq":3,"at_ms":20.0},"after":{"seq":3,"at_ms":20.0},"mismatches":[{"path":"$.result.content[0].text","expected":"\"Rain\"","got":"\"Sun\""}]}
    ----- stderr -----
    1 changed, 2 removed, 2 added, 3 alike
    hint: 4 more; `--limit COUNT` prints more
    "#);
    rehearse!(fixture, "rehearse trace diff trace.jsonl same.jsonl", @"
    exit: 0
    ----- stderr -----
    0 changed, 0 removed, 0 added, 6 alike
    ");
    rehearse!(fixture, "rehearse trace diff trace.jsonl after.jsonl --ignore '$..text' --limit 0", @r"
    exit: 1
    ----- stderr -----
    0 changed, 2 removed, 2 added, 4 alike
    hint: 4 more; `--limit COUNT` prints more
    ");
}

#[test]
fn sessions_are_merged_in_start_order_and_split_again() {
    let fixture = fixture().file("second.jsonl", SECOND);
    rehearse!(fixture, "rehearse trace merge trace.jsonl second.jsonl trace.jsonl -o all.jsonl", @r"
    exit: 0
    ----- stderr -----
    merged 2 sessions from 3 files; skipped 1 duplicate
    ");
    rehearse!(fixture, "cat second.jsonl trace.jsonl | cmp - all.jsonl", @"exit: 0");
    rehearse!(fixture, "rehearse trace split all.jsonl --directory sessions && cmp sessions/weather-1.jsonl trace.jsonl", @"
    exit: 0
    ----- stderr -----
    wrote sessions/time-2.jsonl
    wrote sessions/weather-1.jsonl
    ");
    rehearse!(fixture, "rehearse trace split all.jsonl -d sessions && ls sessions", @"
    exit: 0
    ----- stdout -----
    time-2-2.jsonl
    time-2.jsonl
    weather-1-2.jsonl
    weather-1.jsonl
    ----- stderr -----
    wrote sessions/time-2-2.jsonl
    wrote sessions/weather-1-2.jsonl
    ");
    rehearse!(fixture, "rehearse trace merge trace.jsonl | cmp - trace.jsonl", @"
    exit: 0
    ----- stderr -----
    merged 1 session from 1 file
    ");
}

#[test]
fn trace_redact_removes_the_secrets_of_a_recording() {
    let fixture = Fixture::new()
        .file("trace.jsonl", &WEATHER.replace("\"city\":\"Oslo\"", "\"password\":\"hunter2!\",\"city\":\"Oslo\""));
    rehearse!(fixture, "rehearse trace redact -o safe.jsonl; grep -c hunter2 safe.jsonl; rehearse trace grep . --tool get_forecast --values safe.jsonl | grep -o 'password.*redacted:[a-z_]*'", @r#"
    exit: 0
    ----- stdout -----
    0
    password":"[redacted:
    ----- stderr -----
    1 × password in $.params.arguments.password
    "#);
    rehearse!(fixture, "rehearse trace redact --redact '$.params.arguments.city' --only -o safe.jsonl", @"
    exit: 0
    ----- stderr -----
    2 × by rule in $.params.arguments.city
    ");
}

/// The files of a killed recorder.
const ORPHAN: &str = concat!(
    r#"{"type":"start","format":1,"session_id":"a","server_info":{},"started_at":"2026-07-28T12:00:00Z","metadata":{}}"#,
    "\n",
    r#"{"type":"request","seq":0,"at_ms":1,"from":"client","id":1,"method":"ping"}"#,
    "\n",
);

/// A shell in which every file has a size limit of 0 bytes, for root too.
const FULL: &str = "trap '' XFSZ; ulimit -f 0; ";

#[test]
fn a_journal_that_cannot_be_merged_into_its_trace_is_still_read() {
    let fixture = fixture().file("trace.jsonl.a.journal", ORPHAN).file("trace.jsonl.b.journal", "");
    rehearse!(fixture, &format!("{FULL} rehearse trace show --session a; ls"), @r"
    exit: 0
    ----- stdout -----
    session 2  a
    started 2026-07-28T12:00:00Z
    CALL  MESSAGES      TIME
       1  0            0.001  → ping                                             no answer
    ended 2026-07-28T12:00:00.001Z, after 1.00 ms: the recorder was killed; the session was recovered from its journal
    1 call, 1 failed, 0 other messages
    trace.jsonl
    trace.jsonl.a.journal
    ----- stderr -----
    cannot recover session a from trace.jsonl.a.journal: File too large (os error 27)
    session b had no messages; removed trace.jsonl.b.journal
    reading trace.jsonl.a.journal instead
    ");
    // The recorder was killed while it wrote the trace, which has a part of the session in the journal.
    let half = format!("{WEATHER}{}", r#"{"format":1,"session_id":"a","server_info":{},"started_at":"2026"#);
    let fixture = fixture.file("trace.jsonl", &half);
    rehearse!(fixture, &format!("{FULL} rehearse trace grep ping"), @r"
    exit: 0
    ----- stdout -----
    session 2  a
    started 2026-07-28T12:00:00Z
    CALL  MESSAGES      TIME
       1  0            0.001  → ping                                             no answer
    ----- stderr -----
    cannot recover session a from trace.jsonl.a.journal: File too large (os error 27)
    reading trace.jsonl.a.journal instead
    ");
}

#[test]
fn a_trace_that_may_only_be_read_is_read_with_its_journals() {
    let closed = "mount --bind . .; mount -o remount,ro,bind .; cd $PWD; ";
    if !Fixture::new().run(&format!("unshare -rm sh -c '{closed}'")).starts_with("exit: 0") {
        eprintln!("skipped: nothing can be mounted here");
        return;
    }
    let show = format!("unshare -rm sh -c '{closed} rehearse trace show'");
    let whole = r#"{"format":1,"session_id":"a","server_info":{},"started_at":"2026-07-28T12:00:00Z","metadata":{},"calls":[],"messages":[],"ended_at":null,"end":null}"#;
    // The recorder was killed while it wrote the trace.
    let fixture = Fixture::new().file("trace.jsonl.a.journal", ORPHAN).file("trace.jsonl", &whole[..60]);
    rehearse!(fixture, &show, @r"
    exit: 0
    ----- stdout -----
    session 1  a
    started 2026-07-28T12:00:00Z
    CALL  MESSAGES      TIME
       1  0            0.001  → ping                                             no answer
    ended 2026-07-28T12:00:00.001Z, after 1.00 ms: the recorder was killed; the session was recovered from its journal
    1 call, 1 failed, 0 other messages
    ----- stderr -----
    cannot recover the journals of trace.jsonl: Read-only file system (os error 30)
    reading trace.jsonl.a.journal instead
    ");
    // The recorder was killed after that, before it removed the journal.
    let fixture = fixture.file("trace.jsonl", &format!("{whole}\n"));
    rehearse!(fixture, &show, @r"
    exit: 0
    ----- stdout -----
    session 1  a
    started 2026-07-28T12:00:00Z
    CALL  MESSAGES      TIME
    ended: no end was recorded
    0 calls, none failed, 0 other messages
    ----- stderr -----
    cannot recover session a from trace.jsonl.a.journal: Read-only file system (os error 30)
    ");
}

#[test]
fn sessions_of_a_killed_recorder_are_recovered_into_their_trace() {
    let journal = ORPHAN;
    let fixture = Fixture::new().file("trace.jsonl.a.journal", journal);
    rehearse!(fixture, "rehearse trace recover; ls", @r"
    exit: 0
    ----- stdout -----
    trace.jsonl
    ----- stderr -----
    recovered session a: 1 entry
    1 session added to trace.jsonl
    ");
    let fixture = fixture.file("trace.jsonl.b.journal", &journal.replace("\"a\"", "\"b\""));
    rehearse!(fixture, "rehearse trace show --session b", @r"
    exit: 0
    ----- stdout -----
    session 2  b
    started 2026-07-28T12:00:00Z
    CALL  MESSAGES      TIME
       1  0            0.001  → ping                                             no answer
    ended 2026-07-28T12:00:00.001Z, after 1.00 ms: the recorder was killed; the session was recovered from its journal
    1 call, 1 failed, 0 other messages
    ----- stderr -----
    recovered session b: 1 entry
    ");
}

#[test]
fn long_shows_the_arguments_of_each_call() {
    rehearse!(fixture(), "rehearse trace show --long | sed -n '4,8p'", @r#"
    exit: 0
    ----- stdout -----
       1  0, 1         0.000  → initialize                              12.1 ms  ok  2025-11-25
                                params {"protocolVersion":"2025-11-25"}
          2            0.013  → notifications/initialized
       2  3, 9         0.020  → tools/call get_forecast                  1.28 s  ok
                                arguments {"city":"Oslo"}
    "#);
    rehearse!(fixture(), "rehearse trace show --long --json | sed -n '4p'", @r#"
    exit: 0
    ----- stdout -----
    {"type":"call","session":1,"session_id":"weather-1","call":2,"seq":3,"response_seq":9,"at_ms":20.0,"from":"client","id":1,"method":"tools/call","subject":"get_forecast","duration_ms":1280.0,"status":"ok","arguments":{"city":"Oslo"}}
    "#);
}

#[test]
fn sessions_calls_and_messages_have_the_numbers_of_reports() {
    let file = WEATHER.replace("2026-07-28T12:00:00Z", "2026-07-28T10:00:00Z");
    let fixture = Fixture::new().file("both.jsonl", &format!("{SECOND}{file}"));
    rehearse!(fixture, "rehearse trace show both.jsonl | grep -E '^session|get_forecast'", @r"
    exit: 0
    ----- stdout -----
    session 1  time-2  http://127.0.0.1:3000/mcp
    session 2  weather-1  weather 1.2  node server.js
       2  3, 9         0.020  → tools/call get_forecast                  1.28 s  ok
       3  11, 12       1.400  → tools/call get_forecast                  842 µs  the tool failed: no such�[2Jcity
    ");
    // The second session of the file is the first one that is verified.
    let verify = "rehearse verify both.jsonl --timeout 5 -- tiny-server 2>/dev/null";
    rehearse!(fixture, &format!("{verify} | grep -E -A1 '^~.*get_forecast'"), @r#"
    exit: 0
    ----- stdout -----
    ~ session 2: tools/call get_forecast
      note: sent with {"city":"Oslo"}
    --
    ~ session 2: tools/call get_forecast
      note: sent with {"city":"Nowhere"}
    "#);
}
