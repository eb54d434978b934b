//! Which batches services have ever committed, for ledgers that apply a batch again if it arrives again.

mod commit_history;
mod past_transactions;

pub(crate) use commit_history::{declare_new, forget_histories, insert_declared_new};
pub(crate) use past_transactions::{find_past_transactions, keep_past_transactions};
