use std::sync::{Arc, mpsc::Receiver};

use grid_batch_core::{Outcome, ScopeId, SubmissionOutcome, SubmitterObserver};
use log::{Level, error, log};
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    SubmitterCounters,
    group::GroupTeller,
    message::{Ended, TaskMessage},
    panics::catch,
};

/// Receives what becomes of submissions, and tells the observers.
pub(crate) struct Listener<S: ScopeId> {
    pub(crate) messages: Receiver<TaskMessage<S>>,
    pub(crate) observer: Option<Arc<dyn SubmitterObserver<Id = S>>>,
    pub(crate) group: Option<GroupTeller<S>>,
    pub(crate) group_limit: usize,
    pub(crate) counters: SubmitterCounters,
}

impl<S: ScopeId> Listener<S> {
    /// Listens until nobody is left to say anything; first of all it tells of what an earlier run
    /// left over. Gives back what could not be told.
    pub(crate) fn run(mut self, left_over: Vec<SubmissionOutcome<S>>) -> Vec<SubmissionOutcome<S>> {
        self.tell_group(left_over);
        self.counters.set_undelivered(0);
        while let Ok(first) = self.messages.recv() {
            let (outcomes, places) = self.gather(first);
            self.tell_group(outcomes);
            drop(places);
        }
        let left_over = self.group.map(GroupTeller::finish).unwrap_or_default();
        self.counters.set_undelivered(left_over.len());
        left_over
    }

    /// Handles everything that is there, up to a group, one at a time. The places are held until
    /// the group observer knows too.
    fn gather(
        &self,
        first: TaskMessage<S>,
    ) -> (Vec<SubmissionOutcome<S>>, Vec<OwnedSemaphorePermit>) {
        let (mut outcomes, mut places) = (Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(message) = next {
            if let Some(Ended { outcome, telling, .. }) = self.handle(message) {
                outcomes.push(outcome);
                places.push(telling);
            }
            if outcomes.len() >= self.group_limit {
                break;
            }
            next = self.messages.try_recv().ok();
        }
        (outcomes, places)
    }

    fn handle(&self, message: TaskMessage<S>) -> Option<Ended<S>> {
        let (level, ended) = match message {
            TaskMessage::Begun { batch_header, scope_id } => {
                self.notify(batch_header, scope_id, None, None);
                return None;
            }
            TaskMessage::SubmissionResponse(ended) => (Level::Info, ended),
            TaskMessage::ErrorResponse(ended) => (Level::Warn, ended),
        };
        // Whoever parks it says so once, and not each time that it is looked at.
        let is_parked = ended.outcome.answer.outcome == Outcome::Parked;
        let level = if is_parked { Level::Debug } else { level };
        self.note(level, &ended);
        self.notify_end(&ended.outcome);
        Some(ended)
    }

    fn note(&self, level: Level, ended: &Ended<S>) {
        let SubmissionOutcome { batch_header, scope_id, attempts, answer, .. } = &ended.outcome;
        self.counters.count_outcome(answer.outcome);
        let message = answer.message.as_deref().map(line);
        log!(
            level,
            batch = batch_header.as_str(), service:% = scope_id, attempts = *attempts,
            elapsed_ms = u64::try_from(ended.elapsed.as_millis()).unwrap_or(u64::MAX),
            outcome:% = answer.outcome, status = answer.status,
            message = message.as_deref();
            "the outcome of a batch arrived"
        );
    }

    fn notify_end(&self, outcome: &SubmissionOutcome<S>) {
        if self.observer.is_none() {
            return;
        }
        let SubmissionOutcome { batch_header, scope_id, answer, .. } = outcome.clone();
        // Without either it would look as if the submission had begun.
        let message = match (answer.status, answer.message) {
            (None, None) => Some(answer.outcome.to_string()),
            (_, message) => message,
        };
        self.notify(batch_header, scope_id, answer.status, message);
    }

    fn notify(&self, header: String, scope: S, status: Option<u16>, message: Option<String>) {
        let Some(observer) = &self.observer else { return };
        let batch = header.clone();
        if let Err(panic) = catch(|| observer.notify(header, scope, status, message)) {
            self.counters.count_panic();
            self.counters.count_observer_failure();
            error!(batch = batch.as_str(), error = panic.as_str(); "the observer panicked");
        }
    }

    fn tell_group(&mut self, outcomes: Vec<SubmissionOutcome<S>>) {
        if let Some(group) = &mut self.group {
            group.tell(outcomes);
        }
    }
}

/// As much of a ledger's message as belongs in one line of a log.
fn line(message: &str) -> String {
    const BYTES: usize = 256;
    message[..message.floor_char_boundary(BYTES)].escape_debug().to_string()
}
