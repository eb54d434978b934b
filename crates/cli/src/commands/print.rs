use std::{
    fmt::Display,
    io::{IsTerminal, Write, stderr, stdout},
};

use serde_json::Value;

use super::printable::printable_lines;

/// Prints JSON for programs.
pub(crate) fn print_json(document: &Value) {
    print_stdout(format_args!("{document:#}"));
}

/// Prints a line to standard output. A closed output does not stop the command.
pub(crate) fn print_stdout(line: impl Display) {
    let line = shown(line, stdout().is_terminal());
    let _ = writeln!(stdout(), "{line}");
}

/// Prints a line to standard error. A closed output does not stop the command.
pub(crate) fn print_stderr(line: impl Display) {
    let line = shown(line, stderr().is_terminal());
    let _ = writeln!(stderr(), "{line}");
}

/// Output to a file or a program is not changed.
fn shown(line: impl Display, is_terminal: bool) -> String {
    let line = line.to_string();
    if is_terminal { printable_lines(&line) } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_gets_no_control_characters() {
        let line = "\nreason:\t\u{1b}[2Jx\u{9b}31m";
        assert_eq!(shown(line, true), "\nreason:  [2Jx 31m");
        assert_eq!(shown(line, false), line);
    }
}
