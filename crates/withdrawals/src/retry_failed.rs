use std::collections::BTreeSet;

use grid_batch_core::{BatchResult, ServiceId, Timestamp};

use crate::{PaymentLimitError, RetryOutcome, Withdrawal, WithdrawalId, WithdrawalStore};

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
    /// Withdrawals that were not retried, because of a payment limit.
    pub refused: Vec<(FailedWithdrawal, PaymentLimitError)>,
    /// Whether there are more.
    pub has_more: bool,
}

impl FailedFilter {
    /// Whether it selects all.
    pub fn selects_all(&self) -> bool {
        *self == Self::default()
    }

    /// The first failed withdrawals that this selects, at most `limit`.
    pub fn find(
        &self,
        store: &dyn WithdrawalStore,
        limit: usize,
    ) -> BatchResult<FailedWithdrawals> {
        let mut found = Vec::new();
        let mut after: Option<WithdrawalId> = None;
        loop {
            let page = store.failed_withdrawals(self, after.as_ref(), PAGE)?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|last| last.withdrawal.id);
            found.extend(page.into_iter().filter(|failed| self.has_reason(failed)));
            if is_last || found.len() > limit {
                break;
            }
        }
        let has_more = found.len() > limit;
        found.truncate(limit);
        Ok(FailedWithdrawals { withdrawals: found, refused: Vec::new(), has_more })
    }

    /// Retries the failed withdrawals that this selects, at most `limit`, each in a commit of its own.
    /// Returns those that were retried, and those that a payment limit refused.
    ///
    /// Of two calls at the same time, one retries a withdrawal. After an error, those before it are
    /// retried; a call with the same filter continues.
    pub fn retry(
        &self,
        store: &dyn WithdrawalStore,
        limit: usize,
    ) -> BatchResult<FailedWithdrawals> {
        let mut done = FailedWithdrawals::default();
        let mut full_pools: BTreeSet<String> = BTreeSet::new();
        let mut after: Option<WithdrawalId> = None;
        loop {
            let page = store.failed_withdrawals(self, after.as_ref(), PAGE)?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|last| last.withdrawal.id);
            for failed in page.into_iter().filter(|failed| self.has_reason(failed)) {
                if full_pools.contains(&failed.withdrawal.pool) {
                    continue;
                }
                if done.withdrawals.len() == limit {
                    done.has_more = true;
                    return Ok(done);
                }
                match store.retry_withdrawal(&failed.withdrawal.id)? {
                    RetryOutcome::Scheduled { .. } => done.withdrawals.push(failed),
                    RetryOutcome::PaymentLimit(error) => {
                        if let PaymentLimitError::Day { pool, .. } = &error {
                            full_pools.insert(pool.clone());
                        }
                        done.refused.push((failed, error));
                    }
                    // It was retried meanwhile, or removed.
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
