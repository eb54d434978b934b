//! Following batches at the ledger: which to ask about, which are unresolved, and which questions
//! are in flight.

mod answers;
mod due;
mod in_flight;
mod kept_order;
mod next;
mod unresolved;

pub(crate) use answers::{no_answer, resolution_change, status_change};
pub(crate) use due::{due_batches, pending_batches};
pub(crate) use in_flight::{InFlightQueries, pending_key};
pub(crate) use kept_order::in_order;
pub(crate) use next::next_batches;
pub(crate) use unresolved::unresolved_batches;

pub use due::PendingBatch;
