//! What operators read and do: holds and decisions, lists, details, counts and retention.

mod ahead;
mod decide;
mod details;
mod halts;
mod held;
mod hold;
mod list;
mod list_waiting;
mod missing;
mod obstacle_rows;
mod obstacles;
mod open_states;
mod retention;
mod retry;
mod service_counts;

pub(crate) use ahead::{ahead, count_ahead_to_limit};
pub(crate) use decide::decide;
pub(crate) use details::{details, find, find_by_prefix, open_batches, serialized_batch};
pub(crate) use halts::{continue_after, end_following, halts};
pub(crate) use held::{held_batches, waiting_holds, waiting_holds_of, with_waiting_hold};
pub(crate) use hold::{hold, release};
pub(crate) use list::{count, depth, depths, list};
pub(crate) use missing::{absent_at_ledger, found_at_ledger, hold_missing, missing_transactions};
pub(crate) use open_states::open_states;
pub use open_states::{OpenState, OpenStates};
pub(crate) use retention::{count_removable, remove_ended, start_retention};
pub use retry::EndedDelays;
pub(crate) use retry::end_delays;
pub use service_counts::ServiceCounts;
pub(crate) use service_counts::service_counts;
