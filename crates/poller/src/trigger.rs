use std::{collections::BTreeSet, sync::Arc};

use grid_batch_core::MonotonicTime;
use grid_batch_core::batches::BatchState;
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_work::{DueKind, Entered, Work, WorkKey, WorkTable};
use tokio::sync::Notify;

use crate::polls::enter_accepted;

/// Limit on the number of services whose missed triggers are remembered.
const MAX_MISSED: usize = 10_000;

/// Makes a polling monitor poll a service now, even if its batches are not due.
///
/// No trigger is lost: a service that is triggered before the monitor runs is polled when it does, and one that is
/// triggered during a request is polled once more after it. Clones trigger the same monitor, even after it is stopped
/// and started again.
#[derive(Debug, Clone, Default)]
pub struct PollTrigger {
    table: WorkTable,
    wake_up: Arc<Notify>,
}

impl PollTrigger {
    /// A trigger for a [`PollingMonitorBuilder`](crate::PollingMonitorBuilder).
    pub fn new() -> Self {
        Self::default()
    }

    /// A trigger of a monitor that uses this table. Other components may share the table.
    pub fn with_table(table: WorkTable) -> Self {
        Self { table, ..Self::default() }
    }

    /// The table that the monitor uses.
    pub fn table(&self) -> &WorkTable {
        &self.table
    }

    /// Makes the monitor poll this service now.
    pub fn trigger(&self, service_id: &str) {
        if request(&mut self.table.lock(), service_id) {
            self.wake_up.notify_one();
        }
    }

    /// Reports that a ledger has accepted this batch and the store has recorded it. The service is polled soon.
    ///
    /// An event may arrive before the answer to the submission, when the store has nothing to poll
    /// yet. If that happened, the service is polled now.
    pub fn submitted(&self, service_id: &str, batch_id: &str) {
        let mut work = self.table.lock();
        let mut wakes = enter_accepted(&mut work, service_id, batch_id);
        if let Some(service) = work.services.get_mut(service_id) {
            if let Some(submitted) = &mut service.trigger.being_read {
                *submitted = true;
            }
            if service.trigger.missed.is_some() {
                wakes |= request(&mut work, service_id);
            }
        }
        if wakes {
            self.wake_up.notify_one();
        }
    }

    /// Waits for a trigger or an accepted batch.
    pub(crate) async fn woken(&self) {
        self.wake_up.notified().await;
    }

    /// Whether services are to be polled.
    pub(crate) fn has_requests(&self) -> bool {
        self.table.lock().due.next(DueKind::Trigger).is_some()
    }

    /// Takes the triggered services that are ready, to read their batches.
    pub(crate) fn take(&self, is_ready: impl Fn(&str) -> bool) -> Vec<String> {
        let mut work = self.table.lock();
        let requested = work.due.of(DueKind::Trigger).map(|(_, key)| &*key.service_id);
        let taken: Vec<String> =
            requested.filter(|service| is_ready(service)).map(str::to_owned).collect();
        for service_id in &taken {
            let Entered { service, due, .. } = work.enter(service_id);
            due.clear(&mut service.trigger.requested);
            service.trigger.being_read = Some(false);
        }
        taken
    }

    /// Records that the batches of a taken service were read, and whether there were any.
    pub(crate) fn was_read(&self, service_id: &str, found: bool) {
        let mut work = self.table.lock();
        let trigger = &mut work.enter(service_id).service.trigger;
        let submitted = trigger.being_read.take().unwrap_or_default();
        if !found && trigger.requested.is_none() {
            if submitted {
                request(&mut work, service_id);
                self.wake_up.notify_one();
            } else {
                remember_missed(&mut work, service_id);
            }
        }
        work.remove_unneeded(service_id, None);
    }

    /// Puts a taken service back, to be taken again later.
    pub(crate) fn put_back(&self, service_id: &str) {
        let mut work = self.table.lock();
        work.enter(service_id).service.trigger.being_read = None;
        request(&mut work, service_id);
    }
}

