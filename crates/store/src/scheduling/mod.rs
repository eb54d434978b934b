//! Which open batches of a service may be under way together, for ledgers that refuse access to anything that
//! transactions do not declare.
//!
//! At intake, the declared addresses of a batch are stored in an index (`declared_addresses`). While a batch is in no
//! lane, it is in `waiting_batches`, with the one earlier batch that must end before it. The strategy of the service, a
//! rule of core, is applied when lanes are filled (`lanes`) and when a round is taken, so that it can be changed by a
//! restart.
//!
//! A batch that depends on a transaction of another one waits for it (`dependencies`). While a transaction is missing,
//! the batch has no position in the order of its service, so that it stops no other batch (`evaluate`, and the folder
//! `missing`). If only an invalid batch has the transaction, the ledger decides. An invalid batch may stop others (the
//! folder `halts`).
//!
//! An open batch of such a service is in a lane or in `waiting_batches`. Everything here runs under the
//! lock of the service.
//!
//! The arguments of each function of `Strategy` come from these statements:
//!
//! - `room`: `load_lanes`.
//! - `may_follow`: `first_waiting` if the order is kept, otherwise `first_free` and, for lists, `first_waiting_blocked`.
//!   The blocker was found when the batch was stored or evaluated, by `find_dependencies`, `find_conflicts`,
//!   `find_newest_waiting` and `find_newest_in_lanes`.
//! - `next` and `list`: `round_candidates`.
//! - `is_stopped`: `first_halt`.
//! - `lets_others_go`, after an end: `find_dependents` and `find_dependents_in_lanes`, whose blockers are found again.
//! - `waits_for`: the queries of `operator/wait_reasons.rs`.
//!
//! A service with one lane needs only `install_next_heads` and `round_candidates`.

mod conflicts;
mod dependencies;
mod dependents;
mod evaluate;
mod index;
mod lanes;
mod waiting;

use conflicts::Blocker;
pub(crate) use conflicts::number_of;
pub(crate) use dependencies::Missing;
pub(crate) use dependents::{
    ChangedBlocker, DEPENDENTS_AT_ONCE, Positioned, begin_turns, find_changed, find_dependents,
    find_dependents_in_lanes, find_due_services, find_waiting_of, insert_changed, remove_changed,
};
pub(crate) use evaluate::{
    EndReason, Evaluation, GivenPositions, add_waiting, evaluate, find_missing_of_new,
    give_positions,
};
pub(crate) use index::{PositionedBatch, find_declared, remove_addresses};
pub(crate) use lanes::{InstalledRow, NextBatch, fill_lanes, install_in_lanes, make_lanes};
pub(crate) use waiting::{
    blocked_by, count_incomplete as count_incomplete_of_services, find_waiting_in_order,
    load_positions, remove_waiting, write_blockers,
};
