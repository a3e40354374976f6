//! Answers that go wrong on purpose, carried out.

use rehearsal_core::answer::fault::{Aftermath, Honest, Misstep, missteps};
use rehearsal_core::answer::{Answer, CallOutcome};
use rehearsal_core::message::Message;
use rehearsal_core::script::mock::FaultKind;

use super::call::{Call, Stop, outcome};

/// Does to an answer what its fault says. The request is in hand until the last step, so it can still be cancelled.
pub(super) async fn answer_wrongly(call: Call, answer: Answer, fault: &FaultKind) {
    let message = Message::reply(call.id.clone(), &answer.reply);
    let server = &call.session.server;
    let mock = server.mock();
    let name = call.params.as_ref().and_then(|params| params.field("name")).and_then(|name| name.text());
    let output_schema = name.and_then(|name| mock.as_ref()?.output_schema(&name));
    let number = server.journal.count() + 1;
    let steps = missteps(fault, Honest { id: &call.id, answer: &message, output_schema, call: number });
    call.note(&answer, if fault.comes_first() { CallOutcome::Nothing } else { outcome(&answer.reply) });
    for step in steps {
        match step {
            Misstep::Wait(time) => {
                if call.pause(time).await.is_err() {
                    return call.give_up().await;
                }
            }
            Misstep::UntilCancelled => {
                if call.stopped().await == Stop::Closing {
                    return call.give_up().await;
                }
            }
            Misstep::Never => {
                call.stopped().await;
                return call.give_up().await;
            }
            Misstep::Answer => call.session.send(call.channel, message.clone()).await,
            Misstep::Misbehave(misdeed) => {
                tokio::select! {
                    biased;
                    aftermath = call.session.misbehave(call.channel, misdeed) => {
                        if aftermath == Aftermath::Over {
                            call.session.fall_silent();
                        }
                    }
                    // A flood that nobody reads must not outlive the conversation.
                    () = call.session.closing() => {}
                }
            }
            Misstep::Exit(status) => server.exit(status),
        }
    }
    call.session.end(call.channel, &call.id);
    call.session.send_nothing(call.channel, &call.id).await;
}
