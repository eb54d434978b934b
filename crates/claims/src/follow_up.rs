use std::{collections::BTreeSet, fmt, sync::Arc};

use grid_batch_core::{
    AskAheadRequests, BatchState, Change, ChangeOutcome, Clock, Event, EventSubscriptions,
    Evidence, InFlightUpdates, ItemId, PollTriggers, ServiceId, Stale, SubmittedBatch, SystemClock,
    Takeover, Timestamp, WakeUps,
};
use log::{error, info, warn};

use crate::{ChangeCounts, counts::ChangeCounters};

/// Is called with a batch that has ended, and its state.
type EndedCallback = dyn Fn(&ItemId, BatchState) + Send + Sync;

/// Does what follows a recorded change: wakes the queue, triggers the poller, subscribes to events,
/// and counts. Clones share their counts.
///
/// Give it to every writer of changes: to the submitter's observer, to the poller's store, and to
/// the [`ClaimMaintainer`](crate::ClaimMaintainer).
#[derive(Clone)]
pub struct ChangeFollowUp {
    wake_ups: Arc<dyn WakeUps>,
    triggers: Arc<dyn PollTriggers>,
    events: Option<Arc<dyn EventSubscriptions>>,
    ask_ahead: Option<Arc<dyn AskAheadRequests>>,
    in_flight: Option<Arc<dyn InFlightUpdates>>,
    dependents: Option<Arc<dyn Fn() + Send + Sync>>,
    ended: Option<Arc<EndedCallback>>,
    clock: Arc<dyn Clock>,
    counters: Arc<ChangeCounters>,
}

impl ChangeFollowUp {
    /// Sends hints to this queue and this poller.
    pub fn new(wake_ups: impl WakeUps + 'static, triggers: impl PollTriggers + 'static) -> Self {
        Self {
            wake_ups: Arc::new(wake_ups),
            triggers: Arc::new(triggers),
            events: None,
            ask_ahead: None,
            in_flight: None,
            dependents: None,
            ended: None,
            clock: Arc::new(SystemClock),
            counters: Arc::default(),
        }
    }

    /// Subscribes to the events of services that have batches under way.
    #[must_use]
    pub fn with_events(mut self, events: impl EventSubscriptions + 'static) -> Self {
        self.events = Some(Arc::new(events));
        self
    }

    /// Asks the ledger about the batches behind the one that is under way.
    #[must_use]
    pub fn with_ask_ahead(mut self, ask_ahead: impl AskAheadRequests + 'static) -> Self {
        self.ask_ahead = Some(Arc::new(ask_ahead));
        self
    }

    /// Reports the batches under way to a window that limits them.
    #[must_use]
    pub fn with_in_flight(mut self, in_flight: impl InFlightUpdates + 'static) -> Self {
        self.in_flight = Some(Arc::new(in_flight));
        self
    }

    /// Calls this after batches have ended or were stored: others may have waited for them. It must return
    /// quickly.
    #[must_use]
    pub fn with_dependents(mut self, look: impl Fn() + Send + Sync + 'static) -> Self {
        self.dependents = Some(Arc::new(look));
        self
    }

    /// Calls this with each batch that has ended, and its state. It must return quickly.
    #[must_use]
    pub fn with_ended(
        mut self,
        ended: impl Fn(&ItemId, BatchState) + Send + Sync + 'static,
    ) -> Self {
        self.ended = Some(Arc::new(ended));
        self
    }

    /// Uses this clock instead of the system's.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// How often each kind of change was recorded.
    pub fn counts(&self) -> ChangeCounts {
        self.counters.read()
    }

    /// A change was recorded with this outcome.
    pub fn recorded(&self, change: &Change, outcome: ChangeOutcome) {
        if outcome == ChangeOutcome::Stale(Stale::CommittedAfterInvalid) {
            return self.committed_after_invalid(change);
        }
        let ChangeOutcome::Applied { state, next_waits } = outcome else {
            return self.counters.count_stale();
        };
        self.counters.count(change, state);
        // Before the service is woken, so that it gets the place.
        if let Some(in_flight) = &self.in_flight {
            in_flight.recorded(change, state);
        }
        if state.is_terminal() {
            if let Some(ended) = &self.ended {
                ended(&change.batch_id, state);
            }
            self.look_at_dependents();
        }
        if let Some(reason) = &change.hold {
            warn!(service:% = change.service_id, batch_id:% = change.batch_id, reason = reason.as_str();
                "batch held: it waits for an operator's decision, and so does what waits for it");
        }
        if state == BatchState::Absent {
            log_resubmission(change);
        }
        let service_id = &change.service_id;
        let from_submission =
            matches!(change.event, Event::Outcome { .. } | Event::OwnerLost { .. });
        if let Some(events) = &self.events {
            match state {
                BatchState::Pending if from_submission => events.accepted(service_id),
                // No event told of a commit that the sender has found.
                BatchState::Committed if !from_submission => events.committed(service_id),
                _ => {}
            }
        }
        if next_waits {
            self.wake_ups.wake(service_id);
        }
        match state {
            BatchState::Absent if !next_waits => self.wake_ups.wake(service_id),
            BatchState::Delayed => self.wake_at(service_id, change.retry_at),
            BatchState::Pending if from_submission => {
                self.triggers.submitted(service_id);
                if let Some(ask_ahead) = &self.ask_ahead {
                    ask_ahead.accepted(service_id);
                }
            }
            BatchState::InDoubt if from_submission => self.triggers.trigger(service_id),
            _ => {}
        }
    }

