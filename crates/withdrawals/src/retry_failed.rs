use grid_batch_core::operators::OperatorRequest;
use grid_batch_core::{BatchError, BatchResult, ServiceId, Timestamp};

use crate::{Amount, PaymentLimitError, RetryOutcome, Withdrawal, WithdrawalId, WithdrawalStore};

/// How many failed withdrawals are read at once.
const PAGE: usize = 500;

/// Selects failed withdrawals. The default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailedFilter {
    /// Only withdrawals from this pool.
    pub pool: Option<String>,
    /// Only withdrawals of this service.
    pub service_id: Option<ServiceId>,
    /// Only withdrawals that failed at this time or later.
    pub failed_since: Option<Timestamp>,
    /// Only withdrawals whose reason contains this text.
    pub reason_contains: Option<String>,
}

/// A withdrawal that has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedWithdrawal {
    /// The withdrawal.
    pub withdrawal: Withdrawal,
    /// When it failed.
    pub failed_at: Timestamp,
    /// Why it failed.
    pub fail_reason: String,
}

/// Some failed withdrawals, in the order in which they were scheduled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailedWithdrawals {
    /// The withdrawals.
    pub withdrawals: Vec<FailedWithdrawal>,
    /// Withdrawals that a payment limit refuses, at most [`Self::MAX_REFUSED`].
    pub refused: Vec<(FailedWithdrawal, PaymentLimitError)>,
    /// How many withdrawals a payment limit refuses.
    pub refused_count: u64,
    /// Whether more match than were examined.
    pub has_more: bool,
}

impl FailedFilter {
    /// Whether it selects all.
    pub fn selects_all(&self) -> bool {
        *self == Self::default()
    }

    /// What [`retry`](Self::retry) would do if nothing else is scheduled meanwhile. Nothing is changed.
    pub fn find(
        &self,
        store: &dyn WithdrawalStore,
        limit: usize,
    ) -> BatchResult<FailedWithdrawals> {
        let retry = |_: &WithdrawalId| Ok(RetryOutcome::Scheduled { generation: 0 });
        self.retry_with(store, limit, &retry)
    }

    /// Retries at most `limit` of the selected failed withdrawals, each in its own commit. Those that a payment limit
    /// refuses do not count.
    ///
    /// If there are two calls at the same time, only one of them retries each withdrawal. After an error, earlier
    /// withdrawals have been retried, and a call with the same filter continues.
    pub fn retry(
        &self,
        store: &dyn WithdrawalStore,
        limit: usize,
        request: &OperatorRequest,
    ) -> BatchResult<FailedWithdrawals> {
        self.retry_with(store, limit, &|id| store.retry_withdrawal(id, request))
    }

    fn retry_with(
        &self,
        store: &dyn WithdrawalStore,
        limit: usize,
        retry: &dyn Fn(&WithdrawalId) -> BatchResult<RetryOutcome>,
    ) -> BatchResult<FailedWithdrawals> {
        // Refused withdrawals need no transaction of their own.
        let mut budget = store.payment_budget()?;
        let mut done = FailedWithdrawals::default();
        let mut after: Option<WithdrawalId> = None;
        loop {
            let page = store.failed_withdrawals(self, after.as_ref(), PAGE)?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|last| last.withdrawal.id);
            for failed in page.into_iter().filter(|failed| self.has_reason(failed)) {
                if done.withdrawals.len() == limit {
                    done.has_more = true;
                    return Ok(done);
                }
                let Withdrawal { id, pool, .. } = &failed.withdrawal;
                let amount = amount_of(&failed.withdrawal)?;
                if let Err(error) = budget.check(pool, &amount) {
                    done.refuse(failed, error);
                    continue;
                }
                match retry(id)? {
                    RetryOutcome::Scheduled { .. } => {
                        budget.take(pool, &amount);
                        done.withdrawals.push(failed);
                    }
                    RetryOutcome::PaymentLimit(error) => {
                        budget = store.payment_budget()?;
                        done.refuse(failed, error);
                    }
                    // It was retried or removed meanwhile.
                    RetryOutcome::NotFailed { .. } | RetryOutcome::NotFound => {}
                }
            }
            if is_last {
                return Ok(done);
            }
        }
    }

    fn has_reason(&self, failed: &FailedWithdrawal) -> bool {
        let text = self.reason_contains.as_deref();
        text.is_none_or(|text| failed.fail_reason.contains(text))
    }
}

impl FailedWithdrawals {
    /// Limit on the number of refused withdrawals that are named.
    pub const MAX_REFUSED: usize = 1_000;

    fn refuse(&mut self, failed: FailedWithdrawal, error: PaymentLimitError) {
        self.refused_count += 1;
        if self.refused.len() < Self::MAX_REFUSED {
            self.refused.push((failed, error));
        }
    }
}

/// The amount of a withdrawal, which is stored as text.
fn amount_of(withdrawal: &Withdrawal) -> BatchResult<Amount> {
    let corrupt = |error| {
        BatchError::InternalError(format!("the amount of {} is invalid: {error}", withdrawal.id))
    };
    withdrawal.amount.parse().map_err(corrupt)
}
