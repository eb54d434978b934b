use std::{
    collections::HashMap,
    fmt,
    mem::replace,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use grid_batch_core::{ScopeId, ServiceId, Submission, SubmittedBatch, TakenBatch};

/// The attempts that were taken and have not ended, and which of them were *called back*: they are not sent.
///
/// The submitter asks directly before each time it sends a batch. So what is called back before it is sent for
/// the first time certainly does not reach the ledger. Clones share the attempts.
#[derive(Clone, Default)]
pub struct Recalls(Arc<Mutex<HashMap<SubmittedBatch, Stage>>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It waits for a slot, or for its node.
    Waiting,
    /// It was sent, or is about to be.
    Sending,
    /// It is not sent, or not sent again.
    CalledBack,
}

impl Recalls {
    /// No attempts.
    pub fn new() -> Self {
        Self::default()
    }

    /// These batches were taken from the store.
    pub fn taken(&self, batches: &[TakenBatch]) {
        let mut attempts = self.lock();
        attempts.extend(batches.iter().map(|batch| (attempt_of(batch), Stage::Waiting)));
    }

    /// These batches were given back to the store before they were sent.
    pub fn given_back(&self, batches: &[TakenBatch]) {
        let mut attempts = self.lock();
        for batch in batches {
            attempts.remove(&attempt_of(batch));
        }
    }

    /// The services of which a batch waits to be sent, or may be sent to another node.
    pub fn services(&self) -> Vec<ServiceId> {
        let attempts = self.lock();
        let open = attempts.iter().filter(|(_, stage)| **stage != Stage::CalledBack);
        let mut services: Vec<_> = open.map(|(attempt, _)| attempt.service_id.clone()).collect();
        services.sort_unstable();
        services.dedup();
        services
    }

    /// From now on, none of these attempts is sent, or sent to another node. Returns those that certainly were not
    /// sent, which can be given back to the store.
    pub fn call_back(&self, batches: Vec<SubmittedBatch>) -> Vec<SubmittedBatch> {
        let mut attempts = self.lock();
        let mut is_unsent = |batch: &SubmittedBatch| {
            let stage = attempts.get_mut(batch);
            stage.is_some_and(|stage| replace(stage, Stage::CalledBack) == Stage::Waiting)
        };
        batches.into_iter().filter(|batch| is_unsent(batch)).collect()
    }

    /// Whether the batch may be sent now. From then on, it counts as sent.
    pub(crate) fn may_send<S: ScopeId>(&self, submission: &Submission<S>) -> bool {
        let Some(attempt) = attempt_of_submission(submission) else { return true };
        match self.lock().get_mut(&attempt) {
            Some(Stage::CalledBack) => false,
            Some(stage) => {
                *stage = Stage::Sending;
                true
            }
            None => true,
        }
    }

    /// The submission has ended.
    pub(crate) fn ended(&self, attempt: &SubmittedBatch) {
        self.lock().remove(attempt);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SubmittedBatch, Stage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The attempt of a submission, if it was taken from a store.
pub(crate) fn attempt_of_submission<S: ScopeId>(
    submission: &Submission<S>,
) -> Option<SubmittedBatch> {
    Some(SubmittedBatch {
        service_id: submission.scope_id().service_id().clone(),
        batch_id: submission.batch_header().parse().ok()?,
        attempt_id: submission.attempt_id()?,
    })
}

fn attempt_of(taken: &TakenBatch) -> SubmittedBatch {
    SubmittedBatch {
        service_id: taken.service_id.clone(),
        batch_id: taken.batch_id,
        attempt_id: taken.attempt_id(),
    }
}

impl fmt::Debug for Recalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recalls").field("attempts", &self.lock().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{ItemId, ServiceScopeId};

    use super::*;

    fn taken(number: u8, attempt: u32) -> TakenBatch {
        TakenBatch {
            service_id: "circuit::service".parse().unwrap(),
            batch_id: ItemId::from_bytes([number; 64]),
            attempt,
            epoch: 1,
            serialized_batch: Vec::new(),
            deadline: None,
        }
    }

    fn submission(taken: &TakenBatch) -> Submission<ServiceScopeId> {
        let scope = ServiceScopeId::from_service_id(&taken.service_id).unwrap();
        let submission = Submission::new(taken.batch_id.to_string(), scope, Vec::new());
        submission.with_attempt_id(taken.attempt_id())
    }

    #[test]
    fn attempt_is_called_back_until_it_is_sent() {
        let recalls = Recalls::new();
        let (waiting, sent) = (taken(1, 1), taken(2, 1));
        recalls.taken(&[waiting.clone(), sent.clone()]);
        assert!(recalls.may_send(&submission(&sent)));
        let both = vec![attempt_of(&waiting), attempt_of(&sent)];
        assert_eq!(recalls.call_back(both), [attempt_of(&waiting)]);
        assert!(!recalls.may_send(&submission(&waiting)));
        assert!(!recalls.may_send(&submission(&sent)), "not to another node");
        assert_eq!(recalls.services(), [], "nothing is left to be called back");
    }

    #[test]
    fn later_attempt_is_not_called_back() {
        let recalls = Recalls::new();
        recalls.taken(&[taken(1, 1)]);
        recalls.call_back(vec![attempt_of(&taken(1, 1))]);
        recalls.taken(&[taken(1, 2)]);
        assert!(recalls.may_send(&submission(&taken(1, 2))));
        assert!(!recalls.may_send(&submission(&taken(1, 1))));
    }

    #[test]
    fn ended_attempts_are_forgotten() {
        let recalls = Recalls::new();
        recalls.taken(&[taken(1, 1), taken(2, 1)]);
        recalls.ended(&attempt_of(&taken(1, 1)));
        recalls.given_back(&[taken(2, 1)]);
        assert_eq!(recalls.call_back(vec![attempt_of(&taken(1, 1))]), []);
        assert!(recalls.lock().is_empty());
    }
}
