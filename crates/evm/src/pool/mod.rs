//! The contract of a pool: how it is called, and the event that it emits.

mod call;
mod contract;

pub(crate) use call::PoolCall;
pub(crate) use contract::{WITHDRAWAL_EVENT, read_call, withdrawal_id};
