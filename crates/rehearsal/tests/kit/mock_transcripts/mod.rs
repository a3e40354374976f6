//! Mocks played from transcripts, in paused time.

mod legacy;
mod modern;
