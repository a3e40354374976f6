//! Where data is shown.

use super::palette::Palette;

/// How wide a screen is that does not say so.
pub(crate) const USUAL_WIDTH: usize = 80;

/// How a stream is shown to whoever reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// In which colours.
    pub(crate) palette: Palette,
    /// How many columns a terminal has; `None` where it is not a terminal, and text stays as it is.
    pub(crate) width: Option<usize>,
}

impl Screen {
    /// How many columns a table may have. Where it is not a terminal it may be read on one later.
    pub(super) fn columns(&self) -> usize {
        self.width.unwrap_or(USUAL_WIDTH)
    }
}
