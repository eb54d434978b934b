//! The suite for ledgers, with the adapters of `grid-batch`.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{path::Path, process::Command};

use grid_batch_test_support::process::Binary;

#[cfg(feature = "evm")]
mod evm;
mod sawtooth;
mod scabbard;
mod simulated;

const GRID_BATCH: Binary = Binary(env!("CARGO_BIN_EXE_grid-batch"));

/// The command `serve` with this configuration file.
fn serve(configuration: &Path) -> Command {
    let mut command = GRID_BATCH.command(["serve", "--config"]);
    command.arg(configuration);
    command
}
