//! The store as the crates above know it: the traits of core and of the withdrawals.

use grid_batch_core::{
    AddOutcome, BatchConflict, BatchDetails, BatchFilter, BatchQueryStore, BatchResult, HeaderId,
    IntakeStore, NewBatch, PageCursor, ServiceId, StoredBatch,
};
use grid_batch_withdrawals::{
    CancelOutcome, RetryOutcome, Reward, RewardConflict, RewardId, Withdrawal, WithdrawalConflict,
    WithdrawalDetails, WithdrawalFilter, WithdrawalId, WithdrawalStore,
};

use crate::Store;

impl IntakeStore for Store {
    fn add(
        &self,
        lists: &[&[NewBatch]],
    ) -> BatchResult<Vec<Result<Vec<AddOutcome>, BatchConflict>>> {
        Ok(Self::add(self, lists)?)
    }
}

impl BatchQueryStore for Store {
    fn find(&self, batch_id: &HeaderId) -> BatchResult<Vec<StoredBatch>> {
        Ok(Self::find(self, batch_id)?)
    }

    fn details(
        &self,
        service_id: &ServiceId,
        batch_id: &HeaderId,
    ) -> BatchResult<Option<BatchDetails>> {
        Ok(Self::details(self, service_id, batch_id)?)
    }

    fn list(
        &self,
        filter: &BatchFilter,
        after: Option<&PageCursor>,
        limit: usize,
    ) -> BatchResult<Vec<StoredBatch>> {
        Ok(Self::list(self, filter, after, limit)?)
    }

    fn count(&self, filter: &BatchFilter) -> BatchResult<u64> {
        Ok(Self::count(self, filter)?)
    }
}

impl WithdrawalStore for Store {
    fn schedule(
        &self,
        withdrawals: &[Withdrawal],
    ) -> BatchResult<Vec<Result<AddOutcome, WithdrawalConflict>>> {
        Ok(Self::schedule(self, withdrawals)?)
    }

    fn withdrawal(&self, id: &WithdrawalId) -> BatchResult<Option<WithdrawalDetails>> {
        Ok(Self::withdrawal(self, id)?)
    }

    fn withdrawals(
        &self,
        filter: &WithdrawalFilter,
        before: Option<&WithdrawalId>,
        limit: usize,
    ) -> BatchResult<Vec<WithdrawalDetails>> {
        Ok(Self::withdrawals(self, filter, before, limit)?)
    }

    fn cancel_withdrawal(&self, id: &WithdrawalId) -> BatchResult<CancelOutcome> {
        Ok(Self::cancel_withdrawal(self, id)?)
    }

    fn retry_withdrawal(&self, id: &WithdrawalId) -> BatchResult<RetryOutcome> {
        Ok(Self::retry_withdrawal(self, id)?)
    }

    fn add_reward(&self, reward: &Reward) -> BatchResult<Result<AddOutcome, RewardConflict>> {
        Ok(Self::add_reward(self, reward)?)
    }

    fn reward(&self, id: &RewardId) -> BatchResult<Option<Reward>> {
        Ok(Self::reward(self, id)?)
    }
}
