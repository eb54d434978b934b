use std::{collections::BTreeSet, sync::Arc};

use grid_batch_core::{BatchResult, ServiceId};
use grid_batch_withdrawals::{
    Call, ScheduleOutcome, Withdrawal, WithdrawalConflict, WithdrawalStore,
};

use crate::{
    group_commit::{GroupSize, GroupStore, WriteQueue},
    state::StoredCallback,
};

/// Whether a withdrawal was scheduled.
pub(crate) type ScheduleAnswer = Result<ScheduleOutcome, WithdrawalConflict>;

/// The queue of the writer of withdrawals. What waits in it is small, except for the data of calls: all texts are in
/// their canonical form.
pub(crate) type WithdrawalQueue = WriteQueue<Withdrawal, ScheduleAnswer>;

/// Schedules groups of withdrawals, and tells of the gas admins that have new ones.
pub(crate) struct WithdrawalGroupStore {
    pub(crate) store: Arc<dyn WithdrawalStore>,
    pub(crate) stored: StoredCallback,
}

impl GroupStore for WithdrawalGroupStore {
    type Item = Withdrawal;
    type Answer = ScheduleAnswer;

    const ITEMS: &'static str = "withdrawals";

    fn size(withdrawal: &Withdrawal) -> GroupSize {
        let length =
            |call: &Call| call.data.len() + call.abi.iter().map(String::len).sum::<usize>();
        let bytes = withdrawal.call.as_ref().map_or(0, length);
        GroupSize { batches: 1, bytes }
    }

    fn store(&self, withdrawals: &[Withdrawal]) -> BatchResult<Vec<ScheduleAnswer>> {
        let answers = self.store.schedule(withdrawals)?;
        let services: BTreeSet<&ServiceId> = withdrawals
            .iter()
            .zip(&answers)
            .filter(|(_, answer)| matches!(answer, Ok(ScheduleOutcome::Stored { .. })))
            .map(|(withdrawal, _)| &withdrawal.service_id)
            .collect();
        if !services.is_empty() {
            self.stored.notify(&Vec::from_iter(services.into_iter().cloned()));
        }
        Ok(answers)
    }
}
