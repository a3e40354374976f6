//! What was said and asked while several calls were in flight comes again with the call that it belongs to.

use rehearsal::replay::Options;

use crate::transcript::{Peer, replay, session};

#[tokio::test]
async fn progress_of_two_clients_with_one_token_comes_with_the_call_of_its_stream() {
    let recorded = session(
        "a",
        r#"
> {"channel":1,"id":1,"method":"tools/call","params":{"name":"dig","arguments":{"what":"gold"},META}}
> {"channel":2,"id":1,"method":"tools/call","params":{"name":"dig","arguments":{"what":"iron"},META}}
< {"channel":1,"method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"gold"}}
< {"channel":2,"method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"iron"}}
< {"channel":1,"id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"gold"}]}}
< {"channel":2,"id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"iron"}]}}
"#,
    );
    let replay = replay(&[recorded], Options::default());
    let mut peer = Peer::of(&replay);
    for what in ["iron", "gold"] {
        let talk = r#"
> {"id":1,"method":"tools/call","params":{"name":"dig","arguments":{"what":"WHAT"},META}}
< {"method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"WHAT"}}
< {"id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"WHAT"}]}}
"#;
        peer.play(&talk.replace("WHAT", what)).await;
    }
}
