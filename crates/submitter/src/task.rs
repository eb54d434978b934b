use std::sync::mpsc;

use grid_batch_core::{AttemptId, Outcome, ScopeId, Submission, SubmissionOutcome};
use log::error;
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use crate::{
    command::error_answer,
    controller::SubmissionController,
    message::{Ended, TaskMessage},
};

/// Runs the controller of one submission and sends its outcome to the listener.
pub(crate) struct TaskHandler<S: ScopeId> {
    pub(crate) controller: SubmissionController<S>,
    pub(crate) report: Report<S>,
    pub(crate) sending: OwnedSemaphorePermit,
}

impl<S: ScopeId> TaskHandler<S> {
    pub(crate) async fn run(self) {
        let Self { controller, report, sending } = self;
        let outcome = controller.run().await;
        report.send(outcome);
        // Only now: whoever waits for all places knows that everything was reported.
        drop(sending);
    }
}

/// Reports on one submission: exactly once, whatever happens to the task that holds it.
pub(crate) struct Report<S: ScopeId>(Option<Open<S>>);

struct Open<S: ScopeId> {
    batch_header: String,
    scope_id: S,
    attempt_id: Option<AttemptId>,
    taken_at: Instant,
    telling: OwnedSemaphorePermit,
    listener: mpsc::Sender<TaskMessage<S>>,
}

impl<S: ScopeId> Report<S> {
    pub(crate) fn new(
        submission: &Submission<S>,
        taken_at: Instant,
        telling: OwnedSemaphorePermit,
        listener: mpsc::Sender<TaskMessage<S>>,
    ) -> Self {
        let batch_header = submission.batch_header().to_owned();
        let scope_id = submission.scope_id().clone();
        let attempt_id = submission.attempt_id();
        Self(Some(Open { batch_header, scope_id, attempt_id, taken_at, telling, listener }))
    }

    /// Reports that this is what came of it.
    pub(crate) fn send(mut self, outcome: SubmissionOutcome<S>) {
        if let Some(open) = self.0.take() {
            open.send(outcome);
        }
    }
}

impl<S: ScopeId> Drop for Report<S> {
    /// A task that ended without an outcome may have sent the batch.
    fn drop(&mut self) {
        let Some(open) = self.0.take() else { return };
        let outcome = SubmissionOutcome {
            batch_header: open.batch_header.clone(),
            scope_id: open.scope_id.clone(),
            attempt_id: open.attempt_id,
            attempts: 1,
            answer: error_answer(Outcome::Ambiguous, "the submission was broken off"),
        };
        open.send(outcome);
    }
}

impl<S: ScopeId> Open<S> {
    fn send(self, outcome: SubmissionOutcome<S>) {
        let Self { taken_at, telling, listener, batch_header, .. } = self;
        let ended = Ended { outcome, elapsed: taken_at.elapsed(), telling };
        if listener.send(ended.into_message()).is_err() {
            error!(batch = batch_header.as_str(); "there is nobody to tell of the batch's outcome");
        }
    }
}
