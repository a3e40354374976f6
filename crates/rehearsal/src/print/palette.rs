//! Which colours there are. They only repeat what the words say.

use anstyle::{AnsiColor, Style};

/// The styles of everything that is printed in colour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    /// The word `error`.
    pub(crate) error: Style,
    /// The word `hint`.
    pub(crate) hint: Style,
    /// The heading of a table.
    pub(crate) heading: Style,
    /// What one would type to use something: the name of a tool.
    pub(crate) name: Style,
    /// The mark in front of a line of the wire.
    pub(crate) mark: Style,
}

impl Palette {
    /// No colour at all.
    pub(crate) const PLAIN: Palette = Palette {
        error: Style::new(),
        hint: Style::new(),
        heading: Style::new(),
        name: Style::new(),
        mark: Style::new(),
    };

    /// For terminals.
    pub(crate) const COLOURED: Palette = Palette {
        error: AnsiColor::Red.on_default().bold(),
        hint: AnsiColor::Cyan.on_default().bold(),
        heading: Style::new().bold(),
        name: AnsiColor::Green.on_default(),
        mark: AnsiColor::Blue.on_default().bold(),
    };
}
