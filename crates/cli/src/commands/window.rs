//! The window of a terminal to which a command prints.

use std::{env, io::IsTerminal, os::fd::AsFd};

use rustix::termios::tcgetwinsize;

/// Whether an output is a terminal on which lines can be rewritten.
pub(super) fn can_be_redrawn(output: &impl IsTerminal) -> bool {
    output.is_terminal() && env::var("TERM").is_ok_and(|name| !name.is_empty() && name != "dumb")
}

/// The columns and rows of a terminal, if it reports them.
pub(super) fn size(terminal: impl AsFd) -> Option<(usize, usize)> {
    let size = tcgetwinsize(terminal).ok()?;
    let (columns, rows) = (usize::from(size.ws_col), usize::from(size.ws_row));
    (columns > 0 && rows > 0).then_some((columns, rows))
}
