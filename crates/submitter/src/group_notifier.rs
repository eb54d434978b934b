use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use grid_batch_core::ledger::{GroupObserver, SubmissionOutcome};
use grid_batch_core::{BatchError, ScopeId, ServiceId};
use grid_batch_support::{Delays, catch_panic, redact_userinfo};
use log::{error, warn};

use crate::{
    SubmitterCounters, SubmitterOptions, set_aside::SetAside, shutdown_deadline::ShutdownDeadline,
};

/// Notifies the group observer, and retries until it succeeds or the shutdown deadline has passed.
///
/// What cannot be recorded because a service is locked is set aside and tried again by itself.
pub(crate) struct GroupNotifier<S: ScopeId> {
    observer: Arc<dyn GroupObserver<Id = S>>,
    options: Arc<SubmitterOptions>,
    shutdown: ShutdownDeadline,
    counters: SubmitterCounters,
    /// Outcomes that the observer did not accept before the deadline, in order.
    undelivered: Vec<SubmissionOutcome<S>>,
    /// Outcomes of services that are locked.
    set_aside: SetAside<S>,
}

/// What became of a group.
enum Delivery {
    Done,
    /// Only what is about these services was not recorded.
    Locked(Vec<ServiceId>),
    Failed,
}

impl<S: ScopeId> GroupNotifier<S> {
    pub(crate) fn new(
        observer: Arc<dyn GroupObserver<Id = S>>,
        options: Arc<SubmitterOptions>,
        shutdown: ShutdownDeadline,
        counters: SubmitterCounters,
    ) -> Self {
        let set_aside = SetAside::new(options.observer_backoff);
        Self { observer, options, shutdown, counters, undelivered: Vec::new(), set_aside }
    }

    /// Delivers these outcomes in groups of at most `group_limit`. Those behind one that was set aside
    /// are set aside too.
    pub(crate) fn notify(&mut self, outcomes: Vec<SubmissionOutcome<S>>) {
        let (behind, mut outcomes): (Vec<_>, Vec<_>) = outcomes
            .into_iter()
            .partition(|outcome| self.set_aside.holds(outcome.scope_id.service_id()));
        self.put_aside(behind);
        while !outcomes.is_empty() {
            let rest = outcomes.split_off(outcomes.len().min(self.options.group_limit));
            self.notify_group(outcomes);
            outcomes = rest;
        }
    }

    /// Tries the undelivered outcomes once more, and returns those that are still not delivered.
    pub(crate) fn finish(mut self) -> Vec<SubmissionOutcome<S>> {
        self.deliver_rest();
        while !self.set_aside.is_empty()
            && self.shutdown.is_requested()
            && !self.shutdown.has_passed()
        {
            self.shutdown.sleep(self.next_retry().unwrap_or_default(), true);
            self.retry_set_aside();
        }
        self.undelivered.extend(self.set_aside.into_outcomes());
        for outcome in &self.undelivered {
            error!(
                batch_id = outcome.batch_header.as_str(), service:% = outcome.scope_id,
                attempts = outcome.attempts, outcome:% = outcome.answer.outcome;
                "the outcome of a batch was not delivered to the group observer before the shutdown"
            );
        }
        self.undelivered
    }

    /// Tries the undelivered outcomes once more.
    fn deliver_rest(&mut self) {
        let mut rest = mem::take(&mut self.undelivered);
        while !rest.is_empty() {
            let later = rest.split_off(rest.len().min(self.options.group_limit));
            match self.try_once(&rest) {
                Delivery::Done => {}
                Delivery::Locked(services) => self.put_aside(of_services(rest, &services)),
                Delivery::Failed => {
                    self.undelivered = [rest, later].concat();
                    return;
                }
            }
            rest = later;
        }
    }

    /// How long it is until outcomes that were set aside are tried again; `None` if there are none.
    pub(crate) fn next_retry(&self) -> Option<Duration> {
        self.set_aside.next_retry(Instant::now())
    }

