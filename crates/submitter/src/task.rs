use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use grid_batch_core::batches::Deadline;
use grid_batch_core::ledger::{AttemptId, Outcome, Submission, SubmissionOutcome};
use grid_batch_core::queue::Admission;
use grid_batch_core::{Moment, ScopeId};
use grid_batch_work::WorkTable;
use log::error;
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc::UnboundedReceiver},
    time::Instant,
};

use crate::{
    command::error_answer,
    controller::SubmissionController,
    runnable::SubmitterParts,
    shutdown_deadline::ShutdownDeadline,
    slots::{SubmissionSlot, SubmissionSlots},
};

/// Sent by the leader to the runtime. The leader closes the channel when it ends.
pub(crate) struct LeaderMessage<S: ScopeId> {
    pub(crate) submission: Submission<S>,
    /// When the submission was taken from its store, or from the queue if that is not known: its time
    /// limit starts then.
    pub(crate) taken_at: Moment,
    /// When the queue returned it.
    pub(crate) polled_at: Instant,
    pub(crate) slot: SubmissionSlot,
}

/// Sent to the listener.
pub(crate) enum TaskMessage<S: ScopeId> {
    /// A submission was taken from the queue.
    Started { batch_header: String, scope_id: S },
    /// A submission ended with an HTTP response of the ledger.
    SubmissionResponse(EndedSubmission<S>),
    /// A submission ended without an HTTP response.
    ErrorResponse(EndedSubmission<S>),
}

/// A submission that has ended.
pub(crate) struct EndedSubmission<S: ScopeId> {
    pub(crate) outcome: SubmissionOutcome<S>,
    /// The time since the submission was taken from the queue.
    pub(crate) elapsed: Duration,
    /// Held until the observers have the outcomes of all batches of a list.
    pub(crate) reporting: Arc<OwnedSemaphorePermit>,
}

impl<S: ScopeId> EndedSubmission<S> {
    pub(crate) fn into_message(self) -> TaskMessage<S> {
        match self.outcome.answer.status {
            Some(_) => TaskMessage::SubmissionResponse(self),
            None => TaskMessage::ErrorResponse(self),
        }
    }
}

/// Runs each submission as a task of the async runtime.
pub(crate) struct TaskRuntime<S: ScopeId> {
    pub(crate) parts: Arc<SubmitterParts<S>>,
    pub(crate) submissions: UnboundedReceiver<LeaderMessage<S>>,
    pub(crate) reports: OutcomeReports<S>,
    pub(crate) shutdown: ShutdownDeadline,
    pub(crate) slots: SubmissionSlots,
}

impl<S: ScopeId> TaskRuntime<S> {
    /// Runs until the leader and every task have ended.
    pub(crate) async fn run(mut self) {
        while let Some(message) = self.submissions.recv().await {
            tokio::spawn(self.handler(message).run());
        }
        self.slots.wait_until_idle().await;
    }

    fn handler(&self, message: LeaderMessage<S>) -> TaskHandler<S> {
        let LeaderMessage { submission, taken_at, polled_at, slot } = message;
        let reporters = self.reports.reporters(&submission, polled_at, slot.reporting);
        let controller = SubmissionController::new(
            self.parts.factory.command(submission),
            Arc::clone(&self.parts.options),
            self.shutdown.clone(),
            Arc::clone(&self.parts.clock),
            taken_at,
        );
        TaskHandler { controller, reporters, sending: slot.sending }
    }
}

/// Runs the controller of one submission and sends the outcomes of its batches to the listener.
pub(crate) struct TaskHandler<S: ScopeId> {
    pub(crate) controller: SubmissionController<S>,
    /// In the order of the batches.
    pub(crate) reporters: Vec<OutcomeReporter<S>>,
    pub(crate) sending: OwnedSemaphorePermit,
}

impl<S: ScopeId> TaskHandler<S> {
    pub(crate) async fn run(self) {
        let Self { controller, reporters, sending } = self;
        let outcomes = controller.run().await;
        for (reporter, outcome) in reporters.into_iter().zip(outcomes) {
            reporter.report(outcome);
        }
        // Released last: when all permits are free, every outcome has been reported.
        drop(sending);
    }
}