    /// Batches ended as invalid without being sent, because of another invalid batch.
    pub fn ended_unsent(&self, batches: u64) {
        if batches == 0 {
            return;
        }
        self.counters.count_invalid(batches);
        info!(batches;
            "batches ended as invalid without being sent: they depend on a transaction of an invalid batch, \
             or an operator ended what follows one; the error of each batch tells which");
    }

    fn committed_after_invalid(&self, change: &Change) {
        self.counters.count_commit_after_invalid();
        error!(service:% = change.service_id, batch_id:% = change.batch_id;
            "the ledger reports a batch as committed that had ended as invalid: later batches of its \
             service may have been applied before it, so compare the ledger's state with what is expected");
    }

    /// Batches of these services were stored.
    pub fn stored(&self, services: &[ServiceId]) {
        for service_id in services {
            self.follow_events(service_id);
            self.wake_ups.wake(service_id);
            if let Some(ask_ahead) = &self.ask_ahead {
                ask_ahead.stored(service_id);
            }
        }
        self.look_at_dependents();
    }

    /// Services were taken over. Each is polled now: a batch that another instance left under way may
    /// have ended, and triggers before the claim found nothing to poll.
    pub(crate) fn taken_over(&self, takeover: &Takeover) {
        let in_doubt: BTreeSet<&ServiceId> = takeover.in_doubt.iter().map(|(id, _)| id).collect();
        in_doubt.into_iter().for_each(|service_id| self.follow_events(service_id));
        if let Some(in_flight) = self.in_flight.as_ref().filter(|_| !takeover.claims.is_empty()) {
            in_flight.claimed();
        }
        for claim in &takeover.claims {
            self.wake_ups.wake(&claim.service_id);
            self.triggers.trigger(&claim.service_id);
        }
    }

    /// Batches that no submitter has were put in doubt.
    pub(crate) fn recovered(&self, orphans: &[SubmittedBatch]) {
        let services: BTreeSet<&ServiceId> = orphans.iter().map(|it| &it.service_id).collect();
        services.into_iter().for_each(|service_id| self.triggers.trigger(service_id));
    }

    /// Subscribes to the events of a service, before its next batch is submitted.
    pub fn follow_events(&self, service_id: &ServiceId) {
        if let Some(events) = &self.events {
            events.follow(service_id);
        }
    }

    fn look_at_dependents(&self) {
        if let Some(dependents) = &self.dependents {
            dependents();
        }
    }

    fn wake_at(&self, service_id: &ServiceId, retry_at: Option<Timestamp>) {
        let delay = retry_at.map(|time| time.since(self.clock.now())).unwrap_or_default();
        self.wake_ups.wake_after(service_id, delay);
    }
}

/// An attempt that the ledger does not have is followed by another one.
fn log_resubmission(change: &Change) {
    let Event::Evidence { attempt, evidence } = change.event else { return };
    let reason = match evidence {
        Evidence::Lost => "the ledger had accepted the batch and lost it",
        Evidence::Repeatable => "the ledger has not applied the batch, and applies it only once",
        _ => "the ledger does not have the batch",
    };
    info!(service:% = change.service_id, batch_id:% = change.batch_id, attempt, reason;
        "the batch is submitted again after this attempt");
}

