//! The public methods of [`Store`] that write batches and withdrawals. Those that operators read
//! with are in `operator` and in `withdrawals::{details, list, rewards}`.

use grid_batch_core::{AddOutcome, BatchConflict, Change, ChangeOutcome, NewBatch};
use grid_batch_withdrawals::{
    CancelOutcome, RetryOutcome, Withdrawal, WithdrawalConflict, WithdrawalId,
};

use crate::{Store, StoreError, batch, intake, withdrawals};

impl Store {
    /// Stores lists of batches, all in one commit: each list whole or, on a conflict, not at all.
    ///
    /// The batches of one service are queued in the given order, after all batches that were
    /// committed before.
    ///
    /// ```no_run
    /// # use grid_batch_core::NewBatch;
    /// # fn example(store: grid_batch_store::Store, list: &[NewBatch]) -> Result<(), Box<dyn std::error::Error>> {
    /// for outcomes in store.add(&[list])? {
    ///     println!("{} batches are stored", outcomes?.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn add(
        &self,
        lists: &[&[NewBatch]],
    ) -> Result<Vec<Result<Vec<AddOutcome>, BatchConflict>>, StoreError> {
        intake::add(self, lists)
    }

    /// Records changes of batches in one commit, and returns the outcome of each. When a batch ends,
    /// the next one of its service becomes its head.
    pub fn record(&self, changes: &[Change]) -> Result<Vec<ChangeOutcome>, StoreError> {
        batch::record(self, changes)
    }

    /// Stores withdrawals, each with its first batch, all in one commit, except those whose id
    /// another withdrawal has. The batches are queued as [`add`](Self::add) does.
    ///
    /// There is at most one withdrawal with an id, however many requests come at once. If the id is
    /// derived from what may be paid only once, no other lock is needed.
    ///
    /// ```no_run
    /// # use grid_batch_withdrawals::Withdrawal;
    /// # use grid_batch_core::AddOutcome;
    /// # fn example(store: grid_batch_store::Store, withdrawal: Withdrawal) -> Result<(), Box<dyn std::error::Error>> {
    /// for outcome in store.schedule(&[withdrawal])? {
    ///     match outcome? {
    ///         AddOutcome::Stored => println!("scheduled"),
    ///         AddOutcome::AlreadyStored => println!("was scheduled before, and is paid once"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn schedule(
        &self,
        withdrawals: &[Withdrawal],
    ) -> Result<Vec<Result<AddOutcome, WithdrawalConflict>>, StoreError> {
        withdrawals::schedule(self, withdrawals)
    }

    /// Requests that a withdrawal is cancelled, if that is still possible. The end of its batch
    /// shows whether it was.
    pub fn cancel_withdrawal(&self, id: &WithdrawalId) -> Result<CancelOutcome, StoreError> {
        withdrawals::cancel_withdrawal(self, id)
    }

    /// Retries a failed withdrawal with another batch. Of two requests at the same time, one starts
    /// the retry.
    ///
    /// While a transaction of an earlier generation may be paid, no other is signed.
    pub fn retry_withdrawal(&self, id: &WithdrawalId) -> Result<RetryOutcome, StoreError> {
        withdrawals::retry_withdrawal(self, id)
    }
}
