use std::time::Duration;

use grid_batch_core::{MonotonicTime, ServiceId};
use log::warn;

use super::{
    answer::{self, SendResult},
    attempt::SendAttempt,
};
use crate::memory::Memory;

impl SendAttempt<'_> {
    /// Parks the withdrawal while a node has pending transactions of the account that are not stored.
    ///
    /// They may be payments that are missing because the database is an older copy. If a withdrawal got the nonce of
    /// another one, both its old and its new transaction could be mined, and it would be paid twice.
    pub(super) async fn check_unknown_pending(&self, count: u64) -> SendResult<()> {
        let pending = self.node.pending_count(self.admin).await.map_err(answer::node_failed)?;
        let next = self.context.store.next_nonce(self.service_id()).await;
        let known = next.map_err(answer::store_failed)?.unwrap_or_default().max(count);
        let at_others = self.account().highest_pending_at_others(&self.node).await;
        let pending = pending.unwrap_or_default().max(at_others);
        let log = &self.context.unknown_pending;
        let now = self.context.monotonic();
        let is_late = log.is_late(self.service_id(), pending > known, now);
        if pending <= known {
            return Ok(());
        }
        let reason = format!(
            "a node has {} pending transactions of the gas admin that are not stored, from nonce {known} \
             on; waiting until they are mined or dropped. If their price is too low, use up nonce {known} with \
             a transfer of 1 wei to another account that pays more",
            pending - known
        );
        if is_late {
            warn!(service:% = self.service_id(), reason = reason.as_str(); "transactions have been parked for a while");
        }
        Err(self.parked(reason))
    }
}

/// For each service, since when nodes have had pending transactions that are not stored, and whether this was logged.
#[derive(Debug, Default)]
pub(crate) struct UnknownPendingLog(Memory<ServiceId, Option<(MonotonicTime, bool)>>);

impl UnknownPendingLog {
    /// How long they must exist before they are logged.
    const LOGGED_AFTER: Duration = Duration::from_secs(120);

    /// Records whether there are such transactions. Returns whether they have existed for a while and must be logged.
    fn is_late(&self, service_id: &ServiceId, has_unknown: bool, now: MonotonicTime) -> bool {
        self.0.with(service_id, |unknown| {
            if !has_unknown {
                *unknown = None;
                return false;
            }
            let (since, is_logged) = unknown.get_or_insert((now, false));
            let is_late = !*is_logged && now.since(*since) >= Self::LOGGED_AFTER;
            *is_logged |= is_late;
            is_late
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_transactions_are_logged_once_after_a_while() {
        let log = UnknownPendingLog::default();
        let service: ServiceId = "account".parse().unwrap();
        let is_late = |has_unknown, seconds| {
            let now = MonotonicTime::default().plus(Duration::from_secs(seconds));
            log.is_late(&service, has_unknown, now)
        };
        let answers = [0, 119, 120, 121].map(|seconds| is_late(true, seconds));
        assert_eq!(answers, [false, false, true, false]);
        assert!(!is_late(false, 122));
        assert_eq!([130, 250].map(|seconds| is_late(true, seconds)), [false, true]);
    }
}
