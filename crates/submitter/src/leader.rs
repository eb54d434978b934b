use std::sync::{Arc, mpsc};

use grid_batch_core::{Outcome, ScopeId, Submission, SubmissionOutcome};
use log::{Level, error, log};
use tokio::{
    runtime::Handle,
    sync::mpsc::UnboundedSender,
    time::{Instant, sleep},
};

use crate::{
    SubmitterCounters, SubmitterOptions, SubmitterWaker,
    command::error_answer,
    drain::Drain,
    message::{LeaderMessage, TaskMessage},
    panics::catch,
    places::{Place, Places},
    task::Report,
};

/// Where submissions come from.
pub(crate) type Queue<S> = Box<dyn Iterator<Item = Submission<S>> + Send>;

/// Polls the queue and hands over what it gives; when it ends, so does everything else.
pub(crate) struct Leader<S: ScopeId> {
    pub(crate) queue: Queue<S>,
    pub(crate) runtime: Handle,
    pub(crate) submissions: UnboundedSender<LeaderMessage<S>>,
    pub(crate) listener: mpsc::Sender<TaskMessage<S>>,
    /// Whether anyone wants to know that a submission has begun.
    pub(crate) tells_begin: bool,
    pub(crate) options: Arc<SubmitterOptions>,
    pub(crate) waker: SubmitterWaker,
    pub(crate) drain: Drain,
    pub(crate) places: Places,
    pub(crate) counters: SubmitterCounters,
}

impl<S: ScopeId> Leader<S> {
    /// Polls until it is to stop, and gives the queue back.
    pub(crate) fn run(mut self) -> Queue<S> {
        while let Some(place) = self.wait_for_place() {
            match self.poll() {
                Some(submission) => self.hand_over(submission, place),
                None => {
                    drop(place);
                    self.rest();
                }
            }
        }
        self.queue
    }

    /// Room for one submission, or `None` when nothing is to be taken any more.
    fn wait_for_place(&self) -> Option<Place> {
        if self.drain.has_begun() {
            return None;
        }
        self.places.try_take().or_else(|| {
            self.runtime.block_on(async {
                tokio::select! {
                    biased;
                    _ = self.drain.begun() => None,
                    place = self.places.take() => place,
                }
            })
        })
    }

    fn poll(&mut self) -> Option<Submission<S>> {
        catch(|| self.queue.next()).unwrap_or_else(|panic| {
            self.counters.count_panic();
            error!(error = panic.as_str(); "the queue panicked; it is polled again later");
            None
        })
    }

    /// Waits until it is worth polling again, or time to stop.
    fn rest(&self) {
        self.runtime.block_on(async {
            tokio::select! {
                _ = self.drain.begun() => {}
                () = self.waker.woken() => {}
                () = sleep(self.options.poll_interval) => {}
            }
        });
    }

    fn hand_over(&self, submission: Submission<S>, place: Place) {
        self.counters.count_taken();
        let (batch, service) = (submission.batch_header(), submission.scope_id());
        // A batch that is parked comes again and again; what came of it says more.
        let is_first = submission.attempt_id().is_none_or(|attempt_id| attempt_id.attempt == 1);
        let level = if is_first { Level::Info } else { Level::Debug };
        log!(level, batch = batch, service:% = service; "a batch was taken from the queue");
        if self.tells_begin {
            let (batch_header, scope_id) = (batch.to_owned(), service.clone());
            // If the listener were gone, the end of the submission would say so in the log.
            let _ = self.listener.send(TaskMessage::Begun { batch_header, scope_id });
        }
        let message = LeaderMessage { submission, taken_at: Instant::now(), place };
        if let Err(refused) = self.submissions.send(message) {
            self.report_not_sent(refused.0);
        }
    }

    /// The runtime is gone, which should never be: what was taken is reported all the same.
    fn report_not_sent(&self, message: LeaderMessage<S>) {
        let LeaderMessage { submission, taken_at, place } = message;
        let report = Report::new(&submission, taken_at, place.telling, self.listener.clone());
        let attempt_id = submission.attempt_id();
        let (batch_header, scope_id, _) = submission.into_parts();
        let answer = error_answer(Outcome::NotSent, "there is no runtime to send it");
        report.send(SubmissionOutcome { batch_header, scope_id, attempt_id, attempts: 0, answer });
    }
}
