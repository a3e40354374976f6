//! Other people's servers and clients, and ours, talking to each other.
//!
//! What is talked to is installed, pinned, by `tests/interop/install` into a cache outside the repository.

mod everything;
mod installed;
mod misbehaving;
mod servers;
