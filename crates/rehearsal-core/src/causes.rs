//! The text of an error with its causes.

use std::error::Error;
use std::fmt;

/// Writes an error, and after it each cause that the text does not contain yet.
pub fn write_with_causes(error: &dyn Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text += ": ";
            text += &cause_text;
        }
        next = cause.source();
    }
    f.write_str(&text)
}

#[cfg(test)]
mod tests {
    #[derive(thiserror::Error)]
    enum Outer {
        #[error("cannot start")]
        Apart(#[source] std::io::Error),
        #[error("cannot start: {0}")]
        Inside(#[source] std::io::Error),
    }
    crate::debug_as_display!(Outer);

    #[test]
    fn debug_has_each_cause_once() {
        let cause = || std::io::Error::other("no memory");
        for error in [Outer::Apart(cause()), Outer::Inside(cause())] {
            assert_eq!(format!("{error:?}"), "cannot start: no memory");
        }
    }
}
