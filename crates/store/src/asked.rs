use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use grid_batch_core::AttemptId;

use crate::{PendingBatch, lanes::Key};

/// Which attempt the questions are about that the ledger is asked now, and in which epoch.
///
/// An answer names its batch and no attempt. Were it taken to be about whichever attempt it finds,
/// an answer that was long under way could end a batch that has been sent again meanwhile.
#[derive(Default)]
pub(crate) struct Asked(Mutex<HashMap<Key, AttemptId>>);

impl Asked {
    /// Beyond so many, all is forgotten: then an answer counts for whichever attempt it finds.
    const MOST: usize = 100_000;

    /// These are to be asked for. Of one that is being asked for already, the first attempt counts
    /// until it is answered.
    pub(crate) fn begin(&self, batches: &[PendingBatch]) {
        let mut tickets = self.lock();
        if tickets.len() + batches.len() > Self::MOST {
            tickets.clear();
        }
        for batch in batches {
            let attempt_id = AttemptId { attempt: batch.attempt, epoch: batch.epoch };
            tickets.entry(key(batch)).or_insert(attempt_id);
        }
    }

    /// What an answer about this batch is about, where that is known.
    pub(crate) fn attempt_id(&self, batch: &Key) -> Option<AttemptId> {
        self.lock().get(batch).copied()
    }

    /// These are answered, or nobody waits for an answer any more.
    pub(crate) fn end(&self, batches: impl IntoIterator<Item = Key>) {
        let mut tickets = self.lock();
        for batch in batches {
            tickets.remove(&batch);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, AttemptId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn key(batch: &PendingBatch) -> Key {
    (batch.service_id.clone(), batch.batch_id)
}

#[cfg(test)]
mod tests {
    use grid_batch_core::HeaderId;

    use super::*;

    fn batch(number: u8, attempt: u32) -> PendingBatch {
        PendingBatch::new("a::b".parse().unwrap(), HeaderId::from_bytes([number; 64]), attempt, 0)
    }

    fn asked_about(asked: &Asked, batch: &Key) -> Option<u32> {
        asked.attempt_id(batch).map(|attempt_id| attempt_id.attempt)
    }

    #[test]
    fn the_attempt_of_the_first_question_counts_until_it_is_answered() {
        let asked = Asked::default();
        for attempt in [1, 2] {
            asked.begin(&[batch(1, attempt)]);
            assert_eq!(asked_about(&asked, &key(&batch(1, 0))), Some(1));
        }
        asked.end([key(&batch(1, 1))]);
        assert_eq!(asked_about(&asked, &key(&batch(1, 0))), None);
        asked.begin(&[batch(1, 2)]);
        assert_eq!(asked_about(&asked, &key(&batch(1, 0))), Some(2));
    }

    #[test]
    fn questions_without_number_are_not_kept() {
        let asked = Asked::default();
        asked.begin(&[batch(1, 1)]);
        asked.begin(&vec![batch(2, 2); Asked::MOST]);
        let attempts = [1, 2].map(|number| asked_about(&asked, &key(&batch(number, 0))));
        assert_eq!(attempts, [None, Some(2)]);
    }
}
