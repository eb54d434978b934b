#![doc = include_str!("../README.md")]

mod memory_budget;
mod places;
mod queue;
mod schedule;
mod service_queue;
mod strategy_round_store;
mod wake_up;

pub use grid_batch_core::{AnyStrategy, ByConflict, InOrder, Strategy};
pub use places::{InFlightCounts, NodeOf, PlaceLimits, Places};
pub use queue::{BatchQueue, QueueOptions};
pub use schedule::{Dependency, Next, OpenBatch, WaitsFor, schedule};
pub use strategy_round_store::{OpenBatchStore, StrategyRoundStore};
pub use wake_up::WakeUp;
