//! Tells when to ask about withdrawals: when the chain has a new block, and when something was sent.

mod events;
mod hints;
mod pace;
mod subscription;
mod watch;

pub(crate) use hints::Hints;
pub(crate) use watch::HeadWatch;