/// Where outcomes are reported.
pub(crate) struct OutcomeReports<S: ScopeId> {
    pub(crate) listener: mpsc::Sender<TaskMessage<S>>,
    /// Gets the end of each submission.
    pub(crate) admission: Option<Arc<dyn Admission>>,
    pub(crate) table: WorkTable,
}

impl<S: ScopeId> Clone for OutcomeReports<S> {
    fn clone(&self) -> Self {
        let Self { listener, admission, table } = self;
        let (listener, admission) = (listener.clone(), admission.clone());
        Self { listener, admission, table: table.clone() }
    }
}

impl<S: ScopeId> OutcomeReports<S> {
    /// Reporters for this submission and those of its list.
    pub(crate) fn reporters(
        &self,
        submission: &Submission<S>,
        polled_at: Instant,
        reporting: OwnedSemaphorePermit,
    ) -> Vec<OutcomeReporter<S>> {
        let reporting = Arc::new(reporting);
        let all = [submission].into_iter().chain(submission.list());
        all.map(|submission| self.reporter(submission, polled_at, Arc::clone(&reporting))).collect()
    }

    fn reporter(
        &self,
        submission: &Submission<S>,
        polled_at: Instant,
        reporting: Arc<OwnedSemaphorePermit>,
    ) -> OutcomeReporter<S> {
        OutcomeReporter(Some(UnreportedSubmission {
            batch_header: submission.batch_header().to_owned(),
            scope_id: submission.scope_id().clone(),
            attempt_id: submission.attempt_id(),
            deadline: submission.deadline(),
            polled_at,
            reporting,
            reports: self.clone(),
        }))
    }
}

/// Reports the outcome of one submission exactly once, even if its task panics or is aborted.
pub(crate) struct OutcomeReporter<S: ScopeId>(Option<UnreportedSubmission<S>>);

struct UnreportedSubmission<S: ScopeId> {
    batch_header: String,
    scope_id: S,
    attempt_id: Option<AttemptId>,
    deadline: Option<Deadline>,
    polled_at: Instant,
    reporting: Arc<OwnedSemaphorePermit>,
    reports: OutcomeReports<S>,
}

impl<S: ScopeId> OutcomeReporter<S> {
    /// Reports this outcome.
    pub(crate) fn report(mut self, outcome: SubmissionOutcome<S>) {
        if let Some(submission) = self.0.take() {
            submission.report(outcome);
        }
    }
}

impl<S: ScopeId> Drop for OutcomeReporter<S> {
    /// A task that ended without an outcome may have sent the batch: the outcome is ambiguous.
    fn drop(&mut self) {
        let Some(submission) = self.0.take() else { return };
        let outcome = SubmissionOutcome {
            batch_header: submission.batch_header.clone(),
            scope_id: submission.scope_id.clone(),
            attempt_id: submission.attempt_id,
            deadline: submission.deadline,
            attempts: 1,
            answer: error_answer(Outcome::Ambiguous, "the submission was aborted"),
        };
        submission.report(outcome);
    }
}

impl<S: ScopeId> UnreportedSubmission<S> {
    fn report(self, outcome: SubmissionOutcome<S>) {
        let Self { polled_at, reporting, reports, batch_header, scope_id, attempt_id, .. } = self;
        let service_id = scope_id.service_id();
        if let Some(attempt_id) = attempt_id {
            reports.table.lock().attempt_ended(service_id.as_str(), &batch_header, attempt_id);
        }
        if let Some(admission) = &reports.admission {
            admission.submission_ended(service_id);
        }
        let ended = EndedSubmission { outcome, elapsed: polled_at.elapsed(), reporting };
        if reports.listener.send(ended.into_message()).is_err() {
            error!(
                batch_id = batch_header.as_str();
                "the outcome of a batch is lost: the listener thread has ended"
            );
        }
    }
}
