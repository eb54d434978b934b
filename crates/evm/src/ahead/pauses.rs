use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use grid_batch_core::{ItemId, MonotonicTime, ServiceId};

/// The withdrawals that could not be signed ahead, each with when. They are tried again after a while,
/// or by their own attempt.
#[derive(Debug, Default)]
pub(crate) struct AheadPauses(Mutex<HashMap<ServiceId, (ItemId, MonotonicTime)>>);

impl AheadPauses {
    /// Records that this withdrawal is the first that could not be signed.
    pub(crate) fn begin(&self, service_id: &ServiceId, batch_id: ItemId, now: MonotonicTime) {
        let mut pauses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pauses.insert(service_id.clone(), (batch_id, now));
    }

    /// Ends the pause of a service: its withdrawal was signed.
    pub(crate) fn end(&self, service_id: &ServiceId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(service_id);
    }

    /// Whether this withdrawal could not be signed less than `length` ago.
    pub(crate) fn contains(
        &self,
        service_id: &ServiceId,
        batch_id: ItemId,
        now: MonotonicTime,
        length: Duration,
    ) -> bool {
        let pauses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pauses
            .get(service_id)
            .is_some_and(|(paused, since)| *paused == batch_id && now.since(*since) < length)
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
