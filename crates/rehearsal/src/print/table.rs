//! Columns of text.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::terminal::Terminal;
use super::terminal::sanitize_line;
use super::terminal::{shortened, wrapped};

/// Space between two columns.
const GAP: usize = 2;
/// Maximum width of a column of words, if the terminal is wide enough for all columns.
const MAX_WORDS: usize = 44;
/// The width of prose below which columns of words are narrowed.
const PROSE_WIDTH: usize = 36;
/// The minimum width of prose next to its row; narrower prose is printed below the row.
const MIN_PROSE: usize = 24;
/// The maximum number of lines of prose, next to a row or below it.
const MAX_PROSE_LINES: usize = 3;
/// How far prose below its row is from the edge.
const INDENT: usize = 4;

/// Rows of cells below a heading. The first column has names, the last one prose.
#[derive(Debug)]
pub(super) struct Table<const COLUMNS: usize> {
    heading: [&'static str; COLUMNS],
    rows: Vec<[Cell; COLUMNS]>,
}

/// The content of a cell, and how it is narrowed.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    /// A name, which is never narrowed.
    Name(String),
    /// Words that may be wrapped.
    Words(Vec<String>),
    /// Prose that may be wrapped and cut.
    Prose(String),
}

impl Cell {
    pub(super) fn empty() -> Cell {
        Cell::Name(String::new())
    }

    /// Removes control characters of the server, which would move the cursor.
    fn sanitize(self) -> Cell {
        let sanitize = |text: String| sanitize_line(&text).into_owned();
        match self {
            Cell::Name(text) => Cell::Name(sanitize(text)),
            Cell::Words(words) => Cell::Words(words.into_iter().map(sanitize).collect()),
            Cell::Prose(text) => Cell::Prose(sanitize(text)),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Cell::Name(text) | Cell::Prose(text) => text.is_empty(),
            Cell::Words(words) => words.is_empty(),
        }
    }

    /// The preferred width.
    fn width(&self) -> usize {
        match self {
            Cell::Name(text) | Cell::Prose(text) => text.width(),
            Cell::Words(words) => wrapped(words.iter().map(String::as_str), MAX_WORDS)
                .iter()
                .map(|line| line.width())
                .max()
                .unwrap_or_default(),
        }
    }

    /// The width on one line.
    fn whole_width(&self) -> usize {
        match self {
            Cell::Name(text) | Cell::Prose(text) => text.width(),
            Cell::Words(words) => words.join(" ").width(),
        }
    }

    /// The minimum width.
    fn narrowest(&self) -> usize {
        match self {
            Cell::Name(text) => text.width(),
            Cell::Words(words) => words.iter().map(|word| word.width()).max().unwrap_or_default(),
            Cell::Prose(text) => text.width().min(MIN_PROSE),
        }
    }

    fn lines(&self, room: usize) -> Vec<String> {
        match self {
            Cell::Name(text) => vec![text.clone()],
            Cell::Words(words) => wrapped(words.iter().map(String::as_str), room),
            Cell::Prose(text) => shortened(text, room, MAX_PROSE_LINES),
        }
    }
}

