//! Which attempts are under way, which of them were *called back*, so that they are not sent, and which batches reached
//! no node.
//!
//! The submitter asks directly before each time it sends a batch. An attempt that is called back before it was first
//! sent therefore never reaches the ledger.

use std::mem::replace;

use grid_batch_core::claims::SubmittedBatch;
use grid_batch_core::ledger::AttemptId;
use grid_batch_core::queue::TakenBatch;
use grid_batch_core::{MonotonicTime, ServiceId};

use crate::{Attempt, DueKind, Work, WorkKey, sending::Step};

impl Work {
    /// Records that this attempt was taken from the store.
    pub fn attempt_taken(&mut self, taken: &TakenBatch, now: MonotonicTime) {
        let attempt_id = taken.attempt_id();
        let mut entered = self.enter(taken.service_id.as_str());
        let (key, batch, due) = entered.batch(&taken.batch_id.to_string());
        if batch.sending.attempts.iter().any(|known| known.attempt_id == attempt_id) {
            return;
        }
        let (step, mut taken) = (Step::Waiting, None);
        due.set(&mut taken, DueKind::Attempt, now, key);
        batch.sending.attempts.push(Attempt { attempt_id, step, taken });
    }

    /// Records that this attempt has ended, or that its batch was given back to the store before it was sent.
    pub fn attempt_ended(&mut self, service_id: &str, batch_id: &str, attempt_id: AttemptId) {
        let Some(batch) = self.services.get_mut(service_id) else { return };
        let Some(batch) = batch.batches.get_mut(batch_id) else { return };
        let attempts = &mut batch.sending.attempts;
        if let Some(index) = attempts.iter().position(|known| known.attempt_id == attempt_id) {
            self.due.clear(&mut attempts.swap_remove(index).taken);
            self.remove_unneeded(service_id, Some(batch_id));
        }
    }

    /// Whether the batch may be sent now. If so, it counts as sent from then on. An unknown attempt may be sent.
    pub fn may_send(&mut self, service_id: &str, batch_id: &str, attempt_id: AttemptId) -> bool {
        let Some(known) = self.attempt_mut(service_id, batch_id, attempt_id) else { return true };
        match known.step {
            Step::CalledBack => false,
            Step::Waiting | Step::Sending => {
                known.step = Step::Sending;
                true
            }
        }
    }

    /// Records that a node may have received this attempt of the batch. Returns whether a node may have received the
    /// batch before, as far as this process knows.
    pub fn was_sent_again(&mut self, service_id: &str, batch_id: &str, attempt: u32) -> bool {
        let is_first = attempt == 1 || self.is_first_sent(service_id, batch_id, attempt);
        self.forget_unsent(service_id, batch_id);
        !is_first
    }

    fn forget_unsent(&mut self, service_id: &str, batch_id: &str) {
        if let Some(service) = self.services.get_mut(service_id)
            && let Some(batch) = service.batches.get_mut(batch_id)
            && let Some((_, mut tried)) = batch.sending.unsent.take()
        {
            self.due.clear(&mut tried);
            self.remove_unneeded(service_id, Some(batch_id));
        }
    }

    /// Records that no node has received this attempt of the batch. Only the latest batches are remembered.
    pub fn record_unsent(
        &mut self,
        service_id: &str,
        batch_id: &str,
        attempt: u32,
        now: MonotonicTime,
    ) {
        const LIMIT: usize = 10_000;
        if attempt > 1 && !self.is_first_sent(service_id, batch_id, attempt) {
            return;
        }
        let mut entered = self.enter(service_id);
        let (key, batch, due) = entered.batch(batch_id);
        let (unsent, tried) = batch.sending.unsent.get_or_insert_default();
        *unsent = attempt;
        due.set(tried, DueKind::Unsent, now, key);
        if due.count(DueKind::Unsent) > LIMIT {
            let oldest = due.of(DueKind::Unsent).next().map(|(_, key)| key.clone());
            if let Some(WorkKey { service_id, batch_id: Some(batch_id) }) = oldest {
                self.forget_unsent(&service_id, &batch_id);
            }
        }
    }

    fn is_first_sent(&self, service_id: &str, batch_id: &str, attempt: u32) -> bool {
        let unsent = self.batch(service_id, batch_id).and_then(|it| it.sending.unsent.as_ref());
        unsent.is_some_and(|(unsent, _)| unsent + 1 == attempt)
    }

    /// The services with a batch that waits to be sent, or may be sent to another node.
    pub fn services_to_send(&self) -> Vec<ServiceId> {
        let is_open = |attempt: &Attempt| attempt.step != Step::CalledBack;
        let services = self.due.of(DueKind::Attempt).filter_map(|(_, key)| {
            let batch = self.batch(&key.service_id, key.batch_id.as_deref()?)?;
            batch.sending.attempts.iter().any(is_open).then_some(&key.service_id)
        });
        let mut services: Vec<_> = services.collect();
        services.sort_unstable();
        services.dedup();
        services.into_iter().filter_map(|service_id| service_id.parse().ok()).collect()
    }

