//! Asks the nodes which ledger they belong to, and keeps the server away from those of another one.
//!
//! The database is bound to one ledger (decision 16). No services are claimed until a node has confirmed
//! that it belongs to it. A node that has not confirmed it is sent nothing and asked nothing else. A
//! node of another ledger is not used, and if all are, the server ends.

mod check;
mod checked_claims;
mod checked_ledger;
mod mismatch;
mod refused_services;
mod report;
#[cfg(test)]
mod tests;
mod waiting_services;
mod watch;

pub(super) use check::{LedgerCheck, LedgerCheckOptions};
pub(super) use checked_claims::CheckedClaims;
pub use mismatch::LedgerMismatchError;
pub(super) use watch::RunningLedgerCheck;
