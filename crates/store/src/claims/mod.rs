//! The claims of one instance among several on one database.
//!
//! # The order of locks
//!
//! 0. the row of `ledger`: shared while an instance confirms it
//! 1. rows of `instances`: the instance's own row is shared; rows of expired instances are shared,
//!    and skipped if locked
//! 2. rows of `service_id_claims`: skipped if locked, except by what an operator does with one service
//! 3. rows of `services`: skipped if locked by a takeover; locked by all others in the order of ids
//! 4. rows of `lanes`: skipped if locked by taking a round or by a takeover; locked by all others under
//!    the lock of 3
//! 5. rows of `withdrawals` under the lock of 3, and rows of `account_nonces`; no lock follows them
//!
//! Transactions that work on a group of services, or run for requests and submissions, wait for locks only briefly,
//! because a row may be locked for long by a frozen program or by hand, and each waiting transaction uses a connection.
//! See `sql/groups.rs`.
//!
//! Taking a round locks the row of the claim in share mode, and a takeover locks it exclusively. A service therefore
//! does not change its owner while a batch of it is taken, and no batch is taken during a takeover. A takeover reads
//! the lanes only after it has this lock, so that it sees every batch that was taken.

mod instances;
mod ledger;
mod notifications;
mod release;
mod scheduled;
mod take;
mod takeable;
mod takeover;
