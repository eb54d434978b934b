//! Which batches services have ever committed, for ledgers that apply a batch again when it arrives again.

mod declared_new;
mod facts;
mod past_transactions;

pub(crate) use declared_new::{declare_new, insert_declared_new};
pub(crate) use facts::{forget_histories, is_history_known, read_history, set_history_known};
pub(crate) use past_transactions::{add_applied, find_past_transactions, keep_past_transactions};
