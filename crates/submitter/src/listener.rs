use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use grid_batch_core::ScopeId;
use grid_batch_core::ledger::{Outcome, SubmissionOutcome};
use grid_batch_support::{GroupPause, catch_panic};
use grid_batch_work::WorkTable;
use log::{Level, error, log};
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    DelayedServices, SubmitterCounters, SubmitterObserver,
    group_notifier::GroupNotifier,
    task::{EndedSubmission, TaskMessage},
};

/// Receives the outcomes of submissions, logs them and notifies the observers.
pub(crate) struct Listener<S: ScopeId> {
    pub(crate) messages: Receiver<TaskMessage<S>>,
    pub(crate) observer: Option<Arc<dyn SubmitterObserver<Id = S>>>,
    pub(crate) group: Option<GroupNotifier<S>>,
    pub(crate) group_limit: usize,
    pub(crate) counters: SubmitterCounters,
    pub(crate) delayed: DelayedServices,
    /// When these are looked at next.
    pub(crate) next_look: Instant,
    pub(crate) table: WorkTable,
    pub(crate) pause: GroupPause,
}

/// How often the services are looked at whose batches are not accepted.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

impl<S: ScopeId> Listener<S> {
    /// Delivers what an earlier run left undelivered, then every message until all senders are
    /// gone. Returns the outcomes that could not be delivered.
    pub(crate) fn run(
        mut self,
        undelivered: Vec<SubmissionOutcome<S>>,
    ) -> Vec<SubmissionOutcome<S>> {
        self.notify_group(undelivered);
        self.counters.set_undelivered(0);
        while let Some(first) = self.receive() {
            let (outcomes, permits) = self.gather(first);
            let started = Instant::now();
            let count = outcomes.len();
            self.notify_group(outcomes);
            self.pause.ended(started, count, self.table.ledger_time());
            drop(permits);
        }
        let undelivered = self.group.map(GroupNotifier::finish).unwrap_or_default();
        self.counters.set_undelivered(undelivered.len());
        undelivered
    }

    /// Waits for a message, and meanwhile delivers what was set aside and logs what is delayed. `None`:
    /// there will be no more.
    fn receive(&mut self) -> Option<TaskMessage<S>> {
        loop {
            self.look();
            let set_aside = self.group.as_mut().filter(|group| group.next_retry().is_some());
            let retry = set_aside.map(|group| {
                group.retry_set_aside();
                group.next_retry().unwrap_or_default()
            });
            let look = (!self.delayed.is_empty()).then_some(LOOK_INTERVAL);
            let Some(wait) = retry.into_iter().chain(look).min() else {
                return self.messages.recv().ok();
            };
            match self.messages.recv_timeout(wait) {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Logs what is delayed, from time to time: it takes the longer the more services are.
    fn look(&mut self) {
        let now = Instant::now();
        if now >= self.next_look {
            self.delayed.log_changes();
            self.next_look = now + LOOK_INTERVAL;
        }
    }

    /// Handles the messages that have arrived, and those that arrive before the next group may be delivered, up
    /// to one group. The permits are held until the group observer has the outcomes too.
    fn gather(
        &self,
        first: TaskMessage<S>,
    ) -> (Vec<SubmissionOutcome<S>>, Vec<Arc<OwnedSemaphorePermit>>) {
        let (mut outcomes, mut permits) = (Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(message) = next {
            if let Some(EndedSubmission { outcome, reporting, .. }) = self.handle(message) {
                outcomes.push(outcome);
                permits.push(reporting);
            }
            if outcomes.len() >= self.group_limit {
                break;
            }
            next = self.messages.recv_timeout(self.pause.wait()).ok();
        }
        (outcomes, permits)
    }

    fn handle(&self, message: TaskMessage<S>) -> Option<EndedSubmission<S>> {
        match message {
            TaskMessage::Started { batch_header, scope_id } => {
                let batch_id = batch_header.clone();
                self.notify(&batch_id, |it| it.notify(batch_header, scope_id, None, None));
                None
            }
            TaskMessage::SubmissionResponse(ended) | TaskMessage::ErrorResponse(ended) => {
                self.log_and_count(&ended);
                let outcome = &ended.outcome;
                self.notify(&outcome.batch_header, |it| it.submission_ended(outcome));
                Some(ended)
            }
        }
    }

    fn log_and_count(&self, ended: &EndedSubmission<S>) {
        let SubmissionOutcome { batch_header, scope_id, attempts, answer, .. } = &ended.outcome;
        self.counters.count_outcome(answer.outcome);
        let is_news = self.delayed.observe(scope_id.service_id(), batch_header, answer);
        let message = answer.message.as_deref().map(log_excerpt);
        log!(
            log_level(&ended.outcome, is_news),
            batch_id = batch_header.as_str(), service:% = scope_id, attempts = *attempts,
            elapsed_ms = u64::try_from(ended.elapsed.as_millis()).unwrap_or(u64::MAX),
            outcome:% = answer.outcome, status = answer.status,
            message = message.as_deref();
            "submission ended"
        );
    }

    fn notify(&self, batch_id: &str, notify: impl FnOnce(&dyn SubmitterObserver<Id = S>)) {
        let Some(observer) = &self.observer else { return };
        if let Err(panic) = catch_panic(|| notify(&**observer)) {
            self.counters.count_panic();
            self.counters.count_observer_failure();
            error!(batch_id, error = panic.message(); "the observer panicked");
        }
    }

    fn notify_group(&mut self, outcomes: Vec<SubmissionOutcome<S>>) {
        if let Some(group) = &mut self.group {
            group.notify(outcomes);
        }
    }
}

/// A batch that is not accepted is tried again and again, so that is logged once, and later with a
/// warning. The gate that parked a batch logs that itself.
fn log_level<S: ScopeId>(outcome: &SubmissionOutcome<S>, is_news: bool) -> Level {
    match outcome.answer.outcome {
        Outcome::Parked | Outcome::PoolParked => Level::Debug,
        Outcome::Busy | Outcome::NotSent | Outcome::Refused | Outcome::RefusedBatch if !is_news => {
            Level::Debug
        }
        Outcome::Ambiguous if outcome.answer.status.is_none() => Level::Warn,
        _ => Level::Info,
    }
}

/// The beginning of a ledger's message, escaped, for one line of the log.
pub(crate) fn log_excerpt(message: &str) -> String {
    const LONGEST: usize = 256;
    message[..message.floor_char_boundary(LONGEST)].escape_debug().to_string()
}
