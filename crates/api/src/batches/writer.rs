use std::{collections::BTreeSet, sync::Arc};

use grid_batch_core::{AddOutcome, BatchConflict, IntakeStore, NewBatch, ServiceId};
use grid_batch_support::catch_panic;
use log::{debug, error, warn};
use tokio::sync::mpsc::Receiver;

use crate::{
    CommitProgress, batches::write_queue::WriteRequest, http::ApiError, state::StoredCallback,
};

/// The most batches and the most bytes in one commit. A single request may exceed them.
const MAX_GROUP_BATCHES: usize = 500;
const MAX_GROUP_BYTES: usize = 32 * 1024 * 1024;

/// The result of [`IntakeStore::add`]: one for each list.
type AddResults = Vec<Result<Vec<AddOutcome>, BatchConflict>>;

/// Takes requests from the write queue, stores groups of them in one commit, and answers each.
pub(crate) struct BatchWriter {
    queue: Receiver<WriteRequest>,
    store: Arc<dyn IntakeStore>,
    stored: StoredCallback,
    progress: CommitProgress,
    /// A request that was taken from the queue and did not fit into the last group.
    next: Option<WriteRequest>,
}

impl BatchWriter {
    pub(crate) fn new(
        queue: Receiver<WriteRequest>,
        store: Arc<dyn IntakeStore>,
        stored: StoredCallback,
    ) -> Self {
        Self { queue, store, stored, progress: CommitProgress::default(), next: None }
    }

    /// Shows there how long a commit takes.
    pub(crate) fn with_progress(self, progress: CommitProgress) -> Self {
        Self { progress, ..self }
    }

    /// Writes until all senders of the queue are dropped and all requests are answered.
    pub(crate) fn run(mut self) {
        while let Some(group) = self.next_group() {
            self.write(group);
        }
    }

    /// Waits for one request, and adds those that are in the queue already.
    fn next_group(&mut self) -> Option<Vec<WriteRequest>> {
        let first = self.next.take().or_else(|| self.queue.blocking_recv())?;
        let (mut batches, mut bytes) = (first.batches.len(), first.bytes());
        let mut group = vec![first];
        while let Ok(request) = self.queue.try_recv() {
            batches += request.batches.len();
            bytes += request.bytes();
            if batches > MAX_GROUP_BATCHES || bytes > MAX_GROUP_BYTES {
                self.next = Some(request);
                break;
            }
            group.push(request);
        }
        Some(group)
    }

    fn write(&self, group: Vec<WriteRequest>) {
        let results = self.store(&group);
        debug!(requests = group.len(), stored = results.iter().flatten().count();
            "group of batches written");
        for (request, result) in group.into_iter().zip(results) {
            // The client may have disconnected.
            let _ = request.answer.send(result);
        }
    }

    /// Stores a group in one commit, and returns the result of each request.
    fn store(&self, group: &[WriteRequest]) -> Vec<Result<(), ApiError>> {
        let lists: Vec<&[NewBatch]> = group.iter().map(|request| &*request.batches).collect();
        let requests = group.len();
        let _in_progress = self.progress.begin();
        match catch_panic(|| self.store.add(&lists)) {
            Ok(Ok(results)) => {
                self.notify(&lists, &results);
                results.into_iter().map(|list| list.map(drop).map_err(ApiError::from)).collect()
            }
            Ok(Err(error)) => {
                warn!(requests, error:%; "storing a group of batches failed");
                vec![Err(ApiError::BatchesNotStored); requests]
            }
            Err(panic) => {
                error!(requests, panic:%; "storing a group of batches panicked");
                vec![Err(ApiError::BatchesNotStored); requests]
            }
        }
    }

    /// Calls the callback with the services that have new batches.
    fn notify(&self, lists: &[&[NewBatch]], results: &AddResults) {
        let services: BTreeSet<&ServiceId> = lists
            .iter()
            .zip(results)
            .filter_map(|(list, result)| Some(list.iter().zip(result.as_ref().ok()?)))
            .flatten()
            .filter(|(_, outcome)| **outcome == AddOutcome::Stored)
            .map(|(batch, _)| &batch.service_id)
            .collect();
        if services.is_empty() {
            return;
        }
        let services: Vec<ServiceId> = services.into_iter().cloned().collect();
        self.stored.notify(&services);
    }
}

impl WriteRequest {
    fn bytes(&self) -> usize {
        self.batches.iter().map(|batch| batch.serialized_batch.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Mutex, mpsc},
        thread,
    };

    use grid_batch_core::{BatchError, BatchResult, HeaderId, mocks::MockIntakeStore};
    use tokio::sync::{mpsc::channel, oneshot};

    use super::*;
    use crate::http::MemoryBudget;

    type Answers = Vec<oneshot::Receiver<Result<(), ApiError>>>;

    fn batch(service: &str, number: usize, bytes: usize) -> NewBatch {
        let mut id = [0; HeaderId::BYTES];
        id[..8].copy_from_slice(&number.to_be_bytes());
        NewBatch {
            service_id: service.parse().unwrap(),
            batch_id: HeaderId::from_bytes(id),
            signer: None,
            transaction_ids: Vec::new(),
            serialized_batch: vec![0; bytes],
        }
    }

    /// A list of `count` batches of `bytes` each.
    fn list((count, bytes): (usize, usize)) -> Vec<NewBatch> {
        (0..count).map(|number| batch("a::b", number, bytes)).collect()
    }

