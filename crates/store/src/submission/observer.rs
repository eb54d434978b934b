use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt,
    marker::PhantomData,
    sync::Mutex,
    time::Duration,
};

use grid_batch_core::batches::{Change, ChangeOutcome, Event, Stale, TransitionError};
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_core::ledger::{AttemptId, GroupObserver, OutcomeClass, SubmissionOutcome};
use grid_batch_core::queue::{DelayOptions, NextStep};
use grid_batch_core::{BatchResult, ScopeId, ServiceId};
use grid_batch_support::lock;
use log::{error, info, warn};

use super::delay::{Retries, hold_reason, read_delays};
use crate::{
    batch::{BatchKey, record},
    sql::{Store, groups::GroupResult, rows::DelayRow},
};

/// Records the outcomes of submissions: the observer of a submitter whose queue is this store.
///
/// Each group is one commit. After it, the subscriber is called with each change, so that it can wake the queue
/// for a service with another batch or a delayed one.
pub struct StoreObserver<S> {
    store: Store,
    retries: Retries,
    /// The services whose ledger asked for a longer delay than it got: that is logged once.
    cut: Mutex<HashSet<ServiceId>>,
    subscriber: Box<dyn RecordedSubscriber>,
    scope: PhantomData<fn() -> S>,
}

impl<S: ScopeId> StoreObserver<S> {
    /// An observer that delays batches that were certainly not accepted. `subscriber` is called with each change.
    pub fn new(
        store: Store,
        delays: DelayOptions,
        subscriber: impl RecordedSubscriber + 'static,
    ) -> Self {
        Self {
            store,
            retries: Retries::new(delays),
            cut: Mutex::default(),
            subscriber: Box::new(subscriber),
            scope: PhantomData,
        }
    }

    /// The change that records an outcome, unless the batch was not taken from this store.
    fn change(
        &self,
        outcome: &SubmissionOutcome<S>,
        delays: &HashMap<BatchKey, DelayRow>,
    ) -> Option<Change> {
        let SubmissionOutcome { batch_header, scope_id, attempt_id, deadline, answer, .. } =
            outcome;
        let (Some(AttemptId { attempt, epoch }), Ok(batch_id)) =
            (*attempt_id, batch_header.parse())
        else {
            // A retry cannot help, because the outcome does not name its attempt.
            error!(batch_id = batch_header.as_str(), service:% = scope_id;
                "discarded an outcome: the batch was not taken from this store");
            return None;
        };
        let event = Event::Outcome { attempt, outcome: answer.outcome };
        let change = Change {
            epoch: Some(epoch),
            ..Change::new(scope_id.service_id().clone(), batch_id, event)
        };
        let key = (scope_id.service_id().clone(), batch_id);
        let earlier = delays.get(&key).copied().unwrap_or_default().failed_attempts();
        let (delay, hold) = match self.retries.next_step(answer, *deadline, earlier) {
            NextStep::Report => {
                let has_failed = answer.outcome.class() != OutcomeClass::Accepted;
                let error = answer.message.clone().filter(|_| has_failed);
                return Some(Change { error, ..change });
            }
            NextStep::Retry(delay) => (delay, None),
            NextStep::Hold(cause) => (Duration::ZERO, Some(hold_reason(cause, answer))),
        };
        Some(Change {
            error: self.retries.error(answer),
            retry_at: Some(self.store.now().plus(delay)),
            hold_until_decision: hold.is_some(),
            hold,
            ..change
        })
    }

    /// Logs once that a ledger asks for a longer delay than the limit.
    fn log_cut(&self, outcome: &SubmissionOutcome<S>) {
        const MOST_REMEMBERED: usize = 10_000;
        let SubmissionOutcome { batch_header, scope_id, answer, .. } = outcome;
        let service = scope_id.service_id();
        let mut cut = lock(&self.cut);
        if !self.retries.is_cut(answer) {
            cut.remove(service);
        } else if cut.len() < MOST_REMEMBERED && cut.insert(service.clone()) {
            let asked_s = answer.retry_after.unwrap_or_default().as_secs();
            warn!(batch_id = batch_header.as_str(), service:%, asked_s;
                "the ledger asks to wait longer than the limit; the service is tried \
                 again after that limit, or sooner with `grid-batch retry SERVICE --reason TEXT`");
        }
    }
}

impl<S: ScopeId> GroupObserver for StoreObserver<S> {
    type Id = S;

    fn notify_group(&self, outcomes: &[SubmissionOutcome<S>]) -> BatchResult<()> {
        let key = |outcome: &SubmissionOutcome<S>| {
            let batch_id = outcome.batch_header.parse().ok()?;
            Some((outcome.scope_id.service_id().clone(), batch_id))
        };
        let delayed: BTreeSet<BatchKey> = outcomes
            .iter()
            .filter(|outcome| outcome.answer.outcome.class().may_be_sent_again())
            .filter_map(key)
            .collect();
        let delays = read_delays(&self.store, &delayed)?;
        let changes: Vec<Change> =
            outcomes.iter().filter_map(|outcome| self.change(outcome, &delays)).collect();
        let GroupResult { outcomes: recorded, error } = record(&self.store, &changes);
        outcomes.iter().for_each(|outcome| self.log_cut(outcome));
        for (change, outcome) in changes.iter().zip(recorded) {
            if let Some(outcome) = outcome {
                log_ignored(change, outcome);
                self.subscriber.recorded(Recorded::new(change, outcome));
            }
        }
        Ok(error.map_or(Ok(()), Err)?)
    }
}

/// Logs an outcome that was not applied. If the database does not have the batch or the attempt, it has lost them.
fn log_ignored(change: &Change, outcome: ChangeOutcome) {
    let (batch_id, service_id) = (&change.batch_id, &change.service_id);
    match outcome {
        ChangeOutcome::Applied { .. } => {}
        ChangeOutcome::NotFound => warn!(batch_id:%, service:% = service_id;
            "the database does not have a batch that was taken from it: it lost the batch or went back \
             to an earlier state"),
        ChangeOutcome::Stale(Stale::Transition(TransitionError::OtherAttempt {
            given,
            present,
        })) if given > present => {
            warn!(batch_id:%, service:% = service_id, attempt = given, known = present;
                "the database does not have an attempt that was taken from it: it went back to an \
                 earlier state");
        }
        ChangeOutcome::Stale(_) => info!(batch_id:%, service:% = service_id;
            "ignored a late outcome of a submission"),
    }
}

impl<S> fmt::Debug for StoreObserver<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreObserver").field("retries", &self.retries).finish_non_exhaustive()
    }
}
