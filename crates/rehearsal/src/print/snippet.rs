//! What is wrong with a file, shown in its own line.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use rehearsal::core::script::Problem;

use super::Palette;
use super::screen::Screen;
use super::visible::lines;

/// A problem with the line that it is in:
///
/// ```text
/// error: unknown key `nam`
///  --> weather.mock.yaml:1:11
///   |
/// 1 | server: { nam: weather }
///   |           ^^^
///   |
///   = help: did you mean `name`?
/// ```
pub(crate) fn snippet(screen: &Screen, file: &str, text: &str, problem: &Problem) -> String {
    let start = floor(text, problem.at.start);
    // A long value is pointed at by its first line.
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let end = floor(text, problem.at.start.saturating_add(problem.at.length)).clamp(start, line_end);
    let title = lines(&problem.message).into_owned();
    let hint = problem.hint.as_deref().map(|hint| lines(hint).into_owned());
    let marked = Snippet::source(text).path(file).annotation(AnnotationKind::Primary.span(start..end));
    let group = Level::ERROR.primary_title(&title).element(marked);
    let group = match &hint {
        Some(hint) => group.element(Level::HELP.message(hint)),
        None => group,
    };
    let plain = screen.palette.error == Palette::PLAIN.error;
    let renderer = if plain { Renderer::plain() } else { Renderer::styled() };
    renderer.decor_style(DecorStyle::Ascii).render(&[group])
}

/// The nearest beginning of a character at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
