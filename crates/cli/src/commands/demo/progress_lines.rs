use std::{
    io::{Write, stderr},
    time::Duration,
};

use grid_batch_support::Shutdown;

use super::DemoArgs;
use crate::commands::{print::print_stderr, window};

/// The progress of a demonstration on standard error: lines that are rewritten on a terminal, and otherwise a line every
/// few seconds.
#[derive(Debug)]
pub(super) struct ProgressLines {
    /// The columns of the terminal on which lines are rewritten.
    columns: Option<usize>,
    is_quiet: bool,
    /// Nothing more is shown when it is requested.
    stop: Shutdown,
    /// How many lines are above the cursor, to be rewritten.
    written: usize,
    /// When a line was printed.
    printed_at: Option<Duration>,
    /// A line that was not printed, because another one was shortly before.
    unprinted: Option<String>,
}

impl ProgressLines {
    const INTERVAL: Duration = Duration::from_secs(2);

    /// Rewrites lines if there is a terminal with room for all words, and nothing else is written to it. Otherwise, the
    /// meaning of the words is printed first.
    pub(super) fn start(args: &DemoArgs, words: &[(&str, &str)], stop: Shutdown) -> Self {
        let columns = terminal_columns(words.len() + 1).filter(|_| args.log == "off");
        if columns.is_none() && !args.json {
            for (name, meaning) in words {
                print_stderr(format_args!("{name:>12}  {meaning}"));
            }
        }
        let is_quiet = args.json;
        Self { columns, is_quiet, stop, written: 0, printed_at: None, unprinted: None }
    }

    fn is_silent(&self) -> bool {
        self.is_quiet || self.stop.is_requested()
    }

    /// Shows the progress: these lines, or one line.
    pub(super) fn show(&mut self, time: Duration, lines: &[String], line: String) {
        match self.columns {
            _ if self.is_silent() => {}
            Some(columns) => self.rewrite(lines, columns),
            None => self.print_at_intervals(time, line),
        }
    }

    /// Prints what has happened, above lines that are rewritten.
    #[cfg(feature = "evm")]
    pub(super) fn tell(&mut self, event: &str) {
        if self.is_silent() {
            return;
        }
        if self.columns.is_some() {
            write(&format!("{}\u{1b}[J{event}\n", up(self.written)));
            self.written = 0;
        } else {
            print_stderr(event);
            self.printed_at = None;
        }
    }

    /// Prints what was not printed yet.
    pub(super) fn end(&mut self) {
        if let Some(line) = self.unprinted.take() {
            print_stderr(line);
        }
    }

    fn rewrite(&mut self, lines: &[String], columns: usize) {
        let mut output = up(self.written);
        for line in lines {
            // A line that the terminal wraps would be two.
            output.extend(line.chars().take(columns.saturating_sub(1)));
            output.push_str("\u{1b}[K\n");
        }
        write(&output);
        self.written = lines.len();
    }

    fn print_at_intervals(&mut self, time: Duration, line: String) {
        if self.printed_at.is_some_and(|printed_at| time < printed_at + Self::INTERVAL) {
            self.unprinted = Some(line);
        } else {
            print_stderr(line);
            self.unprinted = None;
            self.printed_at = Some(time);
        }
    }
}

/// Moves the cursor up, to the first column.
fn up(lines: usize) -> String {
    if lines == 0 { "\r".to_owned() } else { format!("\r\u{1b}[{lines}A") }
}

/// A closed output does not stop the demonstration.
fn write(text: &str) {
    let mut stderr = stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// The columns of a terminal that has more rows than these.
fn terminal_columns(rows: usize) -> Option<usize> {
    let (columns, height) = window::size(stderr()).filter(|_| window::can_be_redrawn(&stderr()))?;
    (height > rows).then_some(columns)
}
