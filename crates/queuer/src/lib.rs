#![doc = include_str!("../README.md")]

mod left_services;
mod memory_budget;
mod queue;
mod serial;
mod strategy_round_store;
mod wake_up;

pub use queue::{BatchQueue, QueueOptions};
pub use serial::{Choice, WaitReason, choose};
pub use strategy_round_store::{OpenBatchStore, StrategyRoundStore};
pub use wake_up::WakeUp;
