//! Faults, and the tool of the harness.

use super::*;
use crate::answer::harness::{Harness, MOCK_FILE};
use crate::script::mock::FaultKind;

#[test]
fn a_tool_fault_precedes_a_file_fault_and_both_count() {
    let text = "faults: [{ fault: wrong_id, method: tools/call, call: { any_of: [1, 2] } }]\n\
                tools:\n  - name: a\n    answers: [{ text: x }]\n    faults: [{ fault: malformed_json, call: 1 }]\n  \
                - name: b\n    answers: [{ text: x, fault: invalid_utf8 }]";
    let mut fixture = Fixture::new(text);
    let mut fault = |name: &str| fixture.answer("tools/call", json!({"name": name})).fault;
    assert_eq!(fault("a"), Some(FaultKind::MalformedJson));
    assert_eq!(fault("a"), Some(FaultKind::WrongId), "the second of all calls");
    assert_eq!(fault("a"), None);
    assert_eq!(fault("b"), Some(FaultKind::InvalidUtf8), "the fault of its answer");
    assert_eq!(fixture.answer("tools/list", json!({})).fault, None);
}

#[test]
fn a_request_that_hangs_reaches_no_source() {
    let text = "faults: [{ fault: hang, call: 1 }]\n\
                tools: [{ name: a, answers: [{ text: \"{{ call }}\" }] }]";
    let mut fixture = Fixture::new(text);
    let hanging = fixture.answer("tools/call", json!({"name": "a"}));
    assert_eq!(hanging.fault, Some(FaultKind::Hang));
    assert_eq!(fixture.call("a", json!({})), "1");
}

#[test]
fn the_harness_answers_in_the_form_of_every_version() {
    for revision in Revision::ALL {
        let harness = Arc::new(Harness::default());
        let responses = br#"[{"content": [{"type": "audio", "data": "AA==", "mime_type": "audio/wav"}],
            "structured_content": {"a_b": 1}, "delay": "5ms"}, {"error": {"code": -5, "message": "no"}, "fault": "hang"}]"#;
        harness.load("t", responses, 0).unwrap();
        let script = Arc::new(ScriptSource::new(mock(MOCK_FILE)));
        let mut fixture = Fixture::with_sources(vec![Arc::new(harness), script]);
        if revision.era() == crate::protocol::Era::Legacy {
            let (client, capabilities) = (json!({}).into(), json!({}).into());
            fixture.state.legacy.client = Some(NegotiatedClient { revision, client, capabilities });
        }
        let call = |task: &str| json!({"name": "get_data", "arguments": {"task_description": task}});
        let first = fixture.answer("tools/call", call("[test_case_id=t]"));
        let Reply::Result(result) = first.reply else { panic!("{revision}") };
        let result = result.value().unwrap();
        assert_eq!(result.get("structuredContent").is_some(), revision.has_structured_content(), "{revision}");
        assert_eq!(result.get("resultType").is_some(), revision == Revision::V2026_07_28, "{revision}");
        assert_eq!(first.delay, Some(std::time::Duration::from_millis(5)));
        assert_eq!(first.provenance.to_string(), "harness: test case \"t\", response 1");
        let second = fixture.answer("tools/call", call("[test_case_id=t]"));
        assert_eq!(second.fault, Some(FaultKind::Hang));
        assert!(matches!(second.reply, Reply::Error(error) if error.code == -5));
        let third = fixture.answer("tools/call", call("[test_case_id=t]"));
        let Reply::Result(result) = third.reply else { panic!("{revision}") };
        assert_eq!(result.value().unwrap()["isError"], true);
        assert!(third.remarks[0].starts_with("no response is left"), "{:?}", third.remarks);
        let missing = fixture.answer("tools/call", json!({"name": "get_data", "arguments": {}}));
        assert!(missing.remarks[0].contains("`task_description` must be text"), "{:?}", missing.remarks);
    }
}
