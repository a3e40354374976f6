//! Answers that take several actions: compiled steps, and the interpreter that carries them out.

mod basis;
mod input_request;
mod progress;
mod render;
mod responder;
mod state_signer;
mod steps;

pub use input_request::InputRequest;
pub use state_signer::StateSigner;
pub use steps::TaskOptions;

pub(super) use basis::{Basis, RecordingBasis, ScriptBasis, round_key};
pub(super) use input_request::InputRequestTemplate;
pub(super) use progress::CombinedProgress;
pub(super) use responder::StepResponder;
pub(super) use state_signer::StatelessRounds;
pub(super) use steps::{
    AnswerBody, CompiledAnswer, CompiledChange, CompiledStep, ConditionalAnswer, OnDecline, RecordedRound,
};
