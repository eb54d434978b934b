//! Invalid batches that stop others: if the policy of their service says so, the batches that follow them or wait for
//! them wait for an operator's decision.
//!
//! The table is in a layer below the modules that record changes; the job and the decisions are above them.

mod decisions;
mod finish;
mod stops;
mod table;

pub(crate) use decisions::{continue_after, count_halted, end_following};
pub(crate) use finish::finish_halts;
pub(crate) use stops::{Stops, stop_following, stop_in_order};
pub(crate) use table::{HaltOrigin, find_last_before, first_halt, set_ends_until};
