use std::time::Duration;

use grid_batch_core::claims::Notifications;
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_core::{BatchResult, ItemId};
use grid_batch_support::{Job, Jobs, Next, Schedule};
use log::debug;

use crate::AwaitedEnds;

/// A job that exchanges notifications with other instances: it learns which services other instances have stored
/// batches for, and reports to them the end of batches that their clients wait for.
#[derive(Debug)]
pub struct NotificationListener;

/// How often notifications are received. It costs a system call but no SQL statement.
const RECEIVE_INTERVAL: Duration = Duration::from_millis(20);

/// The pause after a failure. Meanwhile, the scans of the queue find the batches.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);

impl NotificationListener {
    /// Starts to listen. `exchange` is called with batches that clients of this instance wait for and with batches that
    /// have ended, and returns what has arrived since the last call, without waiting for more.
    pub fn start(
        jobs: &Jobs,
        mut exchange: impl FnMut(&[ItemId], &[ItemId]) -> BatchResult<Notifications> + Send + 'static,
        subscriber: impl RecordedSubscriber + 'static,
        awaited: AwaitedEnds,
    ) -> Job {
        let schedule = Schedule::every(RECEIVE_INTERVAL)
            .first_after(Duration::ZERO)
            .after_failure(PAUSE_AFTER_FAILURE);
        jobs.repeat("notifications", schedule, move || {
            let (awaited_here, ended_here) = awaited.take();
            let received = exchange(&awaited_here, &ended_here)?;
            if !received.stored.is_empty() {
                debug!(
                    services = received.stored.len();
                    "other instances have stored batches of these services"
                );
                subscriber.recorded(Recorded::Submittable(&received.stored));
            }
            if !received.ended.is_empty() {
                subscriber.recorded(Recorded::EndedElsewhere(&received.ended));
            }
            awaited.awaited_by_others(received.awaited);
            Ok(Next::AfterInterval)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{SyncSender, sync_channel};

    use grid_batch_core::{BatchError, ServiceId};

    use super::*;

    /// Returns these results, the last one first, and then nothing.
    fn script(
        mut received: Vec<BatchResult<Notifications>>,
        sent: SyncSender<(Vec<ItemId>, Vec<ItemId>)>,
    ) -> impl FnMut(&[ItemId], &[ItemId]) -> BatchResult<Notifications> {
        move |awaited, ended| {
            if !awaited.is_empty() || !ended.is_empty() {
                sent.send((awaited.to_vec(), ended.to_vec())).unwrap();
            }
            received.pop().unwrap_or(Ok(Notifications::default()))
        }
    }

    fn start(received: Vec<BatchResult<Notifications>>, told: SyncSender<Vec<ServiceId>>) -> Job {
        let script = script(received, sync_channel(9).0);
        let told = move |entry: Recorded<'_>| {
            let Recorded::Submittable(services) = entry else { panic!("{entry:?}") };
            told.send(services.to_vec()).unwrap();
        };
        NotificationListener::start(&Jobs::start().unwrap(), script, told, AwaitedEnds::default())
    }

    #[test]
    fn services_with_stored_batches_are_published() {
        let (told, services) = sync_channel(9);
        let service: ServiceId = "circuit::service".parse().unwrap();
        let stored = Notifications { stored: vec![service.clone()], ..Notifications::default() };
        let listener = start(vec![Ok(stored), Ok(Notifications::default())], told);
        assert_eq!(services.recv(), Ok(vec![service]));
        drop(listener);
        assert!(services.recv().is_err(), "it has ended");
    }

    #[test]
    fn listener_ends_during_the_pause_after_a_failure() {
        let (told, services) = sync_channel(9);
        let failure = Err(BatchError::Unavailable("the database".to_owned()));
        drop(start(vec![failure], told));
        assert!(services.recv().is_err());
    }

    #[test]
    fn ends_that_clients_wait_for_are_exchanged() {
        let (told, ended) = sync_channel(9);
        let (send, sent) = sync_channel(9);
        let [here, there] = [1, 2].map(|number| ItemId::from_bytes([number; 64]));
        let received =
            Notifications { awaited: vec![there], ended: vec![here], ..Notifications::default() };
        let script = script(vec![Ok(received)], send);
        let awaited = AwaitedEnds::default();
        awaited.awaited(&[here]);
        let ends = awaited.clone();
        let told = move |entry: Recorded<'_>| {
            let Recorded::EndedElsewhere(ids) = entry else { panic!("{entry:?}") };
            told.send(ids.to_vec()).unwrap();
        };
        let jobs = Jobs::start().unwrap();
        let listener = NotificationListener::start(&jobs, script, told, awaited);
        assert_eq!(sent.recv(), Ok((vec![here], vec![])));
        assert_eq!(ended.recv(), Ok(vec![here]));
        // The listener remembers what it has received only after this.
        let outcome = loop {
            ends.ended(&there);
            if let Ok(outcome) = sent.recv_timeout(RECEIVE_INTERVAL) {
                break outcome;
            }
        };
        assert_eq!(outcome, (vec![], vec![there]));
        drop(listener);
    }
}
