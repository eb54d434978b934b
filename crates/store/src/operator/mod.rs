//! What operators read and do: holds and decisions, lists, details, counts and retention.

mod act;
mod action_log;
mod ahead;
mod batch_actions;
mod decide;
mod details;
mod different_states;
mod drain;
mod held;
mod hold;
mod list;
mod list_waiting;
mod open_states;
mod page;
mod pauses;
mod queue_counts;
mod released_claim;
mod retention;
mod retry;
mod service_counts;
mod services;
mod tokens;
mod wait_reason_rows;
mod wait_reasons;

pub(crate) use act::act;
pub(crate) use action_log::actions;
pub(crate) use ahead::{ahead, count_ahead_to_limit, load_open_times};
pub(crate) use batch_actions::try_again;
pub(crate) use details::{
    details, find, find_by_prefix, find_by_transaction, open_batches, serialized_batch,
};
pub(crate) use different_states::{services_with_different_states, set_states_differ};
pub(crate) use drain::set_draining;
pub(crate) use held::{held_batches, waiting_holds, waiting_holds_of, with_waiting_hold};
pub(crate) use list::{count, depth, depths, list};
pub(crate) use open_states::open_states;
pub use open_states::{OpenState, OpenStates};
pub(crate) use page::batch_page;
pub(crate) use pauses::pauses;
pub(crate) use queue_counts::queue_counts;
pub use queue_counts::{FullQueue, QueueCounts};
pub(crate) use retention::{count_removable, remove_ended, start_retention};
pub use retry::EndedDelays;
pub(crate) use retry::end_delays;
pub use service_counts::ServiceCounts;
pub(crate) use service_counts::service_counts;
pub(crate) use services::{claims, count_claims, instances, service, services};
pub(crate) use tokens::{create_token, note_token_use, revoke_token, tokens, unrevoked_tokens};
