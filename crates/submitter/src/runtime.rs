use std::sync::Arc;

use grid_batch_core::{Clock, ScopeId};
use grid_batch_support::shut_down_runtime;
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc::UnboundedReceiver,
};

use crate::{
    SubmitterOptions,
    command::CommandFactory,
    controller::SubmissionController,
    shutdown_deadline::ShutdownDeadline,
    slots::SubmissionSlots,
    task::{LeaderMessage, OutcomeReports, TaskHandler},
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
    pub(crate) fn run(self, runtime: Runtime) {
        runtime.block_on(self.spawn_tasks());
        shut_down_runtime(runtime);
    }

    async fn spawn_tasks(mut self) {
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

/// Builds the runtime of the submission tasks.
pub(crate) fn build_runtime(worker_threads: usize) -> std::io::Result<Runtime> {
    // Adapters may need more than time, so every driver that tokio was compiled with is enabled.
    Builder::new_multi_thread()
        .worker_threads(worker_threads)
        .thread_name("submit-worker")
        .enable_all()
        .build()
}
