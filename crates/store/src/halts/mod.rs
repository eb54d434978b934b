//! Invalid batches that stop others: by the policy of their service, what follows them, or waits for them, waits for an
//! operator's decision.
//!
//! The table is below the areas that record changes, and its job and the decisions are above them.

mod decisions;
mod finish;
mod stops;
mod table;

pub(crate) use decisions::{continue_after, count_halted, end_following};
pub(crate) use finish::finish_halts;
pub(crate) use stops::{Stops, stop_following, stop_in_order};
pub(crate) use table::{HaltOrigin, find_last_before, first_halt, set_ends_until};
