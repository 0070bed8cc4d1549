//! Aligned columns for people.

use std::io::{self, Write};

/// How a column is aligned: text to the left, numbers to the right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows under a heading, printed at once so that every column is as wide as its widest cell.
pub(crate) struct Table<const COLUMNS: usize> {
    alignment: [Align; COLUMNS],
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub(crate) fn new(heading: [(&str, Align); COLUMNS]) -> Self {
        Self {
            alignment: heading.map(|(_, align)| align),
            rows: vec![heading.map(|(title, _)| title.to_owned())],
        }
    }

    pub(crate) fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells);
    }

    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let widths: [usize; COLUMNS] = std::array::from_fn(width);
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, width), align) in row.iter().zip(widths).zip(self.alignment) {
                let cell = match align {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                };
                line.push_str(&cell);
                line.push_str("  ");
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_have_no_trailing_space() {
        let mut table = Table::new([("who", Align::Left), ("count", Align::Right)]);
        table.row(["sigma".to_owned(), "7".to_owned()]);
        table.row(["é".to_owned(), "123456".to_owned()]);
        let mut text = Vec::new();
        table.print(&mut text).unwrap();
        let expected = "who     count\nsigma       7\né      123456\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
