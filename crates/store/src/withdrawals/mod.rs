//! Withdrawals: each is tried by one batch at a time, through the same queue as any other.

mod cancel;
mod list;
mod retry;
mod rewards;
pub(crate) mod rows;
mod schedule;
mod story;

use grid_batch_core::NewBatch;
use grid_batch_withdrawals::Withdrawal;

/// The batch by which a withdrawal is tried for the `generation`th time. Its bytes say what it is
/// about; what is sent is signed when it is its turn.
fn batch_of(withdrawal: &Withdrawal, generation: u32) -> NewBatch {
    let Withdrawal { pool, beneficiary, amount, .. } = withdrawal;
    NewBatch {
        service_id: withdrawal.service_id.clone(),
        batch_id: withdrawal.id.batch_id(generation),
        transaction_ids: Vec::new(),
        serialized_batch: format!("{pool} {beneficiary} {amount}").into_bytes(),
    }
}
