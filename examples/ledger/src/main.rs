//! The program `grid-batch` with one more kind of ledger: `sequence`.

use std::process::ExitCode;

use sequence_batch::SEQUENCE;

fn main() -> ExitCode {
    grid_batch::run(&[SEQUENCE])
}
