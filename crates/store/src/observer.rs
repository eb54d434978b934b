use std::{fmt, marker::PhantomData, time::Duration};

use grid_batch_core::{
    AttemptId, BatchResult, Change, ChangeOutcome, Event, GroupObserver, Outcome, ScopeId,
    SubmissionAnswer, SubmissionOutcome,
};
use log::{error, info};

use crate::{Store, record::Told};

/// Records the outcomes of submissions: the observer of a submitter whose queue is this store.
///
/// A group is one commit. Whoever cares is then told of each change what became of it: of a service
/// that is free, or of a batch that is delayed, so that the queue can be woken.
pub struct StoreObserver<S> {
    store: Store,
    delay: Duration,
    recorded: Box<Told>,
    scope: PhantomData<fn() -> S>,
}

impl<S: ScopeId> StoreObserver<S> {
    /// An observer that delays what was certainly not accepted for `delay`, or for longer where the
    /// ledger asks for that, and tells `recorded` of each change.
    pub fn new(
        store: Store,
        delay: Duration,
        recorded: impl Fn(&Change, ChangeOutcome) + Send + Sync + 'static,
    ) -> Self {
        Self { store, delay, recorded: Box::new(recorded), scope: PhantomData }
    }

    /// The change that an outcome makes; none, where it is not about a batch of this store.
    fn change(&self, outcome: &SubmissionOutcome<S>) -> Option<Change> {
        let SubmissionOutcome { batch_header, scope_id, attempt_id, answer, .. } = outcome;
        let (Some(AttemptId { attempt, epoch }), Ok(batch_id)) =
            (*attempt_id, batch_header.parse())
        else {
            // Trying again would not help: there is nothing to record it by.
            error!(batch_id = batch_header.as_str(), service:% = scope_id;
                "the outcome is of no batch of this store");
            return None;
        };
        let event = Event::Outcome { attempt, outcome: answer.outcome };
        let delay = self.delay(answer);
        let accepted = answer.outcome == Outcome::Accepted;
        Some(Change {
            epoch: Some(epoch),
            error: answer.message.clone().filter(|_| !accepted),
            retry_at: Some(self.store.now().plus(delay)),
            ..Change::new(scope_id.service_id().clone(), batch_id, event)
        })
    }
}

impl<S> StoreObserver<S> {
    /// How long a batch that was not taken waits. Who parks it knows when to look again.
    fn delay(&self, answer: &SubmissionAnswer) -> Duration {
        match (answer.outcome, answer.retry_after) {
            (Outcome::Parked, Some(pause)) => pause,
            (_, asked) => self.delay.max(asked.unwrap_or_default()),
        }
    }
}

impl<S: ScopeId> GroupObserver for StoreObserver<S> {
    type Id = S;

    fn notify_group(&self, outcomes: &[SubmissionOutcome<S>]) -> BatchResult<()> {
        let changes: Vec<Change> =
            outcomes.iter().filter_map(|outcome| self.change(outcome)).collect();
        let recorded = self.store.record(&changes)?;
        for (change, recorded) in changes.iter().zip(recorded) {
            if !matches!(recorded, ChangeOutcome::Applied { .. }) {
                info!(batch_id:% = change.batch_id, service:% = change.service_id;
                    "an outcome came too late, and changed nothing");
            }
            (self.recorded)(change, recorded);
        }
        Ok(())
    }
}

impl<S> fmt::Debug for StoreObserver<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreObserver").field("delay", &self.delay).finish_non_exhaustive()
    }
}
