use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use grid_batch_core::{AddOutcome, BatchConflict, NewBatch, ServiceId};
use grid_batch_store::StoreError;
use log::{debug, error, warn};
use tokio::sync::mpsc::Receiver;

use crate::{
    error::ApiError,
    intake::Parcel,
    stored::{Stored, tell},
};

/// The most batches in one commit, and the most bytes; a single request may have more.
const GROUP_BATCHES: usize = 500;
const GROUP_BYTES: usize = 32 * 1024 * 1024;

/// What a store makes of lists: as [`Store::add`](grid_batch_store::Store::add) says it.
type Added = Vec<Result<Vec<AddOutcome>, BatchConflict>>;

/// The one that writes: it takes what has come, stores it in one commit, and answers each.
pub(crate) struct Writer<A> {
    queue: Receiver<Parcel>,
    add: A,
    stored: Arc<Stored>,
    /// Taken from the queue, and too much for the group before.
    next: Option<Parcel>,
}

impl<A: Fn(&[&[NewBatch]]) -> Result<Added, StoreError>> Writer<A> {
    pub(crate) fn new(queue: Receiver<Parcel>, add: A, stored: Arc<Stored>) -> Self {
        Self { queue, add, stored, next: None }
    }

    /// Writes until nobody can send any more, and all that was sent is answered.
    pub(crate) fn run(mut self) {
        while let Some(group) = self.next_group() {
            self.write(group);
        }
    }

    /// Waits for one, and takes what else has come.
    fn next_group(&mut self) -> Option<Vec<Parcel>> {
        let first = self.next.take().or_else(|| self.queue.blocking_recv())?;
        let (mut batches, mut bytes) = first.size();
        let mut group = vec![first];
        while let Ok(parcel) = self.queue.try_recv() {
            let (more_batches, more_bytes) = parcel.size();
            batches += more_batches;
            bytes += more_bytes;
            if batches > GROUP_BATCHES || bytes > GROUP_BYTES {
                self.next = Some(parcel);
                break;
            }
            group.push(parcel);
        }
        Some(group)
    }

    fn write(&self, group: Vec<Parcel>) {
        let answers = self.add(&group);
        debug!(requests = group.len(), stored = answers.iter().flatten().count();
            "a group was written");
        for (parcel, answer) in group.into_iter().zip(answers) {
            // Whoever asked may be gone.
            let _ = parcel.answer.send(answer);
        }
    }

    fn add(&self, group: &[Parcel]) -> Vec<Result<(), ApiError>> {
        let lists: Vec<&[NewBatch]> = group.iter().map(|parcel| &*parcel.batches).collect();
        let requests = group.len();
        match catch_unwind(AssertUnwindSafe(|| (self.add)(&lists))) {
            Ok(Ok(added)) => {
                self.tell(&lists, &added);
                added.into_iter().map(|list| list.map(drop).map_err(ApiError::Conflict)).collect()
            }
            Ok(Err(error)) => {
                warn!(requests, error:%; "a group could not be stored");
                vec![Err(ApiError::NotStored); requests]
            }
            Err(_) => {
                error!(requests; "storing a group panicked");
                vec![Err(ApiError::NotStored); requests]
            }
        }
    }

    fn tell(&self, lists: &[&[NewBatch]], added: &Added) {
        let services: BTreeSet<&ServiceId> = lists
            .iter()
            .zip(added)
            .filter_map(|(list, added)| Some(list.iter().zip(added.as_ref().ok()?)))
            .flatten()
            .filter(|(_, addition)| **addition == AddOutcome::Stored)
            .map(|(batch, _)| &batch.service_id)
            .collect();
        if services.is_empty() {
            return;
        }
        let services: Vec<ServiceId> = services.into_iter().cloned().collect();
        tell(&*self.stored, &services);
    }
}

impl Parcel {
    /// How many batches, and how many bytes.
    fn size(&self) -> (usize, usize) {
        let bytes = self.batches.iter().map(|batch| batch.serialized_batch.len()).sum();
        (self.batches.len(), bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Mutex, mpsc},
        thread,
    };

    use grid_batch_core::HeaderId;
    use tokio::sync::{mpsc::channel, oneshot};

    use super::*;
    use crate::room::Room;

    type Answers = Vec<oneshot::Receiver<Result<(), ApiError>>>;

    fn batch(service: &str, number: usize, bytes: usize) -> NewBatch {
        let mut id = [0; HeaderId::BYTES];
        id[..8].copy_from_slice(&number.to_be_bytes());
        NewBatch {
            service_id: service.parse().unwrap(),
            batch_id: HeaderId::from_bytes(id),
            transaction_ids: Vec::new(),
            serialized_batch: vec![0; bytes],
        }
    }

