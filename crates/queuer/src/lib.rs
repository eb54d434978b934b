#![doc = include_str!("../README.md")]

mod memory_budget;
mod open_batch;
mod places;
mod queue;
mod schedule;
mod serial;
mod service_queue;
mod strategy_round_store;
mod wake_up;

pub use open_batch::{Dependency, Next, OpenBatch, WaitsFor};
pub use places::{InFlightCounts, NodeOf, PlaceLimits, Places};
pub use queue::{BatchQueue, QueueOptions};
pub use schedule::schedule;
pub use serial::{Choice, WaitReason, choose};
pub use strategy_round_store::{OpenBatchStore, StrategyRoundStore};
pub use wake_up::WakeUp;
