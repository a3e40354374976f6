//! A small MCP server on Rehearsal's own wire.

fn main() {}
