use std::{fmt, marker::PhantomData, time::Duration};

use grid_batch_core::{
    AttemptId, BatchResult, Change, ChangeOutcome, Event, GroupObserver, Outcome, ScopeId, Stale,
    SubmissionAnswer, SubmissionOutcome, TransitionError,
};
use log::{error, info, warn};

use crate::{
    batch::{ChangeListener, record},
    sql::{Store, groups::GroupResult},
};

/// Records the outcomes of submissions: the observer of a submitter whose queue is this store.
///
/// Each group is one commit. After it, the listener is called with each change and its outcome, so
/// that it can wake the queue for a service with another batch or a delayed one.
pub struct StoreObserver<S> {
    store: Store,
    delay: Duration,
    listener: Box<ChangeListener>,
    scope: PhantomData<fn() -> S>,
}

impl<S: ScopeId> StoreObserver<S> {
    /// An observer that delays a batch that was certainly not accepted by `delay`, or longer if the
    /// ledger asks for that, and calls `listener` for each change.
    pub fn new(
        store: Store,
        delay: Duration,
        listener: impl Fn(&Change, ChangeOutcome) + Send + Sync + 'static,
    ) -> Self {
        Self { store, delay, listener: Box::new(listener), scope: PhantomData }
    }

    /// The change that records an outcome, unless the batch was not taken from this store.
    fn change(&self, outcome: &SubmissionOutcome<S>) -> Option<Change> {
        let SubmissionOutcome { batch_header, scope_id, attempt_id, answer, .. } = outcome;
        let (Some(AttemptId { attempt, epoch }), Ok(batch_id)) =
            (*attempt_id, batch_header.parse())
        else {
            // A retry cannot help: the outcome does not name its attempt.
            error!(batch_id = batch_header.as_str(), service:% = scope_id;
                "discarded an outcome: the batch was not taken from this store");
            return None;
        };
        let event = Event::Outcome { attempt, outcome: answer.outcome };
        let accepted = answer.outcome == Outcome::Accepted;
        Some(Change {
            epoch: Some(epoch),
            error: answer.message.clone().filter(|_| !accepted),
            retry_at: Some(self.store.now().plus(self.delay(answer))),
            ..Change::new(scope_id.service_id().clone(), batch_id, event)
        })
    }
}

impl<S> StoreObserver<S> {
    /// The delay of a batch that was not accepted. The gate that parked a batch decides alone when
    /// it is tried again.
    fn delay(&self, answer: &SubmissionAnswer) -> Duration {
        match (answer.outcome, answer.retry_after) {
            (Outcome::Parked, Some(retry_after)) => retry_after,
            (_, retry_after) => self.delay.max(retry_after.unwrap_or_default()),
        }
    }
}

impl<S: ScopeId> GroupObserver for StoreObserver<S> {
    type Id = S;

    fn notify_group(&self, outcomes: &[SubmissionOutcome<S>]) -> BatchResult<()> {
        let changes: Vec<Change> =
            outcomes.iter().filter_map(|outcome| self.change(outcome)).collect();
        let GroupResult { outcomes, error } = record(&self.store, &changes);
        for (change, outcome) in changes.iter().zip(outcomes) {
            if let Some(outcome) = outcome {
                log_ignored(change, outcome);
                (self.listener)(change, outcome);
            }
        }
        Ok(error.map_or(Ok(()), Err)?)
    }
}

/// An outcome of a batch or attempt that the database does not have shows that it lost them.
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
        f.debug_struct("StoreObserver").field("delay", &self.delay).finish_non_exhaustive()
    }
}
