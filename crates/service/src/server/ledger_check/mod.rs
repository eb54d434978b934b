//! Asks the nodes which ledger they belong to, and reports the answers to the node pool, which decides which nodes are
//! used.
//!
//! The database is bound to one ledger (decision 5). No services are claimed until a node has confirmed
//! that it belongs to it. A node that has not confirmed it is sent nothing and asked nothing else. A
//! node of another ledger is not used, and if all are, the server ends.

mod check;
mod checked_claims;
mod mismatch;
#[cfg(test)]
mod tests;
mod watch;

pub(super) use check::LedgerCheck;
pub(super) use checked_claims::CheckedClaims;
pub use mismatch::LedgerMismatchError;
pub(super) use watch::{start, wait_for_answers};
