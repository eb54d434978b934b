//! The contract of a pool: how it is called, and the event that it emits.

mod call;
mod contract;

pub(crate) use call::PoolCall;
pub(crate) use contract::withdrawal_id;
