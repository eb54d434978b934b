use std::time::Duration;

use grid_batch_core::{ItemId, MonotonicTime, ServiceId};

use crate::memory::Memory;

/// The withdrawals that could not be signed ahead, each with the time. They are tried again after a while, or by their
/// own attempt.
#[derive(Debug, Default)]
pub(crate) struct AheadPauses(Memory<ServiceId, Option<(ItemId, MonotonicTime)>>);

impl AheadPauses {
    /// Records that this withdrawal is the first that could not be signed.
    pub(crate) fn begin(&self, service_id: &ServiceId, batch_id: ItemId, now: MonotonicTime) {
        self.0.with(service_id, |pause| *pause = Some((batch_id, now)));
    }

    /// Ends the pause of a service, because its withdrawal was signed.
    pub(crate) fn end(&self, service_id: &ServiceId) {
        self.0.with(service_id, |pause| *pause = None);
    }

    /// Whether this withdrawal could not be signed less than `length` ago.
    pub(crate) fn contains(
        &self,
        service_id: &ServiceId,
        batch_id: ItemId,
        now: MonotonicTime,
        length: Duration,
    ) -> bool {
        let pause = self.0.with(service_id, |pause| *pause);
        pause.is_some_and(|(paused, since)| paused == batch_id && now.since(since) < length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_is_about_one_withdrawal_and_ends() {
        let pauses = AheadPauses::default();
        let service: ServiceId = "account".parse().unwrap();
        let [batch, other] = [1, 2].map(|byte| ItemId::from_bytes([byte; 64]));
        let second = Duration::from_secs(1);
        let start = MonotonicTime::default();
        pauses.begin(&service, batch, start);
        assert!(pauses.contains(&service, batch, start, second));
        assert!(!pauses.contains(&service, other, start, second));
        assert!(!pauses.contains(&service, batch, start.plus(second), second));
        pauses.end(&service);
        assert!(!pauses.contains(&service, batch, start, second));
    }
}