    /// Prevents these attempts from being sent, or sent to another node. Returns those that were certainly not sent and
    /// can be given back to the store.
    pub fn call_back(&mut self, attempts: Vec<SubmittedBatch>) -> Vec<SubmittedBatch> {
        let mut is_unsent = |attempt: &SubmittedBatch| {
            let SubmittedBatch { service_id, batch_id, attempt_id } = attempt;
            let batch_id = batch_id.to_string();
            let known = self.attempt_mut(service_id.as_str(), &batch_id, *attempt_id);
            known.is_some_and(|it| replace(&mut it.step, Step::CalledBack) == Step::Waiting)
        };
        attempts.into_iter().filter(|attempt| is_unsent(attempt)).collect()
    }

    fn attempt_mut(
        &mut self,
        service_id: &str,
        batch_id: &str,
        attempt_id: AttemptId,
    ) -> Option<&mut Attempt> {
        let attempts = &mut self.batch_mut(service_id, batch_id)?.sending.attempts;
        attempts.iter_mut().find(|known| known.attempt_id == attempt_id)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grid_batch_core::ItemId;

    use super::*;

    const SERVICE: &str = "circuit::service";

    fn batch(number: u8) -> String {
        ItemId::from_bytes([number; 64]).to_string()
    }

    const fn attempt_id(attempt: u32) -> AttemptId {
        AttemptId { attempt, epoch: 1 }
    }

    fn attempt(number: u8, attempt: u32) -> SubmittedBatch {
        SubmittedBatch {
            service_id: SERVICE.parse().unwrap(),
            batch_id: ItemId::from_bytes([number; 64]),
            attempt_id: attempt_id(attempt),
        }
    }

    fn take(work: &mut Work, number: u8, attempt_number: u32) {
        let taken = TakenBatch::without_bytes(attempt(number, attempt_number));
        work.attempt_taken(&taken, MonotonicTime::default());
    }

    fn may_send(work: &mut Work, number: u8, attempt: u32) -> bool {
        work.may_send(SERVICE, &batch(number), attempt_id(attempt))
    }

    #[test]
    fn attempt_is_called_back_until_it_is_sent() {
        let mut work = Work::default();
        take(&mut work, 1, 1);
        take(&mut work, 2, 1);
        assert_eq!(work.services_to_send(), [SERVICE.parse().unwrap()]);
        assert!(may_send(&mut work, 2, 1));
        assert_eq!(work.call_back(vec![attempt(1, 1), attempt(2, 1)]), [attempt(1, 1)]);
        assert!(!may_send(&mut work, 1, 1));
        assert!(!may_send(&mut work, 2, 1), "not to another node");
        assert_eq!(work.services_to_send(), [], "nothing is left to be called back");
    }

    #[test]
    fn later_attempt_is_not_called_back() {
        let mut work = Work::default();
        take(&mut work, 1, 1);
        work.call_back(vec![attempt(1, 1)]);
        take(&mut work, 1, 2);
        assert!(may_send(&mut work, 1, 2));
        assert!(!may_send(&mut work, 1, 1));
    }

    #[test]
    fn ended_attempts_are_forgotten() {
        let mut work = Work::default();
        take(&mut work, 1, 1);
        work.attempt_ended(SERVICE, &batch(1), attempt_id(1));
        assert_eq!(work.call_back(vec![attempt(1, 1)]), []);
        assert!(work.services.is_empty());
        assert_eq!(work.due.count(DueKind::Attempt), 0);
    }

    #[test]
    fn batch_that_reached_no_node_is_not_sent_again() {
        let (mut work, now) = (Work::default(), MonotonicTime::default());
        let one = &batch(1);
        work.record_unsent(SERVICE, one, 1, now);
        work.record_unsent(SERVICE, one, 2, now);
        assert!(!work.was_sent_again(SERVICE, one, 3));
        assert!(work.was_sent_again(SERVICE, one, 4));
        work.record_unsent(SERVICE, one, 5, now);
        assert!(work.was_sent_again(SERVICE, one, 6));
        assert!(work.services.is_empty());
    }

    #[test]
    fn only_the_last_unsent_batches_are_remembered() {
        let mut work = Work::default();
        for seconds in 0..10_001 {
            let at = MonotonicTime::default().plus(Duration::from_secs(seconds));
            work.record_unsent(SERVICE, &seconds.to_string(), 1, at);
        }
        assert_eq!(work.due.count(DueKind::Unsent), 10_000);
        assert!(work.was_sent_again(SERVICE, "0", 2));
        assert!(!work.was_sent_again(SERVICE, "1", 2));
    }
}