impl fmt::Debug for ChangeFollowUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeFollowUp").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grid_batch_core::{
        Claim, Evidence, ItemId, LedgerStatus, ManualClock, Outcome,
        mocks::{MockAskAheadRequests, MockEventSubscriptions, MockPollTriggers, MockWakeUps},
    };

    use super::*;

    fn service() -> ServiceId {
        "circuit::service".parse().unwrap()
    }

    #[test]
    fn batches_that_end_unsent_are_counted_as_invalid() {
        let follow_up = Expected::default().follow_up();
        follow_up.ended_unsent(3);
        follow_up.ended_unsent(0);
        assert_eq!(follow_up.counts(), ChangeCounts { invalid: 3, ..ChangeCounts::default() });
    }

    fn change(event: Event) -> Change {
        Change::new(service(), ItemId::from_bytes([1; 64]), event)
    }

    fn outcome(outcome: Outcome) -> Event {
        Event::Outcome { attempt: 1, outcome }
    }

    fn applied(state: BatchState) -> ChangeOutcome {
        ChangeOutcome::Applied { state, next_waits: false }
    }

    /// Mocks fail the test at any call that it does not expect.
    #[derive(Default)]
    struct Expected {
        wake_ups: MockWakeUps,
        triggers: MockPollTriggers,
    }

    impl Expected {
        fn follow_up(self) -> ChangeFollowUp {
            ChangeFollowUp::new(self.wake_ups, self.triggers)
        }
    }

    #[test]
    fn service_with_a_next_batch_is_woken() {
        let mut expected = Expected::default();
        expected.wake_ups.expect_wake().once().withf(|id| *id == service()).return_const(());
        let event = Event::Evidence { attempt: 1, evidence: Evidence::Committed };
        let outcome = ChangeOutcome::Applied { state: BatchState::Committed, next_waits: true };
        let follow_up = expected.follow_up();
        follow_up.recorded(&change(event), outcome);
        assert_eq!(follow_up.counts(), ChangeCounts { committed: 1, ..ChangeCounts::default() });
    }

    #[test]
    fn accepted_batch_of_a_service_with_more_to_send_wakes_it() {
        let mut expected = Expected::default();
        expected.wake_ups.expect_wake().once().return_const(());
        expected.triggers.expect_submitted().once().return_const(());
        let outcome_applied =
            ChangeOutcome::Applied { state: BatchState::Pending, next_waits: true };
        expected.follow_up().recorded(&change(outcome(Outcome::Accepted)), outcome_applied);
    }

    /// Records what a window hears of, and when a service is woken.
    #[derive(Clone, Default)]
    struct Heard(Arc<std::sync::Mutex<Vec<String>>>);

    impl Heard {
        fn add(&self, text: impl Into<String>) {
            self.0.lock().unwrap().push(text.into());
        }
    }

    impl InFlightUpdates for Heard {
        fn recorded(&self, _: &Change, state: BatchState) {
            self.add(state.to_string());
        }

        fn claimed(&self) {
            self.add("claimed");
        }
    }

    #[test]
    fn window_hears_of_an_end_before_the_service_is_woken() {
        let heard = Heard::default();
        let mut expected = Expected::default();
        let (woken, looked) = (heard.clone(), heard.clone());
        expected.wake_ups.expect_wake().times(2).returning(move |_| woken.add("woken"));
        expected.triggers.expect_trigger().once().return_const(());
        let follow_up = expected.follow_up().with_in_flight(heard.clone());
        let follow_up = follow_up.with_dependents(move || looked.add("dependents"));
        let event = Event::status(LedgerStatus::Committed);
        let ended = ChangeOutcome::Applied { state: BatchState::Committed, next_waits: true };
        follow_up.recorded(&change(event), ended);
        let claims = vec![Claim { service_id: service(), epoch: 1 }];
        follow_up.taken_over(&Takeover { claims, in_doubt: Vec::new() });
        follow_up.taken_over(&Takeover::default());
        let expected = ["committed", "dependents", "woken", "claimed", "woken"];
        let heard: Vec<String> =
            heard.0.lock().unwrap().iter().map(|text| text.to_lowercase()).collect();
        assert_eq!(heard, expected);
    }

    #[test]
    fn absent_batch_wakes_its_service() {
        let mut expected = Expected::default();
        expected.wake_ups.expect_wake().once().return_const(());
        let event = Event::Evidence { attempt: 1, evidence: Evidence::Absent };
        expected.follow_up().recorded(&change(event), applied(BatchState::Absent));
    }

    #[test]
    fn delayed_batch_wakes_its_service_when_it_is_due() {
        let mut expected = Expected::default();
        let delay = Duration::from_secs(5);
        expected
            .wake_ups
            .expect_wake_after()
            .once()
            .withf(move |id, wait| *id == service() && *wait == delay)
            .return_const(());
        let now = Timestamp::from_micros(7);
        let follow_up = expected.follow_up().with_clock(Arc::new(ManualClock::at(now)));
        let retry_at = Some(now.plus(delay));
        let change = Change { retry_at, ..change(outcome(Outcome::NotSent)) };
        follow_up.recorded(&change, applied(BatchState::Delayed));
        assert_eq!(follow_up.counts().delayed, 1);
    }

    #[test]
    fn accepted_batch_is_announced_to_the_poller() {
        let mut expected = Expected::default();
        expected.triggers.expect_submitted().once().return_const(());
        let accepted = change(outcome(Outcome::Accepted));
        expected.follow_up().recorded(&accepted, applied(BatchState::Pending));
    }

    #[test]
    fn stored_and_accepted_batches_request_questions() {
        let mut expected = Expected::default();
        expected.wake_ups.expect_wake().once().return_const(());
        expected.triggers.expect_submitted().once().return_const(());
        let mut ask_ahead = MockAskAheadRequests::new();
        ask_ahead.expect_stored().once().withf(|id| *id == service()).return_const(());
        ask_ahead.expect_accepted().once().withf(|id| *id == service()).return_const(());
        let follow_up = expected.follow_up().with_ask_ahead(ask_ahead);
        follow_up.stored(&[service()]);
        follow_up.recorded(&change(outcome(Outcome::Accepted)), applied(BatchState::Pending));
    }

    #[test]
    fn batch_in_doubt_after_an_attempt_is_polled_now() {
        for event in [outcome(Outcome::Ambiguous), Event::OwnerLost { attempt: 1 }] {
            let mut expected = Expected::default();
            expected.triggers.expect_trigger().once().return_const(());
            let follow_up = expected.follow_up();
            follow_up.recorded(&change(event), applied(BatchState::InDoubt));
            assert_eq!(follow_up.counts().in_doubt, 1);
        }
    }

    #[test]
    fn hold_is_counted_and_sends_no_hint() {
        let follow_up = Expected::default().follow_up();
        let event = Event::Evidence { attempt: 1, evidence: Evidence::Inconclusive };
        let hold = Some("no evidence".to_owned());
        follow_up.recorded(&Change { hold, ..change(event) }, applied(BatchState::InDoubt));
        assert_eq!(follow_up.counts(), ChangeCounts { held: 1, ..ChangeCounts::default() });
    }

    #[test]
    fn commit_after_invalid_is_counted() {
        let follow_up = Expected::default().follow_up();
        let event = Event::Evidence { attempt: 1, evidence: Evidence::Committed };
        follow_up.recorded(&change(event), ChangeOutcome::Stale(Stale::CommittedAfterInvalid));
        let expected = ChangeCounts { committed_after_invalid: 1, ..ChangeCounts::default() };
        assert_eq!(follow_up.counts(), expected);
    }

    #[test]
    fn change_that_was_not_applied_has_no_effect() {
        let follow_up = Expected::default().follow_up();
        follow_up.recorded(&change(outcome(Outcome::Accepted)), ChangeOutcome::NotFound);
        assert_eq!(follow_up.counts(), ChangeCounts { stale: 1, ..ChangeCounts::default() });
    }

    #[test]
    fn stored_batches_subscribe_and_wake() {
        let mut expected = Expected::default();
        expected.wake_ups.expect_wake().once().return_const(());
        let mut events = MockEventSubscriptions::new();
        events.expect_follow().once().withf(|id| *id == service()).return_const(());
        expected.follow_up().with_events(events).stored(&[service()]);
    }

    #[test]
    fn event_source_is_told_of_acceptance_and_commit_only() {
        let mut events = MockEventSubscriptions::new();
        events.expect_accepted().once().return_const(());
        events.expect_committed().once().return_const(());
        let mut expected = Expected::default();
        expected.triggers.expect_submitted().once().return_const(());
        let follow_up = expected.follow_up().with_events(events);
        let status = |status| Event::Status { attempt: Some(1), status };
        follow_up.recorded(&change(outcome(Outcome::Accepted)), applied(BatchState::Pending));
        for (reported, state) in [
            (LedgerStatus::Pending, BatchState::Pending),
            (LedgerStatus::Committed, BatchState::Committed),
            (LedgerStatus::Invalid, BatchState::Invalid),
        ] {
            follow_up.recorded(&change(status(reported)), applied(state));
        }
    }

    #[test]
    fn takeover_wakes_and_polls_all_claimed_services() {
        let mut expected = Expected::default();
        expected.wake_ups.expect_wake().times(2).return_const(());
        expected.triggers.expect_trigger().times(2).return_const(());
        let claim = |name: &str| Claim { service_id: name.parse().unwrap(), epoch: 1 };
        expected.follow_up().taken_over(&Takeover {
            claims: vec![claim("circuit::service"), claim("circuit::other")],
            in_doubt: vec![(service(), ItemId::from_bytes([1; 64]))],
        });
    }
}
