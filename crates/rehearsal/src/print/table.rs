//! Columns of text.

use std::io::{self, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::screen::Screen;
use super::visible::one_line;

/// Space between two columns.
const GAP: usize = 2;
/// How narrow the last column may become before it is left to the terminal to wrap.
const NARROWEST: usize = 16;

/// Rows of cells under a heading. The first column holds names, the last one prose that may be cut.
#[derive(Debug)]
pub(super) struct Table<const COLUMNS: usize> {
    heading: [&'static str; COLUMNS],
    rows: Vec<[Cell; COLUMNS]>,
}

/// The lines of one cell.
type Cell = Vec<String>;

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub(super) fn new(heading: [&'static str; COLUMNS]) -> Table<COLUMNS> {
        Table { heading, rows: Vec::new() }
    }

    /// Adds a row. Control characters become `�`: they come from the server and would move our cursor.
    pub(super) fn row(&mut self, cells: [Cell; COLUMNS]) {
        self.rows.push(cells.map(|cell| cell.iter().map(|line| one_line(line).into_owned()).collect()));
    }

    /// Prints the table without the columns that are empty:
    ///
    /// ```text
    /// TOOL  ARGUMENTS       DESCRIPTION
    /// echo  message=string  Says what you say
    /// ```
    pub(super) fn print(&self, screen: &Screen, out: &mut dyn Write) -> io::Result<()> {
        let columns: Vec<usize> = (0..COLUMNS).filter(|&column| self.is_used(column)).collect();
        let widths: Vec<usize> = columns.iter().map(|&column| self.width(column)).collect();
        let before: usize = widths.iter().rev().skip(1).map(|width| width + GAP).sum();
        let room = screen.width.map(|width| width.saturating_sub(before).max(NARROWEST));
        let heading = self.heading.map(|title| vec![title.to_owned()]);
        for (number, row) in std::iter::once(&heading).chain(&self.rows).enumerate() {
            let height = row.iter().map(Vec::len).max().unwrap_or_default();
            for line in 0..height {
                let mut pending = 0;
                for (at, (&column, &width)) in columns.iter().zip(&widths).enumerate() {
                    let text = row[column].get(line).map_or("", String::as_str);
                    let last = at + 1 == columns.len();
                    let text = if last { cut(text, room) } else { text.to_owned() };
                    let style = match (number, at) {
                        (0, _) => screen.palette.heading,
                        (_, 0) => screen.palette.name,
                        _ => anstyle::Style::new(),
                    };
                    if !text.is_empty() {
                        write!(out, "{:pending$}{style}{text}{style:#}", "")?;
                        pending = 0;
                    }
                    pending += width.saturating_sub(text.width()) + GAP;
                }
                writeln!(out)?;
            }
        }
        Ok(())
    }

    fn is_used(&self, column: usize) -> bool {
        column == 0 || self.rows.iter().any(|row| row[column].iter().any(|line| !line.is_empty()))
    }

    fn width(&self, column: usize) -> usize {
        let lines = self.rows.iter().flat_map(|row| &row[column]).map(|line| line.width());
        lines.chain([self.heading[column].width()]).max().unwrap_or_default()
    }
}

/// As much of a text as fits, ended with `…` where that is not all.
pub(super) fn cut(text: &str, room: Option<usize>) -> String {
    let Some(room) = room.filter(|room| text.width() > *room) else { return text.to_owned() };
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or_default();
        used <= room
    };
    let mut kept: String = text.chars().take_while(fits).collect();
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::Palette;

    fn printed(table: &Table<3>, width: Option<usize>) -> String {
        let mut out = Vec::new();
        table.print(&Screen { palette: Palette::PLAIN, width }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn cell(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn weather() -> Table<3> {
        let mut table = Table::new(["TOOL", "ARGUMENTS", "DESCRIPTION"]);
        table.row([cell("天気"), cell("city=string\ndays=integer"), cell("Forecast for a city of your choice")]);
        table.row([cell("now"), cell(""), cell("The time")]);
        table
    }

    #[test]
    fn columns_are_aligned_by_what_the_eye_sees() {
        let expected = "\
TOOL  ARGUMENTS     DESCRIPTION
天気  city=string   Forecast for a city of your choice
      days=integer
now                 The time
";
        assert_eq!(printed(&weather(), None), expected);
    }

    #[test]
    fn only_a_terminal_cuts_the_last_column() {
        let shown = printed(&weather(), Some(40));
        assert!(shown.contains("\n天気  city=string   Forecast for a city…\n"), "{shown}");
    }

    #[test]
    fn a_column_that_nobody_uses_is_left_out() {
        let mut table = Table::new(["TOOL", "ARGUMENTS", "DESCRIPTION"]);
        table.row([cell("now"), cell(""), cell("The time")]);
        assert_eq!(printed(&table, None), "TOOL  DESCRIPTION\nnow   The time\n");
    }

    #[test]
    fn a_server_cannot_move_our_cursor() {
        let mut table = Table::new(["TOOL", "ARGUMENTS", "DESCRIPTION"]);
        table.row([cell("a\u{1b}[2Jb"), cell(""), cell("")]);
        assert_eq!(printed(&table, None), "TOOL\na\u{fffd}[2Jb\n");
    }
}
