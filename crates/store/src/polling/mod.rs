//! Follows batches at the ledger: which to ask about, which are unresolved, and which queries are in flight.

mod answers;
mod due;
mod monitor_store;
mod next;
mod unresolved;

pub use due::PendingBatch;
pub use monitor_store::MonitorStore;
