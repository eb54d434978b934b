#![doc = include_str!("../README.md")]

mod memory_budget;
#[cfg(any(test, feature = "mocks"))]
pub mod mocks;
mod places;
mod queue;
mod read_window;
mod recall;
mod schedule;
mod service_queue;
mod strategy_round_store;
mod wake_up;

pub use grid_batch_core::queue::{AnyStrategy, ByConflict, InOrder, Strategy};
pub use places::{InFlightCounts, NodeOf, PlaceLimits, Places};
pub use queue::{BatchQueue, QueueOptions};
pub use read_window::ReadWindow;
pub use recall::Recall;
pub use schedule::{Dependency, Next, OpenBatch, WaitsFor, schedule};
pub use strategy_round_store::{OpenBatchStore, StrategyRoundStore};
pub use wake_up::WakeUp;
