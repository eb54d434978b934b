use std::io::{IsTerminal, stdout};

use crate::commands::{
    columns::{columns, cut, fit},
    print::print_stdout,
    printable::printable,
    window,
};

/// Columns of text for people. The last one is cut to fit a terminal.
#[derive(Debug)]
pub(in crate::commands) struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(in crate::commands) fn new(headings: [&str; N]) -> Self {
        Self { rows: vec![headings.map(str::to_owned)] }
    }

    pub(in crate::commands) fn add(&mut self, row: [String; N]) {
        self.rows.push(row.map(|cell| printable(&cell)));
    }

    pub(in crate::commands) fn print(&self) {
        self.lines(terminal_width()).into_iter().for_each(print_stdout);
    }

    fn lines(&self, width: Option<usize>) -> Vec<String> {
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| columns(cell)).max().unwrap_or(0)
        };
        let widths: [usize; N] = std::array::from_fn(widest);
        let line = |row: &[String; N]| {
            let padded = row.iter().zip(widths).map(|(cell, width)| fit(cell, width));
            let line = padded.collect::<Vec<_>>().join("  ").trim_end().to_owned();
            width.map_or(line.clone(), |width| cut(&line, width))
        };
        self.rows.iter().map(line).collect()
    }
}

/// `None`: the output is not a terminal, so nothing is cut.
pub(in crate::commands) fn terminal_width() -> Option<usize> {
    const USUAL: usize = 80;
    const SMALLEST: usize = 40;
    if !stdout().is_terminal() {
        return None;
    }
    Some(window::size(stdout()).map_or(USUAL, |(columns, _)| columns).max(SMALLEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_fit() {
        let mut table = Table::new(["ID", "STATE", "ERROR"]);
        table.add(["5a5a".to_owned(), "delayed".to_owned(), "503: ".repeat(20)]);
        table.add(["b".to_owned(), "new".to_owned(), String::new()]);
        let lines = table.lines(Some(40));
        assert_eq!(lines[0], "ID    STATE    ERROR");
        assert_eq!(lines[2], "b     new");
        assert_eq!(lines[1].chars().count(), 40);
        assert!(lines[1].ends_with('…'));
        assert!(table.lines(None)[1].ends_with("503:"));
    }
}
