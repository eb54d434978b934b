#![doc = include_str!("../README.md")]
#![expect(clippy::unwrap_used, reason = "a panic is how a case fails")]

mod case;
mod case_run;
mod cases;
mod configuration;
mod harness;
mod operator;
mod report;
mod server_process;

use std::time::Duration;

pub use case::{CASES, Case, run, run_case};
pub use configuration::LATE_ARRIVAL_LIMIT;
pub use harness::{BatchKind, Fault, Harness, NotPossible, TestBatch};
pub use report::{CaseResult, Report, Row};
pub use server_process::ServerProcess;

/// Longer than any condition takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
