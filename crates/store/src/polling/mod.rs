//! Following batches at the ledger: which to ask about, which are unresolved, and which questions
//! are in flight.

mod answers;
mod due;
mod next;
mod unresolved;

pub(crate) use answers::{
    InFlightQueries, no_answer, pending_key, resolution_change, status_change,
};
pub(crate) use due::{due_batches, pending_batches};
pub(crate) use next::next_batches;
pub(crate) use unresolved::{in_order, unresolved_batches};

pub use due::PendingBatch;
