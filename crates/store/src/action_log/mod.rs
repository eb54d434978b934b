//! The log of operators' actions.

mod logged;
mod rows;

pub(crate) use logged::{Logged, dry_run, in_transaction, logged};
pub(crate) use rows::{actions, last_action, record_action, record_actions};
