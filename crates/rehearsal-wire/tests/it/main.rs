//! The wire with real peers at the other end.

mod stdio;