/// Requests a poll of the service now. Returns whether none was requested before.
fn request(work: &mut Work, service_id: &str) -> bool {
    let Entered { key, service, due, .. } = work.enter(service_id);
    due.clear(&mut service.trigger.missed);
    let is_new = service.trigger.requested.is_none();
    if is_new {
        due.set(&mut service.trigger.requested, DueKind::Trigger, MonotonicTime::default(), key);
    }
    is_new
}

/// Remembers that the service was triggered but had no pending batch, because one may be recorded soon.
fn remember_missed(work: &mut Work, service_id: &str) {
    let Entered { key, service, due, .. } = work.enter(service_id);
    due.set(&mut service.trigger.missed, DueKind::Missed, MonotonicTime::default(), key);
    let oldest = due.of(DueKind::Missed).next().map(|(_, oldest)| oldest.clone());
    if due.count(DueKind::Missed) > MAX_MISSED
        && let Some(WorkKey { service_id, .. }) = oldest
    {
        let Entered { service, due, .. } = work.enter(&service_id);
        due.clear(&mut service.trigger.missed);
        work.remove_unneeded(&service_id, None);
    }
}

/// Polls a service soon after a batch was accepted, and at once if its batches may have ended. A service that was taken
/// over is polled at once, because an earlier trigger found nothing to poll.
impl RecordedSubscriber for PollTrigger {
    fn recorded(&self, entry: Recorded<'_>) {
        match entry {
            Recorded::Change { change, state, .. } if change.event.ends_submission() => match state
            {
                BatchState::Pending => {
                    self.submitted(change.service_id.as_str(), &change.batch_id.to_string());
                }
                BatchState::InDoubt => self.trigger(change.service_id.as_str()),
                _ => {}
            },
            Recorded::Resumed(services) => {
                services.iter().for_each(|service_id| self.trigger(service_id.as_str()));
            }
            Recorded::TakenOver(takeover) => {
                takeover.claims.iter().for_each(|claim| self.trigger(claim.service_id.as_str()));
            }
            Recorded::Recovered(orphans) => {
                let services: BTreeSet<_> =
                    orphans.iter().map(|orphan| orphan.service_id.as_str()).collect();
                services.into_iter().for_each(|service_id| self.trigger(service_id));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::batches::{Change, Event, LedgerStatus};
    use grid_batch_core::claims::{Claim, SubmittedBatch, Takeover};
    use grid_batch_core::evidence::Evidence;
    use grid_batch_core::ledger::{AttemptId, Outcome};
    use grid_batch_core::{ItemId, ServiceId};

    use super::*;

    fn service(name: &str) -> ServiceId {
        name.parse().unwrap()
    }

    fn take(trigger: &PollTrigger) -> Vec<String> {
        let mut taken = trigger.take(|_| true);
        taken.sort();
        taken
    }

    /// Takes the batches that were accepted, and returns their number.
    fn take_accepted(trigger: &PollTrigger) -> usize {
        let mut work = trigger.table.lock();
        let count = work.due.count(DueKind::Accepted);
        work.services.clear();
        work.due = grid_batch_work::DueTimes::default();
        count
    }

    #[test]
    fn service_is_polled_after_its_submission_ended() {
        let trigger = PollTrigger::new();
        let recorded = |event, state| {
            let change = Change::new(service("a"), ItemId::from_bytes([1; 64]), event);
            trigger.recorded(Recorded::Change { change: &change, state, next_waits: false });
            let taken = take(&trigger).len();
            (take_accepted(&trigger), taken)
        };
        let outcome = |outcome| Event::Outcome { attempt: 1, outcome };
        let status = Event::status(LedgerStatus::Pending);
        assert_eq!(recorded(outcome(Outcome::Accepted), BatchState::Pending), (1, 0));
        assert_eq!(recorded(status, BatchState::Pending), (0, 0));
        assert_eq!(recorded(outcome(Outcome::Ambiguous), BatchState::InDoubt), (0, 1));
        assert_eq!(recorded(Event::OwnerLost { attempt: 1 }, BatchState::InDoubt), (0, 1));
        let inconclusive = Event::Evidence { attempt: 1, evidence: Evidence::Inconclusive };
        assert_eq!(recorded(inconclusive, BatchState::InDoubt), (0, 0));
        assert_eq!(recorded(outcome(Outcome::NotSent), BatchState::Delayed), (0, 0));
    }

    #[test]
    fn taken_resumed_and_recovered_services_are_polled() {
        let trigger = PollTrigger::new();
        let claims = ["a", "b"].map(|name| Claim { service_id: service(name), epoch: 1 });
        let in_doubt = vec![(service("a"), ItemId::from_bytes([1; 64]))];
        let takeover = Takeover { claims: claims.into(), in_doubt, ..Takeover::default() };
        trigger.recorded(Recorded::TakenOver(&takeover));
        assert_eq!(take(&trigger), ["a", "b"]);
        trigger.recorded(Recorded::Resumed(&[service("c")]));
        assert_eq!(take(&trigger), ["c"]);
        let orphan = |number| SubmittedBatch {
            service_id: service("d"),
            batch_id: ItemId::from_bytes([number; 64]),
            attempt_id: AttemptId { attempt: 1, epoch: 1 },
        };
        trigger.recorded(Recorded::Recovered(&[orphan(1), orphan(2)]));
        assert_eq!(take(&trigger), ["d"]);
    }

    #[test]
    fn triggers_are_merged_and_wait_until_ready() {
        let trigger = PollTrigger::new();
        ["a", "b", "a"].into_iter().for_each(|service| trigger.trigger(service));
        assert_eq!(trigger.take(|service| service == "a"), ["a"]);
        assert_eq!(take(&trigger), ["b"]);
        assert!(!trigger.has_requests());
    }

    #[test]
    fn submission_polls_only_after_a_missed_trigger() {
        let trigger = PollTrigger::new();
        trigger.submitted("a", "1");
        assert!(!trigger.has_requests());
        for found in [true, false] {
            trigger.trigger("a");
            take(&trigger);
            trigger.was_read("a", found);
            trigger.submitted("a", "1");
            assert_eq!(trigger.has_requests(), !found);
        }
        take(&trigger);
        trigger.was_read("a", true);
        trigger.submitted("a", "1");
        assert!(!trigger.has_requests(), "a missed trigger counts once");
    }

    #[test]
    fn accepted_batches_are_entered_once() {
        let trigger = PollTrigger::new();
        ["a", "b", "a"].into_iter().for_each(|service| trigger.submitted(service, "1"));
        assert_eq!(take_accepted(&trigger), 2);
    }

    #[test]
    fn submission_during_a_read_is_not_missed() {
        for found in [true, false] {
            let trigger = PollTrigger::new();
            trigger.trigger("a");
            take(&trigger);
            trigger.submitted("a", "1");
            trigger.was_read("a", found);
            assert_eq!(trigger.has_requests(), !found);
        }
    }

    #[test]
    fn trigger_during_a_read_is_kept() {
        let trigger = PollTrigger::new();
        trigger.trigger("a");
        take(&trigger);
        trigger.trigger("a");
        trigger.was_read("a", false);
        assert_eq!(take(&trigger), ["a"]);
    }

    #[test]
    fn missed_services_are_bounded() {
        let trigger = PollTrigger::new();
        for number in 0..MAX_MISSED + 10 {
            let service = number.to_string();
            trigger.trigger(&service);
            take(&trigger);
            trigger.was_read(&service, false);
        }
        let work = trigger.table.lock();
        assert_eq!(
            (work.due.count(DueKind::Missed), work.services.len()),
            (MAX_MISSED, MAX_MISSED)
        );
        drop(work);
        trigger.submitted("0", "1");
        assert!(!trigger.has_requests(), "the oldest is forgotten");
        trigger.submitted(&(MAX_MISSED + 9).to_string(), "1");
        assert!(trigger.has_requests(), "the latest is remembered");
    }
}
