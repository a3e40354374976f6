//! Why a plan cannot be compiled, with a place.

use oxc_diagnostics::OxcDiagnostic;

use crate::place::{LineIndex, SourcePlace};

/// One reason why a plan was rejected before it ran.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Diagnostic {
    /// What is wrong, for example ``` `fetch` is not available in a plan ```.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
    /// Where it is.
    pub place: SourcePlace,
    /// The line of the source at that place, without its line break.
    pub source_line: String,
}

impl std::fmt::Display for Diagnostic {
    /// Prints `2:7: message`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.place, self.message)
    }
}

impl Diagnostic {
    /// A diagnostic at a byte offset.
    pub(crate) fn new(source: &LineIndex, offset: u32, message: impl Into<String>, hint: Option<&str>) -> Diagnostic {
        let place = source.place(offset);
        let source_line = source.line_text(place.line).to_owned();
        Diagnostic { message: message.into(), hint: hint.map(str::to_owned), place, source_line }
    }

    /// A diagnostic of the parser or of the semantic checks.
    pub(crate) fn from_oxc(source: &LineIndex, diagnostic: OxcDiagnostic) -> Diagnostic {
        let inner = diagnostic.inner_owned();
        // The first label of a redeclared name is the first declaration, which is the correct one.
        let label = match inner.message.contains("already been declared") {
            true => inner.labels.last(),
            false => inner.labels.first(),
        };
        let offset = label.map_or(0, |label| label.offset());
        Diagnostic::new(source, offset, inner.message.into_owned(), inner.help.as_deref())
    }
}