    /// A queue without senders that holds a request for each list.
    fn queue(lists: impl IntoIterator<Item = Vec<NewBatch>>) -> (Receiver<WriteRequest>, Answers) {
        let (sender, queue) = channel(1_000);
        let budget = MemoryBudget::new(1);
        let send = |batches| {
            let (answer, answered) = oneshot::channel();
            let _reservation = budget.reserve().unwrap();
            sender.try_send(WriteRequest { batches, _reservation, answer }).unwrap();
            answered
        };
        let answers = lists.into_iter().map(send).collect();
        (queue, answers)
    }

    fn all_stored(lists: &[&[NewBatch]]) -> BatchResult<AddResults> {
        Ok(lists.iter().map(|list| Ok(vec![AddOutcome::Stored; list.len()])).collect())
    }

    fn store(
        add: impl Fn(&[&[NewBatch]]) -> BatchResult<AddResults> + Send + 'static,
    ) -> Arc<MockIntakeStore> {
        let mut store = MockIntakeStore::new();
        store.expect_add().returning(add);
        Arc::new(store)
    }

    fn no_callback() -> StoredCallback {
        StoredCallback::new(|_| ())
    }

    fn results(answers: Answers) -> Vec<Result<(), ApiError>> {
        let not_stored = Err(ApiError::BatchesNotStored);
        answers.into_iter().map(|a| a.blocking_recv().unwrap_or(not_stored.clone())).collect()
    }

    #[test]
    fn waiting_requests_share_a_commit_up_to_its_limits() {
        const MIB: usize = 1024 * 1024;
        for (lists, expected) in [
            (vec![(1, 10); 100], vec![100]),
            (vec![(1, 10); 501], vec![500, 1]),
            (vec![(400, 1), (100, 1), (1, 1), (499, 1)], vec![2, 2]),
            (vec![(1, 1), (900, 1), (1, 1)], vec![1, 1, 1]),
            (vec![(2, 8 * MIB), (1, 16 * MIB), (1, 1)], vec![2, 1]),
        ] {
            let (queue, answers) = queue(lists.into_iter().map(list));
            let groups = Arc::new(Mutex::new(Vec::new()));
            let store = store({
                let groups = Arc::clone(&groups);
                move |lists| {
                    groups.lock().unwrap().push(lists.len());
                    all_stored(lists)
                }
            });
            BatchWriter::new(queue, store, no_callback()).run();
            assert_eq!(*groups.lock().unwrap(), expected);
            assert!(results(answers).iter().all(Result::is_ok));
        }
    }

    #[test]
    fn store_error_or_panic_fails_only_its_group() {
        let (queue, answers) = queue([(400, 1); 3].map(list));
        let mut store = MockIntakeStore::new();
        let locked = || Err(BatchError::Unavailable("the database is locked".to_owned()));
        store.expect_add().times(1).returning(move |_| locked());
        store.expect_add().times(1).returning(|_| panic!("test panic"));
        store.expect_add().times(1).returning(all_stored);
        BatchWriter::new(queue, Arc::new(store), no_callback()).run();
        let failed = Err(ApiError::BatchesNotStored);
        assert_eq!(results(answers), [failed.clone(), failed, Ok(())]);
    }

    #[test]
    fn request_without_a_result_is_not_stored() {
        let (queue, answers) = queue([(1, 1); 2].map(list));
        let store = store(|_| Ok(vec![Ok(vec![AddOutcome::Stored])]));
        BatchWriter::new(queue, store, no_callback()).run();
        assert_eq!(results(answers), [Ok(()), Err(ApiError::BatchesNotStored)]);
    }

    #[test]
    fn callback_has_new_services_once_and_before_the_answer() {
        let services = ["b", "old", "a", "conflict", "b"];
        let (queue, mut answers) = queue(services.map(|service| vec![batch(service, 1, 1)]));
        let store = store(|lists| {
            let add = |list: &&[NewBatch]| match list[0].service_id.as_str() {
                "old" => Ok(vec![AddOutcome::AlreadyStored]),
                "conflict" => Err(BatchConflict::OtherBytes {
                    service_id: list[0].service_id.clone(),
                    batch_id: list[0].batch_id,
                }),
                _ => Ok(vec![AddOutcome::Stored]),
            };
            Ok(lists.iter().map(add).collect())
        });
        let (sender, notified) = mpsc::channel();
        let callback = StoredCallback::new(move |services: &[ServiceId]| {
            sender.send(services.to_vec()).unwrap();
        });
        let writer = thread::spawn(move || BatchWriter::new(queue, store, callback).run());
        assert_eq!(answers.remove(0).blocking_recv().unwrap(), Ok(()));
        let services: Vec<String> =
            notified.try_recv().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(services, ["a", "b"]);
        writer.join().unwrap();
        assert!(notified.try_recv().is_err());
        assert!(matches!(results(answers)[2], Err(ApiError::BatchConflict(_))));
    }

    #[test]
    fn panicking_callback_changes_no_answer() {
        let (queue, answers) = queue([list((1, 1))]);
        let callback = StoredCallback::new(|_| panic!("test panic"));
        BatchWriter::new(queue, store(all_stored), callback).run();
        assert_eq!(results(answers), [Ok(())]);
    }
}