    /// Tries the outcomes again that were set aside and are due.
    pub(crate) fn retry_set_aside(&mut self) {
        let due = self.set_aside.due(Instant::now(), self.options.group_limit);
        if due.is_empty() {
            return;
        }
        let locked = match self.try_once(&due) {
            Delivery::Done => Vec::new(),
            Delivery::Locked(services) => services,
            Delivery::Failed => return,
        };
        let services = due.iter().map(|outcome| outcome.scope_id.service_id());
        for service in services.filter(|service| !locked.contains(service)) {
            self.set_aside.remove(service);
        }
    }

    fn put_aside(&mut self, outcomes: Vec<SubmissionOutcome<S>>) {
        for outcome in outcomes {
            self.set_aside.add(outcome, self.options.rng(), Instant::now());
        }
    }

    fn notify_group(&mut self, group: Vec<SubmissionOutcome<S>>) {
        // Later outcomes wait behind undelivered ones, so that the order is kept.
        if !self.undelivered.is_empty() {
            return self.undelivered.extend(group);
        }
        match self.retry_until_delivered(&group) {
            Delivery::Done => {}
            Delivery::Locked(services) => self.put_aside(of_services(group, &services)),
            Delivery::Failed => self.undelivered.extend(group),
        }
    }

    fn retry_until_delivered(&self, group: &[SubmissionOutcome<S>]) -> Delivery {
        let mut delays = Delays::new(self.options.observer_backoff, self.options.rng());
        loop {
            let known_request = self.shutdown.is_requested();
            let delivery = self.try_once(group);
            if !matches!(delivery, Delivery::Failed) || self.shutdown.has_passed() {
                return delivery;
            }
            self.shutdown.sleep(delays.next_delay(), known_request);
        }
    }

    fn try_once(&self, group: &[SubmissionOutcome<S>]) -> Delivery {
        let error = match catch_panic(|| self.observer.notify_group(group)) {
            Ok(Ok(())) => return Delivery::Done,
            Ok(Err(BatchError::Locked(services))) => return Delivery::Locked(services),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => {
                self.counters.count_panic();
                format!("it panicked: {panic}")
            }
        };
        self.counters.count_observer_failure();
        let error = redact_userinfo(&error);
        warn!(
            error = error.as_ref(), outcomes = group.len();
            "the group observer failed; the group is delivered again"
        );
        Delivery::Failed
    }
}

