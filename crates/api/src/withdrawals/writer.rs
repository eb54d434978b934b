use std::{collections::BTreeSet, sync::Arc};

use grid_batch_core::{BatchResult, ServiceId};
use grid_batch_withdrawals::{ScheduleOutcome, Withdrawal, WithdrawalConflict, WithdrawalStore};

use crate::{
    group_commit::{GroupSize, GroupStore, WriteQueue},
    state::StoredCallback,
};

/// Whether a withdrawal was scheduled.
pub(crate) type ScheduleAnswer = Result<ScheduleOutcome, WithdrawalConflict>;

/// The queue of the writer of withdrawals. What waits in it is small: all texts are in their canonical
/// form.
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

    fn size(_: &Withdrawal) -> GroupSize {
        GroupSize { batches: 1, bytes: 0 }
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
