use std::{collections::BTreeSet, sync::Arc};

use grid_batch_core::batches::{AddOutcome, BatchConflict, IntakeStore, NewBatch};
use grid_batch_core::{BatchResult, ServiceId};

use crate::{
    group_commit::{GroupSize, GroupStore},
    http::MemoryReservation,
    state::StoredCallback,
};

/// The batches of one HTTP request.
#[derive(Debug)]
pub(crate) struct RequestBatches {
    pub(crate) batches: Vec<NewBatch>,
    /// The memory that the batches take, reserved until they are stored.
    pub(crate) _reservation: MemoryReservation,
}

/// Whether a list was stored.
pub(crate) type ListAnswer = Result<(), BatchConflict>;

/// The result of [`IntakeStore::add`]: one for each list.
type AddResults = Vec<Result<Vec<AddOutcome>, BatchConflict>>;

/// Stores groups of lists, and tells of the services that have new batches.
pub(crate) struct BatchListStore {
    pub(crate) store: Arc<dyn IntakeStore>,
    pub(crate) stored: StoredCallback,
}

impl GroupStore for BatchListStore {
    type Item = RequestBatches;
    type Answer = ListAnswer;

    const ITEMS: &'static str = "batches";

    fn size(list: &RequestBatches) -> GroupSize {
        let bytes = list.batches.iter().map(|batch| batch.serialized_batch.len()).sum();
        GroupSize { batches: list.batches.len(), bytes }
    }

    fn store(&self, lists: &[RequestBatches]) -> BatchResult<Vec<ListAnswer>> {
        let lists: Vec<&[NewBatch]> = lists.iter().map(|list| &*list.batches).collect();
        let results = self.store.add(&lists)?;
        self.notify(&lists, &results);
        Ok(results.into_iter().map(|result| result.map(drop)).collect())
    }
}

impl BatchListStore {
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

#[cfg(test)]
mod tests {
    use std::{
        sync::{Mutex, mpsc},
        thread,
    };

    use grid_batch_core::mocks::MockIntakeStore;
    use grid_batch_core::{BatchError, ItemId};
    use tokio::sync::{
        mpsc::{Receiver, channel},
        oneshot,
    };

    use super::*;
    use crate::{
        CommitProgress,
        group_commit::{GroupWriter, WriteRequest},
        http::MemoryBudget,
    };

    type Queue = Receiver<WriteRequest<RequestBatches, ListAnswer>>;
    type Answers = Vec<oneshot::Receiver<ListAnswer>>;

    fn batch(service: &str, number: usize, bytes: usize) -> NewBatch {
        let mut id = [0; ItemId::BYTES];
        id[..8].copy_from_slice(&number.to_be_bytes());
        NewBatch {
            service_id: service.parse().unwrap(),
            batch_id: ItemId::from_bytes(id),
            signer: None,
            transaction_ids: Vec::new(),
            serialized_batch: vec![0; bytes],
            declared_access: None,
            label: None,
            client: None,
            declared_new: false,
            deadline: None,
            trace: None,
        }
    }

    /// A list of `count` batches of `bytes` each.
    fn list(count: usize, bytes: usize) -> Vec<NewBatch> {
        (0..count).map(|number| batch("a::b", number, bytes)).collect()
    }

    /// A queue without senders that holds a request for each list.
    fn queue(lists: impl IntoIterator<Item = Vec<NewBatch>>) -> (Queue, Answers) {
        let (sender, queue) = channel(1_000);
        let budget = MemoryBudget::new(1);
        let send = |batches| {
            let (answer, answered) = oneshot::channel();
            let _reservation = budget.reserve().unwrap();
            let item = RequestBatches { batches, _reservation };
            sender.try_send(WriteRequest { item, answer }).unwrap();
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

    fn run(queue: Queue, store: Arc<dyn IntakeStore>, stored: StoredCallback) {
        let store = BatchListStore { store, stored };
        GroupWriter::new(queue, store, CommitProgress::default()).run();
    }

    /// The answers; `None` for a list that may not have been stored.
    fn results(answers: Answers) -> Vec<Option<ListAnswer>> {
        answers.into_iter().map(|answer| answer.blocking_recv().ok()).collect()
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
            let (queue, answers) =
                queue(lists.into_iter().map(|(count, bytes)| list(count, bytes)));
            let groups = Arc::new(Mutex::new(Vec::new()));
            let store = store({
                let groups = Arc::clone(&groups);
                move |lists| {
                    groups.lock().unwrap().push(lists.len());
                    all_stored(lists)
                }
            });
            run(queue, store, no_callback());
            assert_eq!(*groups.lock().unwrap(), expected);
            assert!(results(answers).iter().all(|answer| *answer == Some(Ok(()))));
        }
    }

    #[test]
    fn store_error_or_panic_fails_only_its_group() {
        let (queue, answers) = queue([(); 3].map(|()| list(400, 1)));
        let mut store = MockIntakeStore::new();
        let locked = || Err(BatchError::Unavailable("the database is locked".to_owned()));
        store.expect_add().times(1).returning(move |_| locked());
        store.expect_add().times(1).returning(|_| panic!("test panic"));
        store.expect_add().times(1).returning(all_stored);
        run(queue, Arc::new(store), no_callback());
        assert_eq!(results(answers), [None, None, Some(Ok(()))]);
    }

    #[test]
    fn request_without_a_result_is_not_stored() {
        let (queue, answers) = queue([(); 2].map(|()| list(1, 1)));
        let store = store(|_| Ok(vec![Ok(vec![AddOutcome::Stored])]));
        run(queue, store, no_callback());
        assert_eq!(results(answers), [Some(Ok(())), None]);
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
        let writer = thread::spawn(move || run(queue, store, callback));
        assert_eq!(answers.remove(0).blocking_recv().unwrap(), Ok(()));
        let services: Vec<String> =
            notified.try_recv().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(services, ["a", "b"]);
        writer.join().unwrap();
        assert!(notified.try_recv().is_err());
        assert!(matches!(results(answers)[2], Some(Err(BatchConflict::OtherBytes { .. }))));
    }

    #[test]
    fn panicking_callback_changes_no_answer() {
        let (queue, answers) = queue([list(1, 1)]);
        let callback = StoredCallback::new(|_| panic!("test panic"));
        run(queue, store(all_stored), callback);
        assert_eq!(results(answers), [Some(Ok(()))]);
    }
}