/// The layout of a table.
struct Layout {
    /// The columns that are used, and how wide each is.
    columns: Vec<(usize, usize)>,
    /// The column of prose that is printed below its row, and its width there.
    below: Option<(usize, usize)>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub(super) fn new(heading: [&'static str; COLUMNS]) -> Table<COLUMNS> {
        Table { heading, rows: Vec::new() }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: [Cell; COLUMNS]) {
        self.rows.push(cells.map(Cell::sanitize));
    }

    /// Prints the table without empty columns. On a terminal the table fits its width, unless the names are wider;
    /// otherwise each row is one line.
    ///
    /// ```text
    /// TOOL  ARGUMENTS       DESCRIPTION
    /// echo  message=string  Returns its input
    /// ```
    pub(super) fn print(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let Layout { columns, below } = match terminal.width {
            Some(width) => self.layout(width),
            None => Layout { columns: self.used(Cell::whole_width), below: None },
        };
        let heading = self.heading.map(|title| Cell::Name(title.to_owned()));
        for (number, row) in std::iter::once(&heading).chain(&self.rows).enumerate() {
            let cells: Vec<Vec<String>> = columns.iter().map(|&(column, width)| row[column].lines(width)).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or_default();
            for line in 0..height {
                let mut pending = 0;
                for (at, (cell, (_, width))) in cells.iter().zip(&columns).enumerate() {
                    let text = cell.get(line).map_or("", String::as_str);
                    let style = match (number, at) {
                        (0, _) => terminal.palette.heading,
                        (_, 0) => terminal.palette.name,
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
            if let (Some((column, width)), true) = (below, number > 0) {
                row[column].lines(width).iter().try_for_each(|line| writeln!(out, "{:INDENT$}{line}", ""))?;
            }
        }
        Ok(())
    }

    fn layout(&self, room: usize) -> Layout {
        let mut columns = self.used(Cell::width);
        let total = |columns: &[(usize, usize)]| columns.iter().map(|(_, width)| width + GAP).sum::<usize>() - GAP;
        // Prose is narrowed first, then words, then prose again; names never are.
        let is_prose = |column: usize| self.rows.iter().any(|row| matches!(row[column], Cell::Prose(_)));
        let (prose, rest): (Vec<_>, Vec<_>) = (0..columns.len()).partition(|&at| is_prose(columns[at].0));
        let comfortable = |cell: &Cell| cell.width().min(PROSE_WIDTH);
        let mut narrow = |which: &[usize], least: &dyn Fn(&Cell) -> usize| {
            for &at in which {
                let excess = total(&columns).saturating_sub(room);
                let (column, width) = columns[at];
                columns[at].1 = width.saturating_sub(excess).max(self.widest(column, least));
            }
        };
        narrow(&prose, &comfortable);
        narrow(&rest, &Cell::narrowest);
        narrow(&prose, &Cell::narrowest);
        match columns.last() {
            Some(&(column, _)) if total(&columns) > room && columns.len() > 1 && is_prose(column) => {
                columns.pop();
                Layout { columns, below: Some((column, room.saturating_sub(INDENT).max(MIN_PROSE))) }
            }
            _ => Layout { columns, below: None },
        }
    }

    /// The columns that are not empty, with their widths.
    fn used(&self, width: impl Fn(&Cell) -> usize) -> Vec<(usize, usize)> {
        let used = (0..COLUMNS).filter(|&column| column == 0 || self.rows.iter().any(|row| !row[column].is_empty()));
        used.map(|column| (column, self.widest(column, &width))).collect()
    }

    fn widest(&self, column: usize, width: impl Fn(&Cell) -> usize) -> usize {
        let cells = self.rows.iter().map(|row| width(&row[column]));
        cells.chain([self.heading[column].width()]).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::Palette;

    fn printed<const COLUMNS: usize>(table: &Table<COLUMNS>, width: usize) -> String {
        let mut out = Vec::new();
        table.print(&Terminal { palette: Palette::PLAIN, width: Some(width) }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn name(text: &str) -> Cell {
        Cell::Name(text.to_owned())
    }

    fn weather() -> Table<3> {
        let mut table = Table::new(["TOOL", "ARGUMENTS", "DESCRIPTION"]);
        let words = Cell::Words(vec!["city=string".to_owned(), "[days=integer]".to_owned()]);
        table.row([
            name("天気"),
            words,
            Cell::Prose("Forecast for a city of your choice and for some days".to_owned()),
        ]);
        table.row([name("now"), Cell::Words(Vec::new()), Cell::Prose("The time".to_owned())]);
        table
    }

    #[test]
    fn columns_are_aligned_by_display_width() {
        let expected = "\
TOOL  ARGUMENTS                   DESCRIPTION
天気  city=string [days=integer]  Forecast for a city of your choice and for some days
now                               The time
";
        assert_eq!(printed(&weather(), 120), expected);
    }

    #[test]
    fn prose_is_narrowed_first_then_words() {
        let expected = "\
TOOL  ARGUMENTS                   DESCRIPTION
天気  city=string [days=integer]  Forecast for a city of your choice
                                  and for some days
now                               The time
";
        assert_eq!(printed(&weather(), 70), expected);
        let expected = "\
TOOL  ARGUMENTS       DESCRIPTION
天気  city=string     Forecast for a city of
      [days=integer]  your choice and for some
                      days
now                   The time
";
        assert_eq!(printed(&weather(), 46), expected);
    }

    #[test]
    fn prose_is_printed_below_if_names_are_wide() {
        let expected = "\
TOOL  ARGUMENTS
天気  city=string
      [days=integer]
    Forecast for a city of your
    choice and for some days
now
    The time
";
        assert_eq!(printed(&weather(), 32), expected);
    }

    #[test]
    fn an_empty_column_is_not_printed() {
        let mut table = Table::new(["TOOL", "ARGUMENTS", "DESCRIPTION"]);
        table.row([name("now"), Cell::Words(Vec::new()), Cell::Prose("The time".to_owned())]);
        assert_eq!(printed(&table, 80), "TOOL  DESCRIPTION\nnow   The time\n");
    }

    #[test]
    fn control_characters_are_removed() {
        let mut table = Table::new(["TOOL", "ARGUMENTS", "DESCRIPTION"]);
        table.row([name("a\u{1b}[2Jb"), Cell::empty(), Cell::empty()]);
        assert_eq!(printed(&table, 80), "TOOL\na\u{fffd}[2Jb\n");
    }
}
