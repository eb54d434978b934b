#![doc = include_str!("../README.md")]

mod queue;
mod serial;
mod wake_up;

pub use queue::{BatchQueue, QueueOptions};
pub use serial::{Choice, Reason, choose};
pub use wake_up::WakeUp;
