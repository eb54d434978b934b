use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use grid_batch_core::ScopeId;
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc::UnboundedReceiver,
};

use crate::{
    SubmitterOptions,
    command::CommandFactory,
    controller::SubmissionController,
    drain::Drain,
    message::{LeaderMessage, TaskMessage},
    places::Places,
    task::{Report, TaskHandler},
};

/// The async runtime: each submission becomes a task of it.
pub(crate) struct TaskRuntime<S: ScopeId> {
    pub(crate) submissions: UnboundedReceiver<LeaderMessage<S>>,
    pub(crate) listener: mpsc::Sender<TaskMessage<S>>,
    pub(crate) factory: Arc<CommandFactory<S>>,
    pub(crate) options: Arc<SubmitterOptions>,
    pub(crate) drain: Drain,
    pub(crate) places: Places,
}

impl<S: ScopeId> TaskRuntime<S> {
    /// Runs tasks until the leader has ended and the last of them too.
    pub(crate) fn run(self, runtime: Runtime) {
        /// For what an adapter may have left behind, such as a name being looked up.
        const LEFTOVERS: Duration = Duration::from_secs(1);
        runtime.block_on(self.spawn_all());
        runtime.shutdown_timeout(LEFTOVERS);
    }

    async fn spawn_all(mut self) {
        let mut rng = self.options.rng();
        while let Some(message) = self.submissions.recv().await {
            tokio::spawn(self.handler(message, rng.fork()).run());
        }
        self.places.all_free().await;
    }

    fn handler(&self, message: LeaderMessage<S>, rng: fastrand::Rng) -> TaskHandler<S> {
        let LeaderMessage { submission, taken_at, place } = message;
        let report = Report::new(&submission, taken_at, place.telling, self.listener.clone());
        let controller = SubmissionController::new(
            self.factory.command(submission),
            Arc::clone(&self.options),
            self.drain.clone(),
            rng,
            taken_at,
        );
        TaskHandler { controller, report, sending: place.sending }
    }
}

/// A runtime for the tasks.
pub(crate) fn build(worker_threads: usize) -> std::io::Result<Runtime> {
    // Adapters may need more than time: whatever tokio was compiled with is enabled.
    Builder::new_multi_thread()
        .worker_threads(worker_threads)
        .thread_name("submit-worker")
        .enable_all()
        .build()
}
