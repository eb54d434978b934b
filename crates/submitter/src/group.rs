use std::sync::Arc;

use grid_batch_core::{GroupObserver, ScopeId, SubmissionOutcome};
use log::{error, warn};

use crate::{
    SubmitterCounters, SubmitterOptions, drain::Drain, panics::catch, redact::without_userinfo,
};

/// Tells the group observer, until it has understood.
pub(crate) struct GroupTeller<S: ScopeId> {
    observer: Arc<dyn GroupObserver<Id = S>>,
    options: Arc<SubmitterOptions>,
    drain: Drain,
    counters: SubmitterCounters,
    /// What it would not take before the drain was over, in order.
    put_aside: Vec<SubmissionOutcome<S>>,
}

impl<S: ScopeId> GroupTeller<S> {
    pub(crate) fn new(
        observer: Arc<dyn GroupObserver<Id = S>>,
        options: Arc<SubmitterOptions>,
        drain: Drain,
        counters: SubmitterCounters,
    ) -> Self {
        Self { observer, options, drain, counters, put_aside: Vec::new() }
    }

    /// Tells it of these, in groups no larger than allowed.
    pub(crate) fn tell(&mut self, mut outcomes: Vec<SubmissionOutcome<S>>) {
        while !outcomes.is_empty() {
            let later = outcomes.split_off(outcomes.len().min(self.options.group_limit));
            self.tell_group(outcomes);
            outcomes = later;
        }
    }

    /// Tells it once more of what it would not take, and gives back what it still does not.
    pub(crate) fn finish(mut self) -> Vec<SubmissionOutcome<S>> {
        let mut told = 0;
        for group in self.put_aside.chunks(self.options.group_limit) {
            if !self.try_once(group) {
                break;
            }
            told += group.len();
        }
        self.put_aside.drain(..told);
        for outcome in &self.put_aside {
            error!(
                batch = outcome.batch_header.as_str(), service:% = outcome.scope_id,
                attempts = outcome.attempts, outcome:% = outcome.answer.outcome;
                "the group observer was not told of the batch's outcome"
            );
        }
        self.put_aside
    }

    fn tell_group(&mut self, group: Vec<SubmissionOutcome<S>>) {
        // The order is kept: nothing overtakes what was put aside.
        if !self.put_aside.is_empty() || !self.try_until_told(&group) {
            self.put_aside.extend(group);
        }
    }

    fn try_until_told(&self, group: &[SubmissionOutcome<S>]) -> bool {
        let mut delays = self.options.observer_backoff.delays(self.options.rng());
        loop {
            let drains = self.drain.has_begun();
            if self.try_once(group) {
                return true;
            }
            if self.drain.is_over() {
                return false;
            }
            // A stop hurries the next try.
            self.drain.rest(delays.after_failure(), drains);
        }
    }

    fn try_once(&self, group: &[SubmissionOutcome<S>]) -> bool {
        let error = match catch(|| self.observer.notify_group(group)) {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error.to_string(),
            Err(panic) => {
                self.counters.count_panic();
                format!("it panicked: {panic}")
            }
        };
        self.counters.count_observer_failure();
        let error = without_userinfo(&error);
        warn!(error = error.as_ref(), outcomes = group.len(); "the group observer failed");
        false
    }
}