fn of_services<S: ScopeId>(
    mut outcomes: Vec<SubmissionOutcome<S>>,
    services: &[ServiceId],
) -> Vec<SubmissionOutcome<S>> {
    outcomes.retain(|outcome| services.contains(outcome.scope_id.service_id()));
    outcomes
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, time::Duration};

    use grid_batch_core::ledger::{Outcome, SubmissionAnswer};
    use grid_batch_core::{BatchError, BatchResult, GlobalScopeId, ServiceScopeId};

    use super::*;

    /// Fails in the calls of these numbers, counted from 1, and records the batches of all others.
    struct FailingObserver {
        failing_calls: &'static [usize],
        calls: Mutex<usize>,
        delivered: Mutex<Vec<String>>,
    }

    impl GroupObserver for FailingObserver {
        type Id = GlobalScopeId;

        fn notify_group(&self, outcomes: &[SubmissionOutcome<GlobalScopeId>]) -> BatchResult<()> {
            let mut calls = self.calls.lock().unwrap();
            *calls += 1;
            if self.failing_calls.contains(&calls) {
                return Err(BatchError::Unavailable("the database".to_owned()));
            }
            self.delivered.lock().unwrap().extend(names(outcomes));
            Ok(())
        }
    }

    fn names(outcomes: &[SubmissionOutcome<GlobalScopeId>]) -> Vec<String> {
        outcomes.iter().map(|outcome| outcome.batch_header.clone()).collect()
    }

    fn accepted(batch: &str) -> SubmissionOutcome<GlobalScopeId> {
        SubmissionOutcome {
            batch_header: batch.to_owned(),
            scope_id: GlobalScopeId,
            attempt_id: None,
            deadline: None,
            attempts: 1,
            answer: SubmissionAnswer {
                outcome: Outcome::Accepted,
                status: None,
                message: None,
                retry_after: None,
            },
        }
    }

    /// Notifies an observer of batches 1, 2 and 3, one at a time and after the deadline. Returns
    /// which were delivered and which were not, in order.
    fn notify_after_deadline(failing_calls: &'static [usize]) -> [Vec<String>; 2] {
        let observer = Arc::new(FailingObserver {
            failing_calls,
            calls: Mutex::default(),
            delivered: Mutex::default(),
        });
        let shutdown = ShutdownDeadline::new(Duration::ZERO);
        shutdown.request();
        let options = Arc::new(SubmitterOptions { group_limit: 1, ..SubmitterOptions::default() });
        let counters = SubmitterCounters::default();
        let mut notifier = GroupNotifier::new(observer.clone(), options, shutdown, counters);
        notifier.notify(["1", "2", "3"].map(accepted).to_vec());
        let undelivered = names(&notifier.finish());
        let delivered = observer.delivered.lock().unwrap().clone();
        [delivered, undelivered]
    }

    /// Records everything except outcomes of the locked service.
    #[derive(Default)]
    struct ObserverWithLock {
        locked: Mutex<Option<ServiceId>>,
        delivered: Mutex<Vec<String>>,
    }

    impl GroupObserver for ObserverWithLock {
        type Id = ServiceScopeId;

        fn notify_group(&self, outcomes: &[SubmissionOutcome<ServiceScopeId>]) -> BatchResult<()> {
            let locked = self.locked.lock().unwrap().clone();
            let is_locked = |outcome: &&SubmissionOutcome<ServiceScopeId>| {
                Some(outcome.scope_id.service_id()) == locked.as_ref()
            };
            let free = outcomes.iter().filter(|outcome| !is_locked(outcome));
            self.delivered.lock().unwrap().extend(free.map(|outcome| outcome.batch_header.clone()));
            if outcomes.iter().any(|outcome| is_locked(&outcome)) {
                Err(BatchError::Locked(locked.into_iter().collect()))
            } else {
                Ok(())
            }
        }
    }

    fn of_service(service: &str, batch: &str) -> SubmissionOutcome<ServiceScopeId> {
        let SubmissionOutcome { batch_header, attempt_id, deadline, attempts, answer, .. } =
            accepted(batch);
        let scope_id = service.parse().unwrap();
        SubmissionOutcome { batch_header, scope_id, attempt_id, deadline, attempts, answer }
    }

    #[test]
    fn outcomes_of_a_locked_service_wait_by_themselves() {
        let observer = Arc::new(ObserverWithLock::default());
        let options = Arc::new(SubmitterOptions::default());
        let shutdown = ShutdownDeadline::new(Duration::from_hours(1));
        let counters = SubmitterCounters::default();
        let mut notifier =
            GroupNotifier::new(observer.clone(), options, shutdown.clone(), counters.clone());
        let lock = |service: Option<&str>| {
            *observer.locked.lock().unwrap() = service.map(|service| service.parse().unwrap());
        };
        let delivered = || observer.delivered.lock().unwrap().clone();

        lock(Some("a::locked"));
        notifier.notify(vec![of_service("a::locked", "1"), of_service("a::free", "2")]);
        assert_eq!(delivered(), ["2"]);
        notifier.notify(vec![of_service("a::locked", "3"), of_service("a::free", "4")]);
        assert_eq!(delivered(), ["2", "4"]);
        assert!(notifier.next_retry().is_some());
        lock(None);
        notifier.notify(vec![of_service("a::locked", "5"), of_service("a::free", "6")]);
        assert_eq!(delivered(), ["2", "4", "6"]);
        shutdown.request();
        assert!(notifier.finish().is_empty());
        assert_eq!(delivered(), ["2", "4", "6", "1", "3", "5"]);
        assert_eq!(counters.read().observer_failures, 0);
    }

    #[test]
    fn later_groups_wait_behind_undelivered_ones() {
        assert_eq!(notify_after_deadline(&[1]), [vec!["1", "2", "3"], vec![]]);
    }

    #[test]
    fn last_delivery_ends_at_the_first_failure() {
        assert_eq!(notify_after_deadline(&[1, 3]), [vec!["1"], vec!["2", "3"]]);
    }
}
