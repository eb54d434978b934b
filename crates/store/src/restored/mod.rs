//! Databases that went back to an earlier state, because they were restored from a backup or because a standby without
//! the last commits was promoted: how this is noticed, and its effect on open batches.

mod check;
mod durability;
mod mark;
mod operator;
mod sends;
mod server;
mod state;

pub(crate) use check::{check, checked};
pub(crate) use operator::expect_no_running_instances;
pub(crate) use sends::CountedSend;

pub use mark::OpenBatchesInDoubt;
