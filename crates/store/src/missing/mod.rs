//! Transactions that waiting batches miss: what is stored about them, when the ledger is asked, and how its answers are
//! handled.
//!
//! The tables are in a layer below the modules that record changes; the rest is above them.

mod answers;
mod capacity;
mod evaluate;
mod lookups;
mod table;

pub(crate) use capacity::{MissingCapacity, WaitedFor, limit_of};
pub(crate) use evaluate::give_positions_if_complete;
pub(crate) use table::{
    IncompleteBatch, end_holds, find_missed, find_missing_dependents, insert as insert_missing,
    release_overdue, remove as remove_missing, remove_others,
};
