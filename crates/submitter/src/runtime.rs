use std::sync::Arc;

use grid_batch_core::{Clock, ScopeId};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::{
    SubmitterOptions,
    command::CommandFactory,
    controller::SubmissionController,
    message::LeaderMessage,
    shutdown_deadline::ShutdownDeadline,
    slots::SubmissionSlots,
    task::{OutcomeReports, TaskHandler},
};

/// Runs each submission as a task of the async runtime.
pub(crate) struct TaskRuntime<S: ScopeId> {
    pub(crate) submissions: UnboundedReceiver<LeaderMessage<S>>,
    pub(crate) reports: OutcomeReports<S>,
    pub(crate) factory: Arc<CommandFactory<S>>,
    pub(crate) options: Arc<SubmitterOptions>,
    pub(crate) shutdown: ShutdownDeadline,
    pub(crate) slots: SubmissionSlots,
    pub(crate) clock: Arc<dyn Clock>,
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
        let reporter = self.reports.reporter(&submission, polled_at, slot.reporting);
        let controller = SubmissionController::new(
            self.factory.command(submission),
            Arc::clone(&self.options),
            self.shutdown.clone(),
            (Arc::clone(&self.clock), taken_at),
        );
        TaskHandler { controller, reporter, sending: slot.sending }
    }
}
