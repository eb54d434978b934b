//! Asks the nodes which ledger they belong to, and keeps the server away from those of another one.
//!
//! The database is bound to one ledger (decision 16). No services are claimed until a node has confirmed
//! that it belongs to it. A node that has not confirmed it is sent nothing and asked nothing else. A
//! node of another ledger is not used, and if all are, the server ends.

mod check;
mod checked_claims;
mod checked_events;
mod checked_evidence;
mod checked_sender;
mod checked_statuses;
mod mismatch;
mod refused_services;
mod report;
#[cfg(test)]
mod tests;
mod waiting_services;
mod watch;

pub(super) use check::{LedgerCheck, LedgerCheckOptions};
pub(super) use checked_claims::CheckedClaims;
pub(super) use checked_events::CheckedEvents;
pub(super) use checked_evidence::CheckedEvidenceReader;
pub(super) use checked_sender::CheckedSender;
pub(super) use checked_statuses::CheckedStatusReader;
pub use mismatch::LedgerMismatchError;
pub(super) use watch::RunningLedgerCheck;