    /// So many lists of so many batches of so many bytes, in a queue that has ended.
    fn waiting(requests: &[(usize, usize)]) -> (Receiver<Parcel>, Answers) {
        let (sender, queue) = channel(requests.len());
        let room = Room::new(1);
        let answers = requests.iter().map(|(batches, bytes)| {
            let (answer, answered) = oneshot::channel();
            let batches = (0..*batches).map(|number| batch("a::b", number, *bytes)).collect();
            let parcel = Parcel { batches, _share: room.share().unwrap(), answer };
            sender.try_send(parcel).unwrap();
            answered
        });
        let answers = answers.collect();
        (queue, answers)
    }

    fn all_stored(lists: &[&[NewBatch]]) -> Result<Added, StoreError> {
        Ok(lists.iter().map(|list| Ok(vec![AddOutcome::Stored; list.len()])).collect())
    }

    fn answers(answers: Answers) -> Vec<Result<(), ApiError>> {
        answers.into_iter().map(|answer| answer.blocking_recv().unwrap()).collect()
    }

    #[test]
    fn what_waits_together_is_one_commit_up_to_500_batches_and_32_mib() {
        const MIB: usize = 1024 * 1024;
        for (requests, groups) in [
            (vec![(1, 10); 100], vec![100]),
            (vec![(1, 10); 501], vec![500, 1]),
            (vec![(400, 1), (100, 1), (1, 1), (499, 1)], vec![2, 2]),
            (vec![(1, 1), (900, 1), (1, 1)], vec![1, 1, 1]),
            (vec![(2, 8 * MIB), (1, 16 * MIB), (1, 1)], vec![2, 1]),
        ] {
            let (queue, waiting) = waiting(&requests);
            let seen = Mutex::new(Vec::new());
            let add = |lists: &[&[NewBatch]]| {
                seen.lock().unwrap().push(lists.len());
                all_stored(lists)
            };
            Writer::new(queue, add, Arc::new(|_: &[ServiceId]| ())).run();
            assert_eq!(*seen.lock().unwrap(), groups);
            assert!(answers(waiting).iter().all(Result::is_ok));
        }
    }

    #[test]
    fn a_store_that_fails_or_panics_fails_its_group_and_no_other() {
        let (queue, waiting) = waiting(&[(400, 1); 3]);
        let calls = Mutex::new(0);
        let add = |lists: &[&[NewBatch]]| {
            let mut calls = calls.lock().unwrap();
            *calls += 1;
            match *calls {
                1 => Err(StoreError::Locked { source: "by another".into() }),
                2 => {
                    drop(calls);
                    panic!("as it was told to")
                }
                _ => all_stored(lists),
            }
        };
        Writer::new(queue, add, Arc::new(|_: &[ServiceId]| ())).run();
        let failed = Err(ApiError::NotStored);
        assert_eq!(answers(waiting), [failed.clone(), failed, Ok(())]);
    }

    #[test]
    fn services_with_new_batches_are_told_before_the_answer_each_once() {
        let (sender, queue) = channel(9);
        let room = Room::new(1);
        let (tell, told) = mpsc::channel();
        let add = |lists: &[&[NewBatch]]| {
            let added = |list: &&[NewBatch]| match list[0].service_id.as_str() {
                "old" => Ok(vec![AddOutcome::AlreadyStored]),
                "conflict" => Err(BatchConflict {
                    service_id: list[0].service_id.clone(),
                    batch_id: list[0].batch_id,
                }),
                _ => Ok(vec![AddOutcome::Stored]),
            };
            Ok(lists.iter().map(added).collect())
        };
        let stored = Arc::new(move |services: &[ServiceId]| tell.send(services.to_vec()).unwrap());
        let mut waiting = Vec::new();
        for service in ["b", "old", "a", "conflict", "b"] {
            let (answer, answered) = oneshot::channel();
            let parcel = Parcel {
                batches: vec![batch(service, 1, 1)],
                _share: room.share().unwrap(),
                answer,
            };
            sender.try_send(parcel).unwrap();
            waiting.push(answered);
        }
        drop(sender);
        let writer = thread::spawn(move || Writer::new(queue, add, stored).run());
        let first = waiting.remove(0).blocking_recv().unwrap();
        assert_eq!(first, Ok(()));
        let services: Vec<String> =
            told.try_recv().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(services, ["a", "b"]);
        writer.join().unwrap();
        assert!(told.try_recv().is_err());
    }

    #[test]
    fn whoever_is_told_and_panics_changes_no_answer() {
        let (queue, waiting) = waiting(&[(1, 1)]);
        Writer::new(queue, all_stored, Arc::new(|_: &[ServiceId]| panic!("as it was told to")))
            .run();
        assert_eq!(answers(waiting), [Ok(())]);
    }
}
