//! Finds out when to ask about withdrawals: when the chain has a new block, and when a transaction was sent.

mod events;
mod pace;
mod subscription;
mod wake_up;
mod watch;

pub(crate) use wake_up::HeadWakeUp;
pub(crate) use watch::HeadWatch;
