use grid_batch_core::ServiceId;
use tokio::sync::broadcast;

/// Wakes the tasks that wait for events of a service when a transaction of the service was sent. Clones wake the same
/// receivers.
///
/// A wake-up only saves time: it may be lost.
#[derive(Debug, Clone)]
pub(crate) struct HeadWakeUp(broadcast::Sender<ServiceId>);

/// The wake-ups of one service.
#[derive(Debug)]
pub(super) struct ServiceWakeUps {
    service_id: String,
    receiver: broadcast::Receiver<ServiceId>,
}

impl HeadWakeUp {
    const CAPACITY: usize = 256;

    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(Self::CAPACITY))
    }

    /// Reports that a transaction of this service was sent to a node.
    pub(crate) fn sent(&self, service_id: &ServiceId) {
        // An error means that there is no receiver.
        let _ = self.0.send(service_id.clone());
    }

    pub(super) fn of_service(&self, service_id: &str) -> ServiceWakeUps {
        ServiceWakeUps { service_id: service_id.to_owned(), receiver: self.0.subscribe() }
    }

    /// The wake-ups of any service.
    pub(super) fn of_all(&self) -> broadcast::Receiver<ServiceId> {
        self.0.subscribe()
    }
}

impl ServiceWakeUps {
    /// Waits until a transaction of the service was sent. A lost wake-up counts, because it may have been for this
    /// service.
    pub(super) async fn next(&mut self) {
        loop {
            match self.receiver.recv().await {
                Ok(sent) if sent.as_str() != self.service_id => {}
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return,
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn service_is_woken_by_its_own_transactions_only() {
        let wake_up = HeadWakeUp::new();
        let mut of_a = wake_up.of_service("a");
        let second = Duration::from_secs(1);
        wake_up.sent(&"b".parse().unwrap());
        assert!(timeout(second, of_a.next()).await.is_err());
        wake_up.sent(&"a".parse().unwrap());
        assert!(timeout(second, of_a.next()).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn lost_wake_ups_count_as_one_of_the_service() {
        let wake_up = HeadWakeUp::new();
        let mut of_a = wake_up.of_service("a");
        let other: ServiceId = "b".parse().unwrap();
        (0..=HeadWakeUp::CAPACITY).for_each(|_| wake_up.sent(&other));
        assert!(timeout(Duration::from_secs(1), of_a.next()).await.is_ok());
    }
}
