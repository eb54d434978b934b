use std::{fmt, time::Duration};

use grid_batch_core::{BatchResult, InternalError, ServiceId, WorkNotifications};
use grid_batch_support::PeriodicThread;
use log::{debug, info, warn};

use crate::ChangeFollowUp;

/// Wakes the queue for services of which another instance has stored batches, in a thread of its own.
/// Dropping it ends the thread.
pub struct NotificationListener {
    _thread: PeriodicThread,
}

/// How often notifications are received. It costs a system call, and no statement.
const RECEIVE_INTERVAL: Duration = Duration::from_millis(20);

/// The pause after a failure. Meanwhile the queue finds batches by its scans.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);

impl NotificationListener {
    /// Starts to listen.
    pub fn start(
        mut notifications: impl WorkNotifications + 'static,
        follow_up: ChangeFollowUp,
    ) -> Result<Self, InternalError> {
        let mut is_working = true;
        let receive = move || {
            let received = notifications.receive();
            log_change(&received, &mut is_working);
            match received {
                Ok(services) if services.is_empty() => {}
                Ok(services) => follow_up.stored(&services),
                Err(_) => return PAUSE_AFTER_FAILURE,
            }
            RECEIVE_INTERVAL
        };
        let thread = PeriodicThread::start_with_pauses("notifications", Duration::ZERO, receive)?;
        Ok(Self { _thread: thread })
    }
}

/// Logs the first failure, and the first success after it.
fn log_change(received: &BatchResult<Vec<ServiceId>>, is_working: &mut bool) {
    match received {
        Ok(services) => {
            if !*is_working {
                info!("notifications of other instances are received again");
            }
            if !services.is_empty() {
                debug!(services = services.len(); "other instances have stored batches of these services");
            }
        }
        Err(error) if *is_working => warn!(error:% = error;
            "cannot receive notifications of batches that other instances store; they are found by the next scan \
             (queue.poll_interval)"),
        Err(_) => {}
    }
    *is_working = received.is_ok();
}

impl fmt::Debug for NotificationListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotificationListener").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{SyncSender, sync_channel};

    use grid_batch_core::{
        BatchError,
        mocks::{MockPollTriggers, MockWakeUps},
    };

    use super::*;

    /// Returns these results, and then nothing.
    struct Script(Vec<BatchResult<Vec<ServiceId>>>);

    impl WorkNotifications for Script {
        fn receive(&mut self) -> BatchResult<Vec<ServiceId>> {
            self.0.pop().unwrap_or(Ok(Vec::new()))
        }
    }

    fn follow_up(woken: SyncSender<ServiceId>) -> ChangeFollowUp {
        let mut wake_ups = MockWakeUps::new();
        wake_ups.expect_wake().returning(move |service| woken.send(service.clone()).unwrap());
        ChangeFollowUp::new(wake_ups, MockPollTriggers::new())
    }

    #[test]
    fn services_with_stored_batches_are_woken() {
        let (woken, services) = sync_channel(9);
        let service: ServiceId = "circuit::service".parse().unwrap();
        let script = Script(vec![Ok(vec![service.clone()]), Ok(Vec::new())]);
        let listener = NotificationListener::start(script, follow_up(woken)).unwrap();
        assert_eq!(services.recv(), Ok(service));
        drop(listener);
        assert!(services.recv().is_err(), "its thread has ended");
    }

    #[test]
    fn listener_ends_during_the_pause_after_a_failure() {
        let (woken, services) = sync_channel(9);
        let failure = Err(BatchError::Unavailable("the database".to_owned()));
        drop(NotificationListener::start(Script(vec![failure]), follow_up(woken)).unwrap());
        assert!(services.recv().is_err());
    }
}
