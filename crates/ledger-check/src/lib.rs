#![doc = include_str!("../README.md")]

mod check;
mod checked_claims;
mod inspection;
mod mismatch;
mod state_roots;
#[cfg(test)]
mod tests;
mod watch;

pub use check::LedgerCheck;
pub use checked_claims::CheckedClaims;
pub use inspection::{Adoption, LedgerInspection, NodeIdentity};
pub use mismatch::LedgerMismatchError;
pub use state_roots::compare_states;
pub use watch::{ConfirmFn, start, wait_for_answers};
