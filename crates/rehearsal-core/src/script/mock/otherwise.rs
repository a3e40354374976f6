//! What a mock says when nothing declares an answer.

/// What is said when nothing declares an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Otherwise {
    /// That nothing fits, and what came closest. Everything that is offered needs an answer of its own.
    #[default]
    Refuse,
    /// A value that fits the output schema.
    FillFromSchema,
}
