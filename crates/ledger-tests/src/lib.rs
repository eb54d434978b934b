#![doc = include_str!("../README.md")]
#![expect(clippy::unwrap_used, reason = "a panic is how a case fails")]

mod case;
mod case_run;
mod cases;
mod configuration;
mod harness;
mod operator;
mod report;

pub use case::{CASES, Case, run, run_case};
pub use configuration::LATE_ARRIVAL_LIMIT;
pub use harness::{BatchKind, Fault, Harness, NotPossible, TestBatch};
pub use report::{CaseResult, Report, Row};
