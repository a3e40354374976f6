//! How things look: data for stdout, talk for stderr.
//!
//! A printer formats; it never decides whether something is good or bad.

mod content;
mod lists;
mod palette;
mod parameter;
mod screen;
mod table;
mod talk;
mod wire;

pub(crate) use content::response;
pub(crate) use lists::Lists;
pub(crate) use palette::Palette;
pub(crate) use parameter::{Parameter, accepts_unknown, parameters};
pub(crate) use screen::Screen;
pub(crate) use talk::Talk;
pub(crate) use wire::wire_line;
