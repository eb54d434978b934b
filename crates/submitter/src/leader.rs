use std::{sync::Arc, time::Duration};

use grid_batch_core::ledger::{Outcome, Submission};
use grid_batch_core::{Moment, ScopeId};
use grid_batch_support::catch_panic;
use log::{Level, error, log};
use tokio::{
    runtime::Handle,
    sync::{Notify, mpsc::UnboundedSender},
    time::{Instant, sleep},
};

use crate::{
    command::error_answer,
    runnable::SubmitterParts,
    shutdown_deadline::ShutdownDeadline,
    slots::{SubmissionSlot, SubmissionSlots},
    task::{LeaderMessage, OutcomeReports, TaskMessage},
};

/// The source of submissions.
pub(crate) type Queue<S> = Box<dyn Iterator<Item = Submission<S>> + Send>;

/// The time after which the queue may have something that nothing wakes the submitter for.
pub(crate) type NextDue = Arc<dyn Fn() -> Option<Duration> + Send + Sync>;

/// Polls the queue and hands submissions to the runtime. The other threads end after it.
pub(crate) struct Leader<S: ScopeId> {
    pub(crate) parts: Arc<SubmitterParts<S>>,
    pub(crate) queue: Queue<S>,
    pub(crate) runtime: Handle,
    pub(crate) submissions: UnboundedSender<LeaderMessage<S>>,
    pub(crate) reports: OutcomeReports<S>,
    pub(crate) shutdown: ShutdownDeadline,
    pub(crate) slots: SubmissionSlots,
}

impl<S: ScopeId> Leader<S> {
    /// Polls until a shutdown is requested, and returns the queue.
    pub(crate) fn run(mut self) -> Queue<S> {
        while let Some(slot) = self.acquire_slot() {
            match self.poll() {
                Some(submission) => self.start(submission, slot),
                None => {
                    drop(slot);
                    self.wait_for_work();
                }
            }
        }
        self.queue
    }

    /// Waits for a slot. Returns `None` when a shutdown is requested.
    fn acquire_slot(&self) -> Option<SubmissionSlot> {
        if self.shutdown.is_requested() {
            return None;
        }
        self.slots.try_acquire().or_else(|| {
            self.runtime.block_on(async {
                tokio::select! {
                    biased;
                    () = self.shutdown.requested() => None,
                    slot = self.slots.acquire() => slot,
                }
            })
        })
    }

    fn poll(&mut self) -> Option<Submission<S>> {
        catch_panic(|| self.queue.next()).unwrap_or_else(|panic| {
            self.parts.counters.count_panic();
            error!(error = panic.message(); "the queue panicked; it is polled again later");
            None
        })
    }

    fn wait_for_work(&self) {
        let due = (self.parts.next_due)().unwrap_or(Duration::MAX);
        self.runtime.block_on(async {
            tokio::select! {
                () = self.shutdown.requested() => {}
                () = self.parts.waker.woken() => {}
                () = sleep(due.min(self.parts.options.poll_interval)) => {}
            }
        });
    }

    fn start(&self, submission: Submission<S>, slot: SubmissionSlot) {
        self.tell_taken(&submission);
        submission.list().iter().for_each(|listed| self.tell_taken(listed));
        let taken_at = submission.taken_at().unwrap_or_else(|| Moment::now(&*self.parts.clock));
        let message = LeaderMessage { submission, taken_at, polled_at: Instant::now(), slot };
        if let Err(unsent) = self.submissions.send(message) {
            self.report_not_sent(unsent.0);
        }
    }

    fn tell_taken(&self, submission: &Submission<S>) {
        self.parts.counters.count_taken();
        let (batch, service) = (submission.batch_header(), submission.scope_id());
        // A batch that waits is taken again and again, so only its first attempt is logged at info.
        let is_first = submission.attempt_id().is_none_or(|attempt_id| attempt_id.attempt == 1);
        let level = if is_first { Level::Info } else { Level::Debug };
        log!(level, batch_id = batch, service:% = service; "batch taken from the queue");
        if self.parts.observers.single.is_some() {
            let (batch_header, scope_id) = (batch.to_owned(), service.clone());
            // If the listener has ended, the outcome reporter logs it.
            let _ = self.reports.listener.send(TaskMessage::Started { batch_header, scope_id });
        }
    }

    /// Reports a submission that the runtime cannot take because it has ended unexpectedly.
    fn report_not_sent(&self, message: LeaderMessage<S>) {
        let LeaderMessage { submission, polled_at, slot, .. } = message;
        let reporters = self.reports.reporters(&submission, polled_at, slot.reporting);
        let command = self.parts.factory.command(submission);
        let answer = error_answer(Outcome::NotSent, "the submitter's runtime has ended");
        for (reporter, outcome) in reporters.into_iter().zip(command.into_outcomes(answer)) {
            reporter.report(outcome);
        }
    }
}

/// Makes a submitter poll its queue now, instead of at the next poll interval.
///
/// A wake-up is never lost: a submitter that is busy polls once more before it waits. Clones wake
/// the same submitter, also after it was stopped and started again.
#[derive(Debug, Clone, Default)]
pub struct SubmitterWaker(Arc<Notify>);

impl SubmitterWaker {
    /// A waker, to be given to a [`SubmitterBuilder`](crate::SubmitterBuilder) and, as a clone, to
    /// its queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the submitter poll its queue now.
    pub fn wake(&self) {
        self.0.notify_one();
    }

    pub(crate) async fn woken(&self) {
        self.0.notified().await;
    }
}
