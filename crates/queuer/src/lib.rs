#![doc = include_str!("../README.md")]

mod in_flight;
mod left_services;
mod memory_budget;
mod open_batch;
mod queue;
mod schedule;
mod serial;
mod strategy_round_store;
mod taken_of_services;
mod wake_up;

pub use in_flight::{InFlightCounts, InFlightOptions, InFlightWindow};
pub use open_batch::{Dependency, Next, OpenBatch, WaitsFor};
pub use queue::{BatchQueue, QueueOptions};
pub use schedule::schedule;
pub use serial::{Choice, WaitReason, choose};
pub use strategy_round_store::{OpenBatchStore, StrategyRoundStore};
pub use wake_up::WakeUp;
