//! What is printed when the command line cannot be parsed, or asks for help.

use std::{ffi::OsString, process::ExitCode};

use clap::Error;

use crate::commands::print::{print_stderr, print_stdout};

/// Prints the error. It repeats the argument that is not understood, which may be a URL with a password.
pub(crate) fn print(error: &Error, arguments: &[OsString]) -> ExitCode {
    let mut text = error.render().to_string();
    let arguments = arguments.iter().map(|argument| argument.to_string_lossy());
    for argument in arguments.filter(|argument| may_hold_secret(argument)) {
        text = text.replace(&*argument, "***");
    }
    let text = text.trim_end();
    if error.use_stderr() {
        print_stderr(text)
    } else {
        print_stdout(text)
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn may_hold_secret(argument: &str) -> bool {
    let argument = argument.to_lowercase();
    ["://", "@", "pass", "header:"].iter().any(|part| argument.contains(part))
}
