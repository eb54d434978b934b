use std::{
    fmt::Display,
    io::{Write, stderr, stdout},
};

/// Prints a line to standard output. A closed output does not stop the command.
pub(crate) fn print_stdout(line: impl Display) {
    let _ = writeln!(stdout(), "{line}");
}

/// Prints a line to standard error. A closed output does not stop the command.
pub(crate) fn print_stderr(line: impl Display) {
    let _ = writeln!(stderr(), "{line}");
}
