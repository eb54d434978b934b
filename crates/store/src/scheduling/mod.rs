//! Which open batches of a service may be under way together, where the ledger refuses access outside of
//! what transactions declare.
//!
//! What a batch declares is stored at intake: its addresses in an index (`declared_addresses`), and the
//! batch itself, while it is in no lane, in `waiting_batches` with the one earlier batch that must end
//! before it. Policy is applied when lanes are filled, so that a strategy can be changed by a restart.
//!
//! A batch that depends on a transaction of another one waits for it (`dependencies`, `holders`). While a
//! transaction is missing, the batch has no position in the order of its service, so that it stops no other
//! one (`missing`, `new_positions`). If only an invalid batch has the transaction, the ledger decides. An
//! invalid batch may stop others (`halts`).
//!
//! An open batch of such a service is in a lane or in `waiting_batches`. Everything here runs under the
//! lock of the service.

mod access;
mod changed;
mod conflicts;
mod dependencies;
mod dependents;
mod evaluate;
mod fill;
mod following;
mod halts;
mod halts_to_finish;
mod holders;
mod index;
mod intake;
mod lanes;
mod lengths;
mod lookups;
mod missing;
mod new_positions;
mod newest;
mod positioned;
mod turns;
mod waiting;

pub(crate) use changed::{ChangedBlocker, find_changed, insert_changed, remove_changed};
use conflicts::Blocker;
pub(crate) use dependencies::Missing;
pub(crate) use dependents::{Positioned, find_dependents, find_waiting_of};
pub(crate) use evaluate::{EndReason, Evaluation, evaluate};
pub(crate) use fill::{InstalledRow, fill_lanes};
pub(crate) use following::{InLane, find_in_lanes, find_open_behind};
pub(crate) use halts::{
    Halt, HaltOrigin, first_halt, insert_halts, load_halt, remove_halts, set_ends_until,
};
pub(crate) use halts_to_finish::{
    find_ending, find_without_policy, next_service_that_ends, next_service_without_policy,
    set_policy_applied, set_position,
};
pub(crate) use index::{find_declared, remove_addresses};
pub(crate) use intake::{add_waiting, find_missing_of_new};
pub(crate) use lanes::{NextBatch, install_in_lanes, make_lanes};
pub(crate) use lookups::{
    Lookup, find_due, find_signers, load_lag, look_up_again, mark_asked, remove_unneeded,
    transaction_ids,
};
pub(crate) use missing::{
    IncompleteBatch, count_of_signers as count_missing_of_signers, end_holds, find_arrived,
    find_missing_dependents, find_overdue, find_that_ask, find_that_miss, find_waited_for,
    insert as insert_missing, mark_found, mark_overdue, release_overdue, remove as remove_missing,
};
pub(crate) use new_positions::{GivenPositions, give_positions};
pub(crate) use positioned::PositionedBatch;
pub(crate) use turns::{DEPENDENTS_AT_ONCE, begin_turns, find_due_services};
pub(crate) use waiting::{
    blocked_by, count_incomplete as count_incomplete_of_services, find_waiting_in_order,
    load_positions, remove_waiting, write_blockers,
};
