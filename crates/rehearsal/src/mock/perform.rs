//! Acts of a play, carried out.

use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::answer::{Act, Answer, Change, Performance, Question, RecordedPlay};
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::Method;
use rehearsal_core::protocol::Era;
use serde_json::Map;

use super::call::{Call, Posed, Stop};
use super::news::News;
use super::server::within;
use super::session::Session;

/// Carries out a play, and answers; then what comes after the answer of a recording.
pub(super) async fn perform(call: Call, mut play: Performance, act: Act) {
    let (session, server) = (Arc::clone(&call.session), Arc::clone(&call.session.server));
    let is_handshake = call.method == Method::INITIALIZE;
    let mut posed = Posed::default();
    let end = until_answer(&call, &mut play, act, &mut posed).await;
    match end {
        None => call.withdraw(posed, &Map::new()).await,
        // What the server did not wait for when it was recorded.
        Some(_) => posed.into_values().for_each(|asked| session.forget(&asked.id)),
    }
    let answer = match end {
        None => None,
        Some(End::Answered(answer)) => Some(answer),
        Some(End::Detached(terms)) => match play {
            Performance::Script(script) => {
                let heard_by = (script.asked().terms.era() == Era::Legacy).then(|| Arc::clone(&session));
                let task = server.tasks.begin(terms, &script.asked().params);
                let reply = task.task().begun(script.mock(), &script.asked().terms);
                let provenance = script.provenance();
                server.tasks.run(Arc::clone(&server), task, script, heard_by);
                let answer = Answer { provenance, ..Answer::protocol(reply) };
                return call.settle(Some(answer)).await;
            }
            // What was recorded has its tasks in its messages.
            Performance::Recording(_) => None,
        },
    };
    if let (Performance::Recording(play), Some(answer)) = (&play, &answer) {
        server.source().answered(play, answer);
    }
    call.settle(answer).await;
    if let Performance::Recording(play) = play {
        match is_handshake {
            true => session.wait_with(play),
            false => afterwards(&session, *play).await,
        }
    }
}

/// How the part of a play ends that its client waits for.
enum End {
    Answered(Answer),
    Detached(rehearsal_core::answer::TaskTerms),
}

/// Carries out a play until its answer; `None` where nobody wants one any more.
async fn until_answer(call: &Call, play: &mut Performance, mut act: Act, posed: &mut Posed) -> Option<End> {
    let server = &call.session.server;
    loop {
        match act {
            Act::Wait(delay) => {
                let stop = tokio::select! {
                    biased;
                    stop = call.stopped() => Some(stop),
                    () = tokio::time::sleep(within(delay)) => None,
                };
                match stop {
                    None => {}
                    // What was recorded is known already: whoever asked and then closed its end is still told.
                    Some(Stop::Closing) if matches!(play, Performance::Recording(_)) => {}
                    Some(Stop::Closing | Stop::Cancelled) => return None,
                }
            }
            Act::Notify { method, params } => call.notify(method, &params).await,
            Act::Tell(change) => match &play {
                Performance::Recording(recorded) => {
                    let era = recorded.asked().terms.era();
                    tell(&call.session, call.channel, era, change).await;
                }
                Performance::Script(_) => server.news.tell_in_order(News::Changed(change)).await,
            },
            Act::Ask(questions) => {
                for (name, answer) in call.ask(&questions, None).await.ok()? {
                    play.answered(&name, answer);
                }
            }
            Act::Pose(questions) => call.pose(&questions, None, posed).await,
            Act::Hear(name) => {
                if let Some(answer) = call.hear(&name, posed).await.ok()? {
                    play.answered(&name, answer);
                }
            }
            Act::Withdraw(name, said) => {
                if let Some(asked) = posed.remove(&name) {
                    call.withdraw(Posed::from([(name, asked)]), &said).await;
                }
            }
            Act::CloseStream { retry } => call.session.close_stream(call.channel, retry.map(within)),
            Act::Detach(terms) => return Some(End::Detached(terms)),
            Act::Reply(answer) => return Some(End::Answered(answer)),
        }
        act = play.next(&mut server.state(), &server.world());
    }
}

/// Carries out what was recorded between an answer and the next question of the client.
pub(super) async fn afterwards(session: &Arc<Session>, mut play: RecordedPlay) {
    while let Some(act) = play.afterwards() {
        match act {
            Act::Wait(delay) => {
                if pause(session, within(delay)).await {
                    return;
                }
            }
            Act::Notify { method, params } => session.notify(Channel::MAIN, method, &params).await,
            Act::Tell(change) => tell(session, Channel::MAIN, play.asked().terms.era(), change).await,
            Act::Pose(questions) => ask(session, &questions).await,
            Act::Ask(_)
            | Act::Hear(_)
            | Act::Withdraw(..)
            | Act::CloseStream { .. }
            | Act::Detach(_)
            | Act::Reply(_) => {}
        }
    }
}

/// Tells what changed when it was recorded: before 2026-07-28 to the client that makes it happen again, if it wants to know.
async fn tell(session: &Session, channel: Channel, era: Era, change: Change) {
    match era {
        Era::Modern => session.server.news.tell_in_order(News::Changed(change)).await,
        Era::Legacy if session.wants(&change) => session.notify(channel, change.method(), &change.params()).await,
        Era::Legacy => {}
    }
}

/// Waits that long; `true` where the conversation came to an end meanwhile.
async fn pause(session: &Session, time: Duration) -> bool {
    tokio::select! {
        biased;
        () = session.closing() => true,
        () = tokio::time::sleep(time) => false,
    }
}

/// Asks, and needs no answer: what the server did with it is in the recording.
async fn ask(session: &Session, questions: &[Question]) {
    for question in questions {
        let asked = session.question();
        session.send(Channel::MAIN, question.request(asked.id, None)).await;
    }
}
