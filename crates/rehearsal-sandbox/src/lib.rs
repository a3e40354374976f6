//! JavaScript and TypeScript in, tool calls out, nothing else.
//!
//! This crate is the place of the sandbox in which a dry run executes an agent's plan. It is a crate of its own
//! because a JavaScript engine is a dependency that nobody else should compile. It is empty until the dry run needs it.
