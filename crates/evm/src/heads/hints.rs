use grid_batch_core::ServiceId;
use tokio::sync::broadcast;

/// Announces the services of which something was sent. Clones announce to the same receivers.
///
/// An announcement only saves time: it may be lost.
#[derive(Debug, Clone)]
pub(crate) struct Hints(broadcast::Sender<ServiceId>);

/// The announcements of one service.
#[derive(Debug)]
pub(super) struct ServiceHints {
    service_id: String,
    receiver: broadcast::Receiver<ServiceId>,
}

impl Hints {
    const CAPACITY: usize = 256;

    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(Self::CAPACITY))
    }

    /// Something of this service was sent to a node.
    pub(crate) fn sent(&self, service_id: &ServiceId) {
        // An error means that there is no receiver.
        let _ = self.0.send(service_id.clone());
    }

    pub(super) fn of_service(&self, service_id: &str) -> ServiceHints {
        ServiceHints { service_id: service_id.to_owned(), receiver: self.0.subscribe() }
    }

    /// Announcements of any service.
    pub(super) fn of_all(&self) -> broadcast::Receiver<ServiceId> {
        self.0.subscribe()
    }
}

impl ServiceHints {
    /// Waits until something of the service was sent. Lost announcements may have been about it.
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
    async fn service_is_told_of_its_own_transactions_only() {
        let hints = Hints::new();
        let mut of_a = hints.of_service("a");
        let second = Duration::from_secs(1);
        hints.sent(&"b".parse().unwrap());
        assert!(timeout(second, of_a.next()).await.is_err());
        hints.sent(&"a".parse().unwrap());
        assert!(timeout(second, of_a.next()).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn lost_announcements_count_as_one_of_the_service() {
        let hints = Hints::new();
        let mut of_a = hints.of_service("a");
        let other: ServiceId = "b".parse().unwrap();
        (0..=Hints::CAPACITY).for_each(|_| hints.sent(&other));
        assert!(timeout(Duration::from_secs(1), of_a.next()).await.is_ok());
    }
}
