use std::{
    fmt::Display,
    io::{Write, stderr, stdout},
};

/// Prints a line for whoever looks. Where nobody does any more, the work goes on.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(stdout(), "{line}");
}

/// The same beside what is printed for programs.
pub(crate) fn say_aside(line: impl Display) {
    let _ = writeln!(stderr(), "{line}");
}
