#![doc = include_str!("../README.md")]

mod commands;

use std::{env, process::ExitCode};

use grid_batch_service::LedgerType;

/// Runs the command that the arguments of this process name. `ledger.kind` can also name one of these types of ledgers.
///
/// The whole program of an adapter is a `main` that calls it:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use grid_batch_core::ledger::LedgerFacts;
/// use grid_batch_service::{LedgerConfig, LedgerType};
///
/// const MINE: LedgerType = LedgerType::new(
///     "mine",
///     |settings| Ok(LedgerFacts::weakest(settings.get(&LedgerConfig::late_arrival_limit)?)),
///     |context| Err(format!("nothing listens at {:?}", context.urls()).into()),
/// );
///
/// fn main() -> ExitCode {
///     grid_batch::run(&[MINE])
/// }
/// ```
pub fn run(ledgers: &[LedgerType]) -> ExitCode {
    commands::run(env::args_os(), ledgers)
}
