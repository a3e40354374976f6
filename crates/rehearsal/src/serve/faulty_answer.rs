//! Sends answers with a fault.

use rehearsal_core::answer::fault::{AfterFault, FaultStep, NormalAnswer, fault_steps};
use rehearsal_core::answer::{Answer, LoggedOutcome};
use rehearsal_core::message::Message;
use rehearsal_core::script::mock::FaultKind;

use super::active_request::{ActiveRequest, StopReason, outcome};

/// Sends an answer with its fault. The request stays active until the last step, so it can still be cancelled.
pub(super) async fn answer_with_fault(call: ActiveRequest, answer: Answer, fault: &FaultKind) {
    let message = Message::reply(call.id.clone(), &answer.reply);
    let server = &call.connection.server;
    let surface = call.chain.surface();
    let output_schema = call.request.subject().and_then(|name| surface.output_schema(name));
    let number = server.log.count() + 1;
    let steps = fault_steps(fault, NormalAnswer { id: &call.id, answer: &message, output_schema, call: number });
    call.log(&answer, if fault.comes_first() { LoggedOutcome::Nothing } else { outcome(&answer.reply) });
    for step in steps {
        match step {
            FaultStep::Wait(time) => {
                if call.pause(time).await.is_err() {
                    return call.abandon().await;
                }
            }
            FaultStep::UntilCancelled => {
                if call.stopped().await == StopReason::Closing {
                    return call.abandon().await;
                }
            }
            FaultStep::Hang => {
                call.stopped().await;
                return call.abandon().await;
            }
            FaultStep::Answer => call.connection.send(call.channel, message.clone()).await,
            FaultStep::Transport(fault) => {
                tokio::select! {
                    biased;
                    after = call.connection.inject_fault(call.channel, fault) => {
                        if after == AfterFault::Closed {
                            call.connection.stop_sending();
                        }
                    }
                    // A flood that the client does not read must not outlive the connection.
                    () = call.connection.closing() => {}
                }
            }
            FaultStep::Exit(status) => server.exit(status),
        }
    }
    call.connection.deactivate(call.channel, &call.id);
    call.connection.skip_batch_item(call.channel, &call.id).await;
}
