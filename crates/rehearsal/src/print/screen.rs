//! Where data is shown.

use super::palette::Palette;

/// How a stream is shown to whoever reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// In which colours.
    pub(crate) palette: Palette,
    /// How many columns a terminal has; `None` where it is not a terminal, and nothing may be cut.
    pub(crate) width: Option<usize>,
}
