#![doc = include_str!("../README.md")]

mod commands;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run(std::env::args_os())
}
