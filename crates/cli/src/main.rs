//! The program, with the ledgers whose adapters are compiled in.

use std::process::ExitCode;

fn main() -> ExitCode {
    grid_batch::run(&[])
}
