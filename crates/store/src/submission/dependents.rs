use std::time::Duration;

use grid_batch_core::batches::BatchState;
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_core::{ItemId, ServiceId};
use grid_batch_support::{Job, JobTrigger, Jobs, Next, Schedule};

use crate::sql::Store;

/// How many batches are evaluated before services are woken.
const STEP: usize = 1_000;

/// How often the job runs without being triggered, because other instances also leave batches.
const INTERVAL: Duration = Duration::from_millis(500);

/// The job that evaluates batches whose blockers have ended, if the commit of the end did not: those of other services,
/// and those beyond the limit of one commit. If declared access is not used, it only works on invalid batches that stop
/// others.
#[derive(Debug)]
pub struct Dependents;

impl Dependents {
    /// Triggers the job if this process has left batches to evaluate.
    pub fn request_looks(store: &Store, looks: &JobTrigger) -> impl RecordedSubscriber + 'static {
        let (store, looks) = (store.clone(), looks.clone());
        move |entry: Recorded<'_>| {
            if may_leave_dependents(entry) && store.dependents_wait() {
                looks.fire();
            }
        }
    }

    /// Starts the job. Freed batches are published to the stream.
    pub fn start(
        store: &Store,
        stream: impl RecordedSubscriber + 'static,
        looks: &JobTrigger,
        jobs: &Jobs,
    ) -> Job {
        let store = store.clone();
        jobs.repeat("dependents", Schedule::every(INTERVAL).or_on(looks), move || {
            let freed = store.free_dependents(STEP);
            let ready: Vec<ServiceId> = freed.iter().flat_map(|it| &it.ready).cloned().collect();
            publish(&stream, &store.take_ended_waiting(), &ready);
            Ok(if freed?.more { Next::AtOnce } else { Next::AfterInterval })
        })
    }
}

/// Whether other batches may have waited for a batch that has ended or was stored.
fn may_leave_dependents(entry: Recorded<'_>) -> bool {
    match entry {
        Recorded::Stored(_) | Recorded::Submittable(_) => true,
        _ => entry.ended().is_some(),
    }
}

fn publish(stream: &impl RecordedSubscriber, ended: &[(ItemId, BatchState)], ready: &[ServiceId]) {
    if !ended.is_empty() {
        stream.recorded(Recorded::EndedWaiting(ended));
    }
    if !ready.is_empty() {
        stream.recorded(Recorded::Freed(ready));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use grid_batch_core::batches::{Change, Event, LedgerStatus};

    use super::*;

    #[test]
    fn job_is_triggered_after_ends_and_new_batches() {
        let services: [ServiceId; 1] = ["a::b".parse().unwrap()];
        let event = Event::status(LedgerStatus::Committed);
        let change = &Change::new(services[0].clone(), ItemId::from_bytes([1; 64]), event);
        let in_state = |state| Recorded::Change { change, state, next_waits: false };
        for (entry, expected) in [
            (in_state(BatchState::Committed), true),
            (in_state(BatchState::Invalid), true),
            (in_state(BatchState::Pending), false),
            (Recorded::Stored(&services), true),
            (Recorded::Submittable(&services), true),
            (Recorded::Freed(&services), false),
            (Recorded::Resumed(&services), false),
        ] {
            assert_eq!(may_leave_dependents(entry), expected, "{entry:?}");
        }
    }

    #[test]
    fn result_of_a_look_is_published_unless_it_is_empty() {
        let (sender, heard) = channel();
        let subscriber = move |entry: Recorded<'_>| sender.send(format!("{entry:?}")).unwrap();
        publish(&subscriber, &[], &[]);
        assert!(heard.try_recv().is_err());
        let ready: [ServiceId; 1] = ["a::b".parse().unwrap()];
        let ended = [(ItemId::from_bytes([1; 64]), BatchState::Invalid)];
        publish(&subscriber, &ended, &ready);
        let expected = [Recorded::EndedWaiting(&ended), Recorded::Freed(&ready)];
        let heard: Vec<String> = heard.try_iter().collect();
        assert_eq!(heard, expected.map(|entry| format!("{entry:?}")));
    }
}
