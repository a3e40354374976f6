//! Acts of a play, carried out.

use rehearsal_core::answer::{Act, Answer, Play};
use rehearsal_core::protocol::Era;

use super::call::Call;
use super::server::{News, within};

/// Carries out a play until its answer; `None` where nobody wants one any more.
pub(super) async fn perform(call: &Call, mut play: Box<Play>, mut act: Act) -> Option<Answer> {
    let server = &call.session.server;
    loop {
        match act {
            Act::Wait(delay) => call.pause(within(delay)).await.ok()?,
            Act::Notify { method, params } => call.notify(method, &params).await,
            Act::Tell(change) => server.tell(News::Changed(change)),
            Act::Ask(questions) => {
                for (name, answer) in call.ask(&questions, None).await.ok()? {
                    play.answered(&name, answer);
                }
            }
            Act::CloseStream { .. } => call.session.close_stream(call.channel),
            Act::Detach(terms) => {
                let heard_by = (play.asked().terms.era() == Era::Legacy).then(|| call.session.clone());
                let task = server.tasks.begin(terms, &play.asked().params);
                let reply = task.task().begun(play.mock(), &play.asked().terms);
                let provenance = play.provenance();
                server.tasks.run(server.clone(), task, play, heard_by);
                return Some(Answer { reply, provenance, delay: None, fault: None, remarks: Vec::new() });
            }
            Act::Reply(answer) => return Some(answer),
        }
        act = play.next(&mut server.state(), &server.world());
    }
}
