use std::sync::Arc;

use grid_batch_core::{GroupObserver, ScopeId, SubmissionOutcome};
use grid_batch_support::{catch_panic, redact_userinfo};
use log::{error, warn};

use crate::{SubmitterCounters, SubmitterOptions, shutdown_deadline::ShutdownDeadline};

/// Notifies the group observer, and retries until it succeeds or the shutdown deadline has passed.
pub(crate) struct GroupNotifier<S: ScopeId> {
    observer: Arc<dyn GroupObserver<Id = S>>,
    options: Arc<SubmitterOptions>,
    shutdown: ShutdownDeadline,
    counters: SubmitterCounters,
    /// Outcomes that the observer did not accept before the deadline, in order.
    undelivered: Vec<SubmissionOutcome<S>>,
}

impl<S: ScopeId> GroupNotifier<S> {
    pub(crate) fn new(
        observer: Arc<dyn GroupObserver<Id = S>>,
        options: Arc<SubmitterOptions>,
        shutdown: ShutdownDeadline,
        counters: SubmitterCounters,
    ) -> Self {
        Self { observer, options, shutdown, counters, undelivered: Vec::new() }
    }

    /// Delivers these outcomes in groups of at most `group_limit`.
    pub(crate) fn notify(&mut self, mut outcomes: Vec<SubmissionOutcome<S>>) {
        while !outcomes.is_empty() {
            let rest = outcomes.split_off(outcomes.len().min(self.options.group_limit));
            self.notify_group(outcomes);
            outcomes = rest;
        }
    }

    /// Tries the undelivered outcomes once more, and returns those that are still not delivered.
    pub(crate) fn finish(mut self) -> Vec<SubmissionOutcome<S>> {
        let mut delivered = 0;
        for group in self.undelivered.chunks(self.options.group_limit) {
            if !self.try_once(group) {
                break;
            }
            delivered += group.len();
        }
        self.undelivered.drain(..delivered);
        for outcome in &self.undelivered {
            error!(
                batch_id = outcome.batch_header.as_str(), service:% = outcome.scope_id,
                attempts = outcome.attempts, outcome:% = outcome.answer.outcome;
                "the outcome of a batch was not delivered to the group observer before the shutdown"
            );
        }
        self.undelivered
    }

    fn notify_group(&mut self, group: Vec<SubmissionOutcome<S>>) {
        // Later outcomes wait behind undelivered ones, so that the order is kept.
        if !self.undelivered.is_empty() || !self.retry_until_delivered(&group) {
            self.undelivered.extend(group);
        }
    }

    fn retry_until_delivered(&self, group: &[SubmissionOutcome<S>]) -> bool {
        let mut delays = self.options.observer_backoff.delays(self.options.rng());
        loop {
            let known_request = self.shutdown.is_requested();
            if self.try_once(group) {
                return true;
            }
            if self.shutdown.has_passed() {
                return false;
            }
            self.shutdown.sleep(delays.next_delay(), known_request);
        }
    }

    fn try_once(&self, group: &[SubmissionOutcome<S>]) -> bool {
        let error = match catch_panic(|| self.observer.notify_group(group)) {
            Ok(Ok(())) => return true,
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
        false
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, time::Duration};

    use grid_batch_core::{BatchError, BatchResult, GlobalScopeId, Outcome, SubmissionAnswer};

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

    #[test]
    fn later_groups_wait_behind_undelivered_ones() {
        assert_eq!(notify_after_deadline(&[1]), [vec!["1", "2", "3"], vec![]]);
    }

    #[test]
    fn last_delivery_ends_at_the_first_failure() {
        assert_eq!(notify_after_deadline(&[1, 3]), [vec!["1"], vec!["2", "3"]]);
    }
}
